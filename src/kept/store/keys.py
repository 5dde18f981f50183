"""API keys, what their owners use, and the idempotency keys of their requests."""

from dataclasses import dataclass

from kept.model.key import ApiKey, KeyScope
from kept.store.database import Connection, Row, parse_time

IDEMPOTENCY_KEY_SECONDS = 24 * 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyUsage:
    """The live jobs, sources and visible pages of a key."""

    live_jobs: int
    sources: int
    pages: int


async def insert(db: Connection, *, name: str, hash: str, scope: KeyScope) -> ApiKey | None:
    """Insert a key. Returns None if the name is taken."""
    return _key(await db.one("insert_key", name=name, hash=hash, scope=scope))


async def all(db: Connection) -> list[ApiKey]:
    return [_read(row) for row in await db.all("keys")]


async def by_hash(db: Connection, hash: str) -> ApiKey | None:
    return _key(await db.one("key_by_hash", hash=hash))


async def delete(db: Connection, name: str) -> bool:
    return await db.run("delete_key", name=name) > 0


async def usage(db: Connection, owner: str) -> KeyUsage:
    row = await db.one("key_usage", owner=owner)
    assert row is not None, "a count is always there"
    return KeyUsage(live_jobs=row["live_jobs"], sources=row["sources"], pages=int(row["pages"]))


async def assign_source_owner(db: Connection, source: str, owner: str) -> None:
    """Make a key the owner of a source, unless it has one."""
    await db.run("assign_source_owner", id=source, owner=owner)


# Idempotency keys ----------------------------------------------------------------------------------------------


async def claim_idempotency_key(db: Connection, *, owner: str, key: str, request: str) -> bool:
    """Claim a key for a request. Returns False if it was used before; of two at the same time the second waits."""
    await db.run("delete_expired_idempotency_keys", seconds=IDEMPOTENCY_KEY_SECONDS)
    return await db.run("insert_idempotency_key", owner=owner, key=key, request=request) > 0


async def set_idempotency_job(db: Connection, *, owner: str, key: str, job: str) -> None:
    await db.run("set_idempotency_job", owner=owner, key=key, job=job)


async def get_idempotency_key(db: Connection, *, owner: str, key: str) -> tuple[str, str | None] | None:
    """Return the request of a key and the job that it led to; None for a key that is unknown or has expired."""
    row = await db.one("idempotency_key", owner=owner, key=key, seconds=IDEMPOTENCY_KEY_SECONDS)
    return None if row is None else (row["request"], row["job_id"])


def _key(row: Row | None) -> ApiKey | None:
    return None if row is None else _read(row)


def _read(row: Row) -> ApiKey:
    return ApiKey(name=row["name"], scope=KeyScope(row["scope"]), created_at=parse_time(row["created_at"]))
