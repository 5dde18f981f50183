"""Shares of hosts: who may ask a host how much at once. Rows in, numbers out."""

from kept.model.nouns import dataclass
from kept.store.database import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class HostShare:
    """What one place has of a host."""

    place_id: str
    at_once: int
    slots: int


async def lock(db: Connection, host: str) -> None:
    """Until the transaction ends nobody else shares this host out."""
    await db.one("lock_host", host=host)


async def shares(db: Connection, host: str, *, lapse: float) -> list[HostShare]:
    """The shares that were renewed within so many seconds, the oldest first."""
    rows = await db.all("host_shares", host=host, seconds=lapse)
    return [HostShare(place_id=row["place_id"], at_once=row["at_once"], slots=row["slots"]) for row in rows]


async def keep(db: Connection, host: str, share: HostShare) -> bool:
    """True if it is kept; False if its worker was replaced."""
    return await db.run("keep_share", host=host, place=share.place_id, at_once=share.at_once, slots=share.slots) > 0
