"""Where sources live, built from their settings and from those of this machine."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias, Union

from kept.errors import NotFound
from kept.model.source import DEFAULT_REGION, SourceKind, SourceSettings, parse_secret_reference
from kept.settings import Settings

if TYPE_CHECKING:  # heavy: one kind of source needs only its own
    from kept.origins.file_tree import TreeOrigin
    from kept.origins.folder import FolderOrigin
    from kept.origins.web import WebOrigin

AnyOrigin: TypeAlias = Union["WebOrigin", "FolderOrigin", "TreeOrigin"]


def make_origin(
    kind: SourceKind,
    root: str,
    settings: SourceSettings,
    app_settings: Settings,
    look_up: Callable[[str], str] | None = None,
) -> AnyOrigin:
    """Where a source lives. WrongCall where its settings make no sense, SecretUnavailable where a value is missing."""
    if kind is SourceKind.WEB:
        from kept.origins.web import make_web_origin

        first = next(iter(settings.scope.pages), root)
        return make_web_origin(first, settings, look_up=look_up, browser=app_settings.crawl.browser)
    from kept.extract.reader import guess_content_type

    if kind is SourceKind.GIT:
        from kept.origins.git import make_git_origin

        return make_git_origin(
            root,
            settings,
            type_of=guess_content_type,
            look_up=look_up or str,
            environment=app_settings.environment,
            cache_folder=app_settings.cache_folder,
        )
    if kind is SourceKind.PACKAGE:
        from kept.origins.packages import make_package_origin

        return make_package_origin(root, settings, type_of=guess_content_type, environment=app_settings.environment)
    from kept.origins.folder import FolderOrigin
    from kept.origins.zip_file import ZipOrigin, is_zip_root

    origin = ZipOrigin if is_zip_root(root) else FolderOrigin
    return origin(root, scope=settings.scope, limits=settings.limits, type_of=guess_content_type)


def check_source(kind: SourceKind, root: str, settings: SourceSettings, app_settings: Settings) -> None:
    """WrongCall unless the settings of a source make sense, as far as that can be seen from here."""
    if settings.region != DEFAULT_REGION:
        from kept.extract.html.reader import check_region

        check_region(settings.region)
    said = settings.access if not parse_secret_reference(settings.access.proxy) else replace(settings.access, proxy="")
    make_origin(kind, root, replace(settings, access=replace(said, headers=())), app_settings)


def why_excluded(kind: SourceKind, root: str, settings: SourceSettings, app_settings: Settings, url: str) -> str | None:
    """Why a URL is none of a source, by its settings; None: it could be. No secret is looked up for that."""
    open_to_all = replace(settings.access, headers=(), proxy="", ca_file="")
    return make_origin(kind, root, replace(settings, access=open_to_all), app_settings).why_excluded(url)


def require_browser(settings: Settings) -> str:
    """The Chromium that pages are opened in. NoSuchThing, with what to do, where there is none."""
    from kept.origins.web.devtools import BrowserUnavailable, find_browser

    try:
        return find_browser(settings.crawl.browser)
    except BrowserUnavailable as error:
        raise NotFound(str(error)) from None
