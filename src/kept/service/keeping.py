"""Keeping: a wish becomes a source, and a source is changed. The same at every door.

keep     a Wish (``wishing``)      -> the source, made or brought up to date
change   settings that were given  -> the source with them
"""

from dataclasses import replace

from kept.model.root import derive_name
from kept.model.source import Source, SourceSettings
from kept.service import sources
from kept.service.context import Services
from kept.service.source_options import SourceOptions
from kept.service.source_request import LOCAL_PERMISSIONS, Permissions, SourceRequest, check_settings


async def upsert_source(
    services: Services, request: SourceRequest, *, name: str | None = None, version: str | None = None
) -> tuple[Source, bool]:
    """The source of a wish, and whether it is new. The same root again is the same source, with what was given."""
    source, is_new = await sources.get_or_create_source(
        services.db,
        root=request.root,
        kind=request.kind,
        name=name or derive_name(request.root, request.kind),
        version=request.version if version is None else version,
        settings=request.settings,
        secrets=services.secrets,
        number_if_taken=name is None,
        schedule_policy=services.schedule_policy,
    )
    if not is_new and (request.options or request.root_settings.access.headers or request.root_settings.scope.pages):

        def changed(old: SourceSettings) -> SourceSettings:
            return request.options.apply_to(_merge_root_settings(old, request.root_settings))

        source = await sources.update_settings(
            services.db, source.label, changed, services.secrets, services.schedule_policy
        )
    return source, is_new


async def check_and_update_settings(
    services: Services, label: str, options: SourceOptions, permissions: Permissions = LOCAL_PERMISSIONS
) -> Source:
    """The source with what was given; it holds from its next crawl on."""
    before = (await sources.show_source(services.db, label)).source
    check_settings(options.apply_to(before.settings), options, permissions)
    services.check_source(before.kind, before.root, options.apply_to(before.settings))
    return await sources.update_settings(
        services.db, label, options.apply_to, services.secrets, services.schedule_policy
    )


def _merge_root_settings(settings: SourceSettings, root_settings: SourceSettings) -> SourceSettings:
    """The settings of a source whose root is named once more."""
    kept = {header.name.lower(): header for header in (*settings.access.headers, *root_settings.access.headers)}
    allowed = root_settings.access.allowed or settings.access.allowed
    return replace(
        settings,
        scope=replace(settings.scope, pages=root_settings.scope.pages),
        access=replace(settings.access, allowed=allowed, headers=tuple(kept.values())),
    )
