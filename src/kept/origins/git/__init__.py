"""A git repository as an origin, read through the user's own git."""

from collections.abc import Callable, Mapping
from pathlib import Path

from kept.model.authority import OWNER_PERMISSIONS, Permissions
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
    permissions: Permissions = OWNER_PERMISSIONS,
) -> GitOrigin:
    """Build the origin of a source. ``cache_folder`` holds bare clones, ``environment`` is the user's."""
    transport = Transport(settings=settings, environment=environment, look_up=look_up, permissions=permissions)
    if not permissions.user_tools:  # a clone of the owner's may hold what only their credentials can fetch
        cache_folder = cache_folder / "callers"
    return GitOrigin(
        repository_from_root(root), settings, transport=transport, cache_folder=cache_folder, type_of=type_of
    )
