"""A git repository as an origin: origin · copy (the cache) · reading · way (to the remote) · program · outcomes."""

from collections.abc import Callable, Mapping
from pathlib import Path

from kept.model.repository import repository_from_root
from kept.model.source import SourceSettings
from kept.origins.git.origin import GitOrigin
from kept.origins.git.transport import Transport

__all__ = ["GitOrigin", "make_git_origin"]


def make_git_origin(
    root: str,
    settings: SourceSettings,
    *,
    type_of: Callable[[str], str | None],
    look_up: Callable[[str], str],
    environment: Mapping[str, str],
    cache_folder: Path,
) -> GitOrigin:
    """The origin of a source. ``cache``: the folder for what can be fetched again; ``environment``: the user's."""
    way = Transport(settings=settings, environment=environment, look_up=look_up)
    return GitOrigin(repository_from_root(root), settings, transport=way, cache_folder=cache_folder, type_of=type_of)
