"""Probes and previews of a source before it is added. No database is needed and nothing is stored."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from kept.model.source import Authority, SourceKind, SourceSettings
from kept.runtime.origin_factory import make_checked_origin
from kept.settings import Settings

if TYPE_CHECKING:
    from kept.crawl.preview import PagePreview as PagePreview  # shown by the interfaces
    from kept.crawl.preview import ReadPreviewPage
    from kept.crawl.preview import ScopePreview as ScopePreview
    from kept.origins.origin import Origin


async def preview_page(
    settings: Settings,
    kind: SourceKind,
    url: str,
    source_settings: SourceSettings,
    authority: Authority = Authority.OWNER,
) -> "PagePreview":
    """Return one page as a crawl would store it."""
    from kept.crawl.preview import preview_page

    async with _opened_origin(settings, kind, url, source_settings, authority) as (origin, read):
        return await preview_page(origin, read, url)


async def preview_scope(
    settings: Settings,
    kind: SourceKind,
    root: str,
    source_settings: SourceSettings,
    authority: Authority = Authority.OWNER,
) -> "ScopePreview":
    """Return the pages that a crawl of this source would start with."""
    from kept.crawl import preview

    async with _opened_origin(settings, kind, root, source_settings, authority) as (origin, read):
        return await preview.preview_scope(
            origin, read, root if kind is SourceKind.WEB and not source_settings.scope.pages else None
        )


@asynccontextmanager
async def _opened_origin(
    settings: Settings,
    kind: SourceKind,
    root: str,
    source_settings: SourceSettings,
    authority: Authority = Authority.OWNER,
) -> AsyncIterator[tuple["Origin", "ReadPreviewPage"]]:
    from kept.extract.reader_pool.pool import ReaderPool
    from kept.service.access import pin_private_hosts

    source_settings = await pin_private_hosts(source_settings)
    origin = make_checked_origin(kind, root, source_settings, settings, authority)
    pool = ReaderPool(processes=1)
    try:
        yield origin, partial(pool.read, region=source_settings.region)
    finally:
        await pool.close()
        await origin.close()
