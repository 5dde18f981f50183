"""Notifications of a crawl's result, stored in the transaction that makes it true and delivered by the webhooks."""

from collections.abc import Sequence
from dataclasses import asdict

from kept.model.changes import MAX_REASONS, RemovalReason
from kept.model.generation import GenerationState, Tally
from kept.model.source import Source
from kept.store import notifications
from kept.store.database import Connection
from kept.store.notifications import NotificationEvent

STATE_BY_EVENT = {
    "activated": GenerationState.ACTIVE,
    "held": GenerationState.HELD,
    "failed": GenerationState.ABANDONED,
}


async def notify(
    tx: Connection,
    source: Source,
    event: NotificationEvent,
    generation: int | None,
    job: str | None,
    *,
    tally: Tally,
    documents: int | None = None,
    reason: str | None = None,
    removed: Sequence[RemovalReason] = (),
) -> None:
    """Store a notification for the operator, and one for the source's own webhook if it has one."""
    payload = {
        "source": source.label,
        "generation": generation,
        "state": STATE_BY_EVENT[event] if generation else None,
        "documents": documents,
        "counts": tally.as_json(),
        "job": job,
        "reason": reason,
        "removed": [asdict(one) for one in removed[:MAX_REASONS]],
    }
    await notifications.insert(tx, source.id, "operator", event, payload)
    if source.settings.webhook:
        await notifications.insert(tx, source.id, "source", event, payload)
