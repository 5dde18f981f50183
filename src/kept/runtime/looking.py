"""Looking at a source before anything is kept: no database is open."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, cast

from kept.model.source import SourceKind, SourceSettings
from kept.runtime.origins import AnyOrigin, make_origin
from kept.settings import Settings

if TYPE_CHECKING:
    from kept.crawl.trying import Look as Look  # the doors show it
    from kept.crawl.trying import Read
    from kept.crawl.trying import Survey as Survey
    from kept.origins.web import WebOrigin


def prepare(kind: SourceKind = SourceKind.WEB) -> None:
    """Loads what the walk of such a source needs: it begins sooner, and none of this counts as its time."""
    import kept.work.worker
    from kept.extract.reader import signature

    if kind is SourceKind.WEB:
        import kept.origins.web  # noqa: F401
    signature()


async def look_at_root(settings: Settings, kind: SourceKind, root: str, asked: SourceSettings) -> None:
    """Raises where there is nobody at the root of a source, or nothing: a slip should not become a source."""
    async with _looking(settings, kind, root, asked) as (origin, _):
        await origin.open()
        if kind is SourceKind.WEB:
            await cast("WebOrigin", origin).knock()


async def try_page(settings: Settings, kind: SourceKind, url: str, asked: SourceSettings) -> "Look":
    """One page as a source of its own would keep it. Nothing is kept."""
    from kept.crawl.trying import look

    async with _looking(settings, kind, url, asked) as (origin, read):
        return await look(origin, read, url)


async def survey(settings: Settings, kind: SourceKind, root: str, asked: SourceSettings) -> "Survey":
    """What a source would begin with. Nothing is kept."""
    from kept.crawl import trying

    async with _looking(settings, kind, root, asked) as (origin, read):
        return await trying.survey(origin, read, root if kind is SourceKind.WEB and not asked.scope.pages else None)


@asynccontextmanager
async def _looking(
    settings: Settings, kind: SourceKind, root: str, asked: SourceSettings
) -> AsyncIterator[tuple[AnyOrigin, "Read"]]:
    from kept.extract.pool import ReaderPool
    from kept.secrets import Secrets, check_references

    check_references(asked)
    secrets = Secrets(settings.secrets_file, settings.environment)
    origin = make_origin(kind, root, asked, settings, secrets.look_up)
    pool = ReaderPool(processes=1)
    try:
        yield origin, partial(pool.read, region=asked.region)
    finally:
        await pool.close()
        await origin.close()
