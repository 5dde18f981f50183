"""Notifications that are to be delivered to webhooks."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias

from kept.model.ids import new_id
from kept.store.database import Connection, Row, parse_optional_time, parse_time

NotificationEvent: TypeAlias = Literal["activated", "held", "failed"]
Receiver: TypeAlias = Literal["operator", "source"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """Something that happened to a source, for one receiver."""

    id: str
    source_id: str
    receiver: Receiver
    event: NotificationEvent
    payload: Mapping[str, Any]
    attempts: int
    created_at: datetime
    due_at: datetime | None  # None: given up
    error: str | None


async def insert(
    db: Connection, source: str, receiver: Receiver, event: NotificationEvent, payload: Mapping[str, Any]
) -> None:
    """Queue a notification in the transaction that it reports: if that is rolled back, nothing is sent."""
    await db.run(
        "insert_notification", id=new_id(), source=source, receiver=receiver, event=event, payload=json.dumps(payload)
    )


async def list_due(db: Connection, now: datetime, *, limit: int) -> list[Notification]:
    return [_read(row) for row in await db.all("due_notifications", now=now, limit=limit)]


async def claim_due(db: Connection, now: datetime, *, until: datetime, limit: int) -> list[Notification]:
    """Claim the first notifications that are due. No other process delivers them before ``until``."""
    return [_read(row) for row in await db.all("claim_notifications", now=now, until=until, limit=limit)]


async def reschedule(db: Connection, notification: Notification, *, due_at: datetime | None, error: str) -> None:
    """Deliver it again at ``due_at``; None: give up."""
    await db.run("reschedule_notification", id=notification.id, attempts=notification.attempts, due=due_at, error=error)


async def delete(db: Connection, id: str) -> None:
    await db.run("delete_notification", id=id)


async def latest_undelivered(db: Connection, source: str) -> Notification | None:
    """Return the latest notification of a source that was given up."""
    row = await db.one("latest_undelivered_notification", source=source)
    return None if row is None else _read(row)


async def delete_undelivered(db: Connection, *, before: datetime) -> None:
    await db.run("delete_undelivered_notifications", before=before)


def _read(row: Row) -> Notification:
    return Notification(
        id=row["id"],
        source_id=row["source_id"],
        receiver=row["receiver"],
        event=row["event"],
        payload=json.loads(row["payload"]),
        attempts=row["attempts"],
        created_at=parse_time(row["created_at"]),
        due_at=parse_optional_time(row["due_at"]),
        error=row["error"],
    )
