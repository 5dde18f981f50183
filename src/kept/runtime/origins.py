"""Where sources live, built from their settings and from those of this machine."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias, Union

from kept.errors import NoSuchThing
from kept.model.source import AS_READ, SourceKind, SourceSettings, parse_reference
from kept.settings import Settings

if TYPE_CHECKING:  # heavy: one kind of source needs only its own
    from kept.origins.folder import FolderOrigin
    from kept.origins.tree import TreeOrigin
    from kept.origins.web import WebOrigin

AnyOrigin: TypeAlias = Union["WebOrigin", "FolderOrigin", "TreeOrigin"]


def make_origin(
    kind: SourceKind,
    root: str,
    settings: SourceSettings,
    here: Settings,
    look_up: Callable[[str], str] | None = None,
) -> AnyOrigin:
    """Where a source lives. WrongCall where its settings make no sense, SecretUnavailable where a value is missing."""
    if kind is SourceKind.WEB:
        from kept.origins.web import web_origin

        first = next(iter(settings.scope.pages), root)
        return web_origin(first, settings, look_up=look_up, browser=here.crawl.browser)
    from kept.extract.reader import content_type_of

    if kind is SourceKind.GIT:
        from kept.origins.git import git_origin

        return git_origin(
            root,
            settings,
            type_of=content_type_of,
            look_up=look_up or str,
            environment=here.environment,
            cache=here.cache_folder,
        )
    if kind is SourceKind.PACKAGE:
        from kept.origins.packages import package_origin

        return package_origin(root, settings, type_of=content_type_of, environment=here.environment)
    from kept.origins.folder import FolderOrigin
    from kept.origins.zipped import ZipOrigin, is_zip

    origin = ZipOrigin if is_zip(root) else FolderOrigin
    return origin(root, scope=settings.scope, limits=settings.limits, type_of=content_type_of)


def check(kind: SourceKind, root: str, settings: SourceSettings, here: Settings) -> None:
    """WrongCall unless the settings of a source make sense, as far as that can be seen from here."""
    if settings.region != AS_READ:
        from kept.extract.html import check_region

        check_region(settings.region)
    said = settings.access if not parse_reference(settings.access.proxy) else replace(settings.access, proxy="")
    make_origin(kind, root, replace(settings, access=replace(said, headers=())), here)


def why_not(kind: SourceKind, root: str, settings: SourceSettings, here: Settings, url: str) -> str | None:
    """Why a URL is none of a source, by its settings; None: it could be. No secret is looked up for that."""
    open_to_all = replace(settings.access, headers=(), proxy="", ca_file="")
    return make_origin(kind, root, replace(settings, access=open_to_all), here).why_not(url)


def browser_of(settings: Settings) -> str:
    """The Chromium that pages are opened in. NoSuchThing, with what to do, where there is none."""
    from kept.origins.web.devtools import NoBrowser, find_browser

    try:
        return find_browser(settings.crawl.browser)
    except NoBrowser as error:
        raise NoSuchThing(str(error)) from None
