"""Delivers webhooks about the results of crawls. One pass; any number of processes may run it.

Notifications are stored in the transaction of their event, so a restart loses none. Delivery is at least once: a
receiver can recognise duplicates by the id.

    Kept-Event        activated, held or failed
    Kept-Delivery     the id of the notification
    Kept-Timestamp    when it was sent, in seconds since 1970
    Kept-Signature    sha256= and the HMAC-SHA256 of timestamp, a dot and the body, by the receiver's secret
"""

import asyncio
import hashlib
import hmac
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from kept.errors import InvalidInput, SecretUnavailable
from kept.log import Log
from kept.model.authority import WebhookReach
from kept.model.source import Authority, Source, parse_secret_reference
from kept.store import notifications, sources
from kept.store.database import Connection, Database, current_time
from kept.store.notifications import Notification

log = Log(__name__)

BATCH_SIZE = 50
MAX_ATTEMPTS = 12  # over about half a day
INITIAL_BACKOFF = timedelta(seconds=10)
DELIVERY_LEASE = timedelta(minutes=1)  # longer than any delivery takes
FAILED_RETENTION = timedelta(days=30)  # of notifications that were given up

SendWebhook = Callable[
    [str, bytes, Mapping[str, str], WebhookReach], Awaitable[str | None]
]  # URL, body, headers, which addresses it may have -> None, or why it was not accepted
ResolveSecret = Callable[[str], str]  # resolves "env:NAME"


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorWebhook:
    """The receiver of the events of every source."""

    url: str = ""
    secret: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryReport:
    delivered: int = 0
    put_off: int = 0
    given_up: int = 0
    dropped: int = 0  # without a receiver


async def deliver_due(
    db: Database, send: SendWebhook, operator: OperatorWebhook, *, look_up: ResolveSecret, now: datetime | None = None
) -> DeliveryReport:
    """Deliver what is due by the database's clock. Stops when no receiver accepts: the next pass continues."""
    counts = Counter[str]()
    while True:
        async with db.snapshot() as snapshot:
            at = now or await current_time(snapshot)
            if not await notifications.list_due(snapshot, at, limit=1):
                break
        deliveries, dropped = await _lease_due(db, operator, at)
        errors = await asyncio.gather(*(_send(send, operator, look_up, one, source, at) for one, source in deliveries))
        async with db.transaction() as tx:
            results = [await _record_result(tx, one, why, at) for (one, _), why in zip(deliveries, errors, strict=True)]
        counts.update({"dropped": dropped})
        counts.update(results)
        if len(results) + dropped < BATCH_SIZE or not (dropped or "delivered" in results):
            break
    return DeliveryReport(**counts)


async def _lease_due(
    db: Database, operator: OperatorWebhook, now: datetime
) -> tuple[list[tuple[Notification, Source]], int]:
    """Claim due notifications. Returns them with their sources, and how many were deleted for want of a receiver."""
    deliveries, dropped = [], 0
    async with db.transaction() as tx:
        for notification in await notifications.claim_due(tx, now, until=now + DELIVERY_LEASE, limit=BATCH_SIZE):
            source = await sources.get(tx, notification.source_id)
            if source and _target_url(notification, source, operator):
                deliveries.append((notification, source))
            else:
                await notifications.delete(tx, notification.id)
                dropped += 1
        await notifications.delete_undelivered(tx, before=now - FAILED_RETENTION)
    return deliveries, dropped


async def _send(
    send: SendWebhook,
    operator: OperatorWebhook,
    look_up: ResolveSecret,
    notification: Notification,
    source: Source,
    now: datetime,
) -> str | None:
    """Return None if the receiver accepted it, else why not.

    The operator's secret signs only what the operator's own URL gets: a source may have been given another by a caller.
    """
    is_operators = notification.receiver == "operator"
    try:
        body = make_body(notification)
        secret = look_up(operator.secret if is_operators else source.settings.webhook_secret)
        headers = make_headers(notification, body, secret, now)
        reach = WebhookReach.OPERATOR if is_operators else _source_reach(source)
        if reach is WebhookReach.PUBLIC and parse_secret_reference(source.settings.webhook):
            return "webhook names a variable of this machine: that can only be set from there"
        return await send(look_up(_target_url(notification, source, operator)), body, headers, reach)
    except (SecretUnavailable, InvalidInput) as error:  # in the operator's settings on this machine
        return str(error)


async def _record_result(tx: Connection, notification: Notification, error: str | None, now: datetime) -> str:
    """Store the result of a delivery. Returns the field of ``DeliveryReport`` that counts it."""
    if error is None:
        await notifications.delete(tx, notification.id)
        return "delivered"
    due = now + backoff_delay(notification.attempts) if notification.attempts < MAX_ATTEMPTS else None
    await notifications.reschedule(tx, notification, due_at=due, error=error)
    what = {"what": notification.event, "notice": notification.id, "tries": notification.attempts}
    log.warning("webhook not delivered", **what, reason=error, next=str(due))
    return "put_off" if due else "given_up"


def _source_reach(source: Source) -> WebhookReach:
    is_owners = source.authority_of("webhook") is Authority.OWNER
    return WebhookReach.ALLOWED if is_owners else WebhookReach.PUBLIC


def _target_url(notification: Notification, source: Source, operator: OperatorWebhook) -> str:
    """Return the receiver's current URL; empty if there is none any more."""
    return operator.url if notification.receiver == "operator" else source.settings.webhook


def make_body(notification: Notification) -> bytes:
    payload = {
        "id": notification.id,
        "event": notification.event,
        "at": notification.created_at.isoformat(),
        **notification.payload,
    }
    return json.dumps(payload).encode()


def make_headers(notification: Notification, body: bytes, secret: str, now: datetime) -> dict[str, str]:
    """Return the headers of a delivery, with a signature if there is a secret."""
    timestamp = str(int(now.timestamp()))
    headers = {
        "Content-Type": "application/json",
        "Kept-Event": notification.event,
        "Kept-Delivery": notification.id,
        "Kept-Timestamp": timestamp,
    }
    return headers | ({"Kept-Signature": f"sha256={sign(secret, timestamp, body)}"} if secret else {})


def sign(secret: str, timestamp: str, body: bytes) -> str:
    return hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()


def backoff_delay(attempts: int) -> timedelta:
    """Return the delay after so many attempts, which doubles with each."""
    return INITIAL_BACKOFF * (1 << (attempts - 1))
