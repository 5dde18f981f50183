"""A git repository as an origin: origin · copy (the cache) · reading · way (to the remote) · program · outcomes."""

from collections.abc import Callable, Mapping
from pathlib import Path

from kept.model.repository import repository_of
from kept.model.source import SourceSettings
from kept.origins.git.origin import GitOrigin
from kept.origins.git.way import Way

__all__ = ["GitOrigin", "git_origin"]


def git_origin(
    root: str,
    settings: SourceSettings,
    *,
    type_of: Callable[[str], str | None],
    look_up: Callable[[str], str],
    environment: Mapping[str, str],
    cache: Path,
) -> GitOrigin:
    """The origin of a source. ``cache``: the folder for what can be fetched again; ``environment``: the user's."""
    way = Way(settings=settings, environment=environment, look_up=look_up)
    return GitOrigin(repository_of(root), settings, way=way, cache=cache, type_of=type_of)
