"""A package of npm or PyPI as an origin."""

from collections.abc import Callable, Mapping

from kept.errors import InvalidInput
from kept.model.package import parse_package
from kept.model.source import SourceSettings
from kept.origins.packages.origin import PackageOrigin

__all__ = ["PackageOrigin", "make_package_origin"]


def make_package_origin(
    root: str,
    settings: SourceSettings,
    *,
    type_of: Callable[[str], str | None],
    environment: Mapping[str, str],
    uses_user_tools: bool = True,
) -> PackageOrigin:
    """Build the origin of a source. Without ``uses_user_tools``, npm and pip run without the user's configuration."""
    package = parse_package(root)
    if package is None:
        raise InvalidInput(f"{root} is no package. It should look like npm:left-pad@1.3.0 or pypi:requests.")
    return PackageOrigin(package, settings, type_of=type_of, environment=environment, uses_user_tools=uses_user_tools)
