"""Shares of hosts: who may ask a host how much at once. Rows in, numbers out."""

from kept.model.job import HostShare
from kept.store.database import Connection


async def lock(db: Connection, host: str) -> None:
    """Until the transaction ends nobody else shares this host out."""
    await db.one("lock_host", host=host)


async def shares(db: Connection, host: str, *, expires_after: float) -> list[HostShare]:
    """The shares that were renewed within so many seconds, the oldest first."""
    rows = await db.all("host_shares", host=host, seconds=expires_after)
    return [HostShare(lease_id=row["lease_id"], concurrency=row["concurrency"], slots=row["slots"]) for row in rows]


async def upsert_share(db: Connection, host: str, share: HostShare) -> bool:
    """True if it is kept; False if its worker was replaced."""
    return (
        await db.run(
            "upsert_host_share", host=host, lease=share.lease_id, concurrency=share.concurrency, slots=share.slots
        )
        > 0
    )
