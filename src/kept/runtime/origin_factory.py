"""Builds the origin of a source from its settings and the settings of this machine."""

from typing import TYPE_CHECKING

from kept.errors import NotFound, SourceUnavailable
from kept.model.authority import restrict_settings, why_root_refused
from kept.model.source import DEFAULT_REGION, Authority, SourceKind, SourceSettings
from kept.settings import Settings

if TYPE_CHECKING:  # imports are late: a search needs none of them, and a crawl only those of one kind
    from kept.origins.origin import Origin


def make_permitted_origin(
    kind: SourceKind, root: str, settings: SourceSettings, app_settings: Settings, authority: Authority
) -> "Origin":
    """Build the origin of a source that is to be contacted. Raises SourceUnavailable where its authority forbids it."""
    permissions = app_settings.permissions_of(authority)
    if refusal := why_root_refused(permissions, kind, root, uploads_folder=str(app_settings.uploads_folder)):
        raise SourceUnavailable(refusal)
    settings = restrict_settings(app_settings.permissions_of, authority, settings)
    return make_origin(kind, root, settings, app_settings, authority)


def make_origin(
    kind: SourceKind,
    root: str,
    settings: SourceSettings,
    app_settings: Settings,
    authority: Authority = Authority.OWNER,
) -> "Origin":
    """Build the origin of a source. Raises InvalidInput where the root is none of this kind.

    Secrets are looked up when the origin first needs them, which may raise SecretUnavailable.
    """
    permissions = app_settings.permissions_of(authority)
    from kept.secrets import SecretStore

    look_up = SecretStore(app_settings.secrets_file, app_settings.environment).look_up
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
            look_up=look_up,
            environment=app_settings.environment,
            cache_folder=app_settings.cache_folder,
            permissions=permissions,
        )
    if kind is SourceKind.PACKAGE:
        from kept.origins.packages import make_package_origin

        return make_package_origin(
            root,
            settings,
            type_of=guess_content_type,
            environment=app_settings.environment,
            uses_user_tools=permissions.user_tools,
        )
    from kept.origins.folder import FolderOrigin
    from kept.origins.zip_file import ZipOrigin, is_zip_root

    origin = ZipOrigin if is_zip_root(root) else FolderOrigin
    return origin(root, scope=settings.scope, limits=settings.limits, type_of=guess_content_type)


def make_checked_origin(
    kind: SourceKind,
    root: str,
    settings: SourceSettings,
    app_settings: Settings,
    authority: Authority = Authority.OWNER,
    *,
    before: SourceSettings | None = None,
) -> "Origin":
    """Build an origin from the settings of a request, and check them. Connects to nothing.

    Raises InvalidInput where root or settings are not valid, or refer to a stored secret that ``before``, the settings
    they replace, did not refer to.
    """
    from kept.secrets import check_references

    check_references(settings, before)
    origin = make_permitted_origin(kind, root, settings, app_settings, authority)
    origin.check()
    if settings.region != DEFAULT_REGION:
        from kept.extract.html.reader import check_region

        check_region(settings.region)
    return origin


def require_browser(settings: Settings) -> str:
    """Return the Chromium that renders pages. Raises NotFound, with what to do, where there is none."""
    from kept.origins.web.devtools import BrowserUnavailable, find_browser

    try:
        return find_browser(settings.crawl.browser)
    except BrowserUnavailable as error:
        raise NotFound(str(error)) from None
