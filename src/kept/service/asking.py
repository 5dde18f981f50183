"""Asking over the network: what callers of the server may have added and crawled, each within their quota."""

from dataclasses import dataclass, replace

from kept.errors import LimitReached
from kept.model.job import CrawlJob, CrawlMode
from kept.model.key import KeyScope
from kept.model.source import Limits, Source
from kept.service import crawls, keeping, keys
from kept.service.crawls import Once
from kept.service.given import Given
from kept.service.house import House
from kept.service.keeping import Caller, Wish
from kept.service.keys import Quota
from kept.store import sources


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Who asks, and what they may."""

    name: str | None = None  # of their key; None: they need none
    scope: KeyScope = KeyScope.READ
    caller: Caller = Caller()
    quota: Quota = Quota()


async def add(
    house: House,
    asker: Asker,
    wish: Wish,
    *,
    name: str | None = None,
    version: str | None = None,
    priority: int = 0,
    once: Once | None = None,
) -> tuple[Source, bool, CrawlJob]:
    """The source of a wish, whether it is new, and the crawl of it that was asked for."""
    house.check(wish.kind, wish.root, wish.settings)
    _check_pages(asker, wish.settings.limits)
    version = wish.version if version is None else version
    if asker.quota.pages and wish.settings.limits.max_pages is None:
        wish = replace(wish, begin=replace(wish.begin, limits=Limits(max_pages=asker.quota.pages)))
    async with house.db.snapshot() as snapshot:
        known = await sources.by_root(snapshot, wish.root, version) is not None
    if asker.name:
        await keys.check_quota(house.db, asker.name, asker.quota, another_source=not known)
    source, is_new = await keeping.keep(house, wish, name=name, version=version)
    if is_new and asker.name:
        await keys.own(house.db, source, asker.name)
    job = await crawls.request_crawl(house.db, source.label, priority=priority, owner=asker.name, once=once)
    return source, is_new, job


async def change(house: House, asker: Asker, label: str, given: Given) -> Source:
    """The source with what was given; it holds from its next crawl on."""
    _check_pages(asker, given.over(keeping.NOTHING_SET).limits)
    return await keeping.change(house, label, given, asker.caller)


async def crawl(
    house: House,
    asker: Asker,
    label: str,
    *,
    mode: CrawlMode | None = None,
    priority: int = 0,
    once: Once | None = None,
) -> CrawlJob:
    """The crawl that was asked for. The same request again is no other crawl, whatever the quota."""
    if asker.name and not (once and await crawls.was_asked(house.db, asker.name, once)):
        await keys.check_quota(house.db, asker.name, asker.quota)
    return await crawls.request_crawl(house.db, label, mode=mode, priority=priority, owner=asker.name, once=once)


def _check_pages(asker: Asker, limits: Limits) -> None:
    if asker.quota.pages and (limits.max_pages or 0) > asker.quota.pages:
        raise LimitReached(f"No source of this key may have more than {asker.quota.pages} pages.")
