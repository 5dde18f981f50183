"""Keys: who may ask over the network, and how much each may have. The store knows only their hashes."""

import hashlib
import secrets as chance
from dataclasses import dataclass

from kept.errors import InvalidInput, NotFound, QuotaExceeded
from kept.model.key import ApiKey, KeyScope
from kept.model.root import check_label
from kept.model.source import Source
from kept.store import keys
from kept.store.database import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """How much one key may have. 0: no limit."""

    live_jobs: int = 0
    sources: int = 0
    pages: int = 0


async def add_key(db: Database, name: str, scope: str) -> tuple[ApiKey, str]:
    """The key, and what its holder has to say: this is the only time that it can be seen."""
    check_label(name)
    if scope not in list(KeyScope):
        raise InvalidInput(f"There is no scope '{scope}'. A key is for {', '.join(KeyScope)}.")
    said = f"kept_{chance.token_urlsafe(32)}"
    async with db.transaction(durable=True) as tx:
        key = await keys.insert(tx, name=name, hash=_hash_token(said), scope=KeyScope(scope))
    if key is None:
        raise InvalidInput(f"There is already a key named '{name}'. Remove it first, or choose another name.")
    return key, said


async def list_keys(db: Database) -> list[ApiKey]:
    async with db.snapshot() as snapshot:
        return await keys.all(snapshot)


async def remove_key(db: Database, name: str) -> None:
    """From now on it opens nothing."""
    async with db.transaction(durable=True) as tx:
        if not await keys.delete(tx, name):
            raise NotFound(f"There is no key named '{name}'. 'kept keys list' shows those there are.")


async def find_key(db: Database, token: str) -> ApiKey | None:
    """The key that somebody says; None if it is none."""
    async with db.snapshot() as snapshot:
        return await keys.by_hash(snapshot, _hash_token(token))


async def check_quota(db: Database, owner: str, quota: Quota, *, adds_source: bool = False) -> None:
    """LimitReached where a key may not have another crawl, or another source."""
    async with db.snapshot() as snapshot:
        usage = await keys.usage(snapshot, owner)
    if quota.live_jobs and usage.live_jobs >= quota.live_jobs:
        raise QuotaExceeded(f"{usage.live_jobs} crawls of this key wait or run, and no more may. Wait, or cancel one.")
    if quota.pages and usage.pages >= quota.pages:
        raise QuotaExceeded(
            f"The sources of this key have {usage.pages} pages, and may have {quota.pages}. Remove one."
        )
    if adds_source and quota.sources and usage.sources >= quota.sources:
        raise QuotaExceeded(f"This key has added {usage.sources} sources, and may add no more. Remove one first.")


async def assign_owner(db: Database, source: Source, owner: str) -> None:
    """The source counts as this key's, unless it is somebody's already."""
    async with db.transaction() as tx:
        await keys.assign_source_owner(tx, source.id, owner)


def _hash_token(token: str) -> str:
    """A key is as hard to guess as its hash: nothing slower is needed."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
