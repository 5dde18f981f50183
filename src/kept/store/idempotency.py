"""Requests that are to count once, however often they come: rows in, nouns out."""

from kept.store.database import Connection, Row

KEY_TTL_SECONDS = 24 * 3600


async def claim_key(db: Connection, *, owner: str, key: str, request: str) -> bool:
    """True if this is the first time. A second one at the same time waits for the first."""
    await db.run("delete_expired_idempotency_keys", seconds=KEY_TTL_SECONDS)
    return await db.run("insert_idempotency_key", owner=owner, key=key, request=request) > 0


async def record_job(db: Connection, *, owner: str, key: str, job: str) -> None:
    await db.run("set_idempotency_job", owner=owner, key=key, job=job)


async def get(db: Connection, *, owner: str, key: str) -> Row | None:
    """What was asked under this key (``request``), and what it came to (``job_id``), if that is still remembered."""
    return await db.one("idempotency_key", owner=owner, key=key, seconds=KEY_TTL_SECONDS)
