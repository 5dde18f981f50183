"""Asking over the network: what callers of the server may have added and crawled, each within their quota."""

import asyncio
import math
from dataclasses import field, replace
from pathlib import Path
from typing import BinaryIO

from kept.errors import LimitReached, WrongCall
from kept.model.job import CrawlJob, CrawlMode
from kept.model.key import KeyScope
from kept.model.nouns import dataclass
from kept.model.source import Limits, Source
from kept.service import crawls, keeping, keys, uploads, wishing
from kept.service import sources as kept
from kept.service.crawls import Once
from kept.service.given import Given
from kept.service.house import House
from kept.service.keys import Quota
from kept.service.wishing import Caller, Wish
from kept.store import sources


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Who asks, and what they may."""

    name: str | None = None  # of their key; None: they need none
    scope: KeyScope = KeyScope.READ
    caller: Caller = Caller()
    quota: Quota = Quota()
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)  # of all with this key: two at once would both find room


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
    """The source of a wish, whether it is new, and the crawl of it that was asked for.

    The same request again changes nothing and makes nothing, whatever the quota.
    """
    if once and (before := await crawls.asked_before(house.db, asker.name, once)):
        async with house.db.snapshot() as snapshot:
            source = await sources.get(snapshot, before.source_id)
        if source:
            return source, False, before
    house.check(wish.kind, wish.root, wish.settings)
    version = wish.version if version is None else version
    if asker.quota.pages and wish.settings.limits.max_pages is None:
        wish = replace(wish, begin=replace(wish.begin, limits=Limits(max_pages=asker.quota.pages)))
    async with asker.turn:
        await _check_quota(house, asker, wish, version)
        source, is_new = await keeping.keep(house, wish, name=name, version=version)
        if is_new and asker.name:
            await keys.own(house.db, source, asker.name)
        job = await crawls.request_crawl(house.db, source.label, priority=priority, owner=asker.name, once=once)
    return source, is_new, job


async def upload(
    house: House, asker: Asker, folder: Path, file: BinaryIO, filename: str, *, name: str | None, version: str
) -> tuple[Source, bool, CrawlJob]:
    """Keeps a file, or what is in a zip, in the server's folder. Nothing is written there that may not be kept."""
    called, wish = uploads.understand(folder, filename, name=name, version=version)
    await _check_quota(house, asker, wish, version)
    async with house.db.snapshot() as snapshot:
        other = await sources.by_label(snapshot, called, version)
    if other and other.root != wish.root:
        raise WrongCall(
            f"There is already a source named '{other.label}', and it was not uploaded. Choose another name."
        )
    await asyncio.to_thread(uploads.put, file, filename, wish)
    return await add(house, asker, wish, name=called, version=version)


async def remove(house: House, label: str, folder: Path) -> Source:
    """Removes a source, and what was uploaded for it to the server's folder."""
    source = await kept.remove_source(house.db, label, house.secrets)
    await asyncio.to_thread(uploads.discard, folder, source)
    return source


async def change(house: House, asker: Asker, label: str, given: Given) -> Source:
    """The source with what was given; it holds from its next crawl on."""
    pages = given.over(replace(wishing.NOTHING_SET, limits=Limits(max_pages=1))).limits.max_pages
    _check_pages(asker, math.inf if pages is None else pages)
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
    async with asker.turn:
        if asker.name and not (once and await crawls.asked_before(house.db, asker.name, once)):
            await keys.check_quota(house.db, asker.name, asker.quota)
        return await crawls.request_crawl(house.db, label, mode=mode, priority=priority, owner=asker.name, once=once)


async def _check_quota(house: House, asker: Asker, wish: Wish, version: str) -> None:
    """LimitReached where the asker may not have this source, or another crawl."""
    _check_pages(asker, wish.settings.limits.max_pages or 0)
    if asker.name is None:
        return
    async with house.db.snapshot() as snapshot:
        known = await sources.by_root(snapshot, wish.root, version) is not None
    await keys.check_quota(house.db, asker.name, asker.quota, another_source=not known)


def _check_pages(asker: Asker, pages: float) -> None:
    if asker.quota.pages and pages > asker.quota.pages:
        raise LimitReached(f"No source of this key may have more than {asker.quota.pages} pages.")
