"""Passes that one process makes for all that share a database."""

from kept.store.database import Connection


async def try_start_pass(db: Connection, name: str, *, min_interval: float) -> bool:
    """True if it is this caller's to make; False if somebody began it within so many seconds."""
    return await db.run("start_maintenance_pass", name=name, seconds=min_interval) > 0
