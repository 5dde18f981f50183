"""Principals: who makes a request, what they may name as a source, and how much they may have."""

import asyncio
from dataclasses import dataclass, field, replace

from kept.errors import QuotaExceeded
from kept.model.authority import OWNER_PERMISSIONS, Permissions
from kept.model.key import KeyScope
from kept.model.source import Authority, SourceSettings
from kept.store import keys, sources
from kept.store.database import Database, ReadableDatabase


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """How much one key may have. 0: no limit."""

    live_jobs: int = 0
    sources: int = 0
    pages: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who makes a request, and what they may do."""

    name: str | None = None  # of their API key; None: no key is needed, and no quota applies
    scope: KeyScope = KeyScope.READ
    authority: Authority = Authority.CALLER
    permissions: Permissions = Permissions()
    quota: Quota = Quota()
    # Shared by all requests with one key: two concurrent ones would both find the quota not yet used up.
    quota_lock: asyncio.Lock = field(default_factory=asyncio.Lock)


OWNER = Principal(scope=KeyScope.ADMIN, authority=Authority.OWNER, permissions=OWNER_PERMISSIONS)
"""The user at the command line of this machine. May do everything."""


async def check_quota(db: ReadableDatabase, principal: Principal, *, adds_source: bool = False) -> None:
    """Raise QuotaExceeded where a principal may not have another crawl or, with ``adds_source``, another source."""
    if principal.name is None:
        return
    async with db.snapshot() as snapshot:
        usage = await keys.usage(snapshot, principal.name)
    quota = principal.quota
    if quota.live_jobs and usage.live_jobs >= quota.live_jobs:
        raise QuotaExceeded(f"{usage.live_jobs} crawls of this key wait or run, and no more may. Wait, or cancel one.")
    if quota.pages and usage.pages >= quota.pages:
        raise QuotaExceeded(
            f"The sources of this key have {usage.pages} pages, and may have {quota.pages}. Remove one."
        )
    if adds_source and quota.sources and usage.sources >= quota.sources:
        raise QuotaExceeded(f"This key has added {usage.sources} sources, and may add no more. Remove one first.")


def check_page_limit(principal: Principal, max_pages: float) -> None:
    """Raise QuotaExceeded where a source of this principal may not have so many pages."""
    if principal.quota.pages and max_pages > principal.quota.pages:
        raise QuotaExceeded(f"No source of this key may have more than {principal.quota.pages} pages.")


async def pin_private_hosts(settings: SourceSettings, *, keep_unresolved: bool = False) -> SourceSettings:
    """Return the settings with the class of address that their private hosts have now.

    A name cannot move elsewhere later, and a host that is public when it is named, or that cannot be resolved, gets no
    exception.
    """
    from kept.origins.web.client_factory import pin_allowed  # late: a search needs no HTTP client

    allowed = await pin_allowed(settings.access.allowed, keep_unresolved=keep_unresolved)
    return replace(settings, access=replace(settings.access, allowed=allowed))


async def pin_known_sources(db: Database) -> None:
    """Complete the sources that an earlier version stored without the classes of their hosts."""
    async with db.snapshot() as snapshot:
        unpinned = await sources.list_unpinned(snapshot)
    for source in unpinned:
        pinned = await pin_private_hosts(source.settings, keep_unresolved=True)
        if pinned.access.allowed == source.settings.access.allowed:
            continue
        async with db.transaction() as tx:
            current = await sources.lock(tx, source.id)
            if current and current.settings.access.allowed == source.settings.access.allowed:
                access = replace(current.settings.access, allowed=pinned.access.allowed)
                await sources.set_settings(tx, source.id, replace(current.settings, access=access))
