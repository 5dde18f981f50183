"""Webhooks: tells others what came of crawls. One pass; any process may run it, any number of them.

What is to be told lies in the database since the moment it became true, so a restart loses nothing. A receiver may be
told twice (killed after it answered, before that was noted), never not at all: the id of a notice stays the same.

    Kept-Event        activated, held or failed
    Kept-Delivery     the id of the notice
    Kept-Timestamp    when it was sent, in seconds since 1970
    Kept-Signature    sha256= and the HMAC-SHA256 of timestamp, a dot and the body, by the shared secret
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
from kept.model.source import Source
from kept.store import notifications, sources
from kept.store.database import Connection, Database, current_time
from kept.store.notifications import Notification

log = Log(__name__)

BATCH_SIZE = 50
MAX_ATTEMPTS = 12  # over about half a day
INITIAL_BACKOFF = timedelta(seconds=10)
DELIVERY_LEASE = timedelta(minutes=1)  # longer than any delivery takes
FAILED_RETENTION = timedelta(days=30)  # what was given up

SendWebhook = Callable[
    [str, bytes, Mapping[str, str]], Awaitable[str | None]
]  # URL, body, headers -> why it was not taken
ResolveSecret = Callable[[str], str]  # what "env:NAME" stands for


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorWebhook:
    """Who runs this Kept, and is told of every source."""

    url: str = ""
    secret: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryReport:
    delivered: int = 0
    put_off: int = 0
    given_up: int = 0
    dropped: int = 0  # nobody wants to know


async def deliver_due(
    db: Database, send: SendWebhook, operator: OperatorWebhook, *, look_up: ResolveSecret, now: datetime | None = None
) -> DeliveryReport:
    """Delivers what is due, by the database's clock. Ends early where nobody answers: the next pass goes on."""
    counts = Counter[str]()
    while True:
        async with db.snapshot() as snapshot:
            at = now or await current_time(snapshot)
            if not await notifications.list_due(snapshot, at, limit=1):
                break
        wanted, unwanted = await _lease_due(db, operator, at)
        answers = await asyncio.gather(*(_send(send, operator, look_up, one, url, at) for one, url in wanted))
        async with db.transaction() as tx:
            page = [await _record_result(tx, one, why, at) for (one, _), why in zip(wanted, answers, strict=True)]
        counts.update({"dropped": unwanted})
        counts.update(page)
        if len(page) + unwanted < BATCH_SIZE or not (unwanted or "delivered" in page):
            break
    return DeliveryReport(**counts)


async def _lease_due(
    db: Database, operator: OperatorWebhook, now: datetime
) -> tuple[list[tuple[Notification, str]], int]:
    """Notices that are this process's to deliver, and where to; and how many nobody wants any more: they are gone."""
    wanted, unwanted = [], 0
    async with db.transaction() as tx:
        for notice in await notifications.claim_due(tx, now, until=now + DELIVERY_LEASE, limit=BATCH_SIZE):
            url = _target_url(notice, await sources.get(tx, notice.source_id), operator)
            if url:
                wanted.append((notice, url))
            else:
                await notifications.delete(tx, notice.id)
                unwanted += 1
        await notifications.delete_undelivered(tx, before=now - FAILED_RETENTION)
    return wanted, unwanted


async def _send(
    send: SendWebhook,
    operator: OperatorWebhook,
    look_up: ResolveSecret,
    notification: Notification,
    url: str,
    now: datetime,
) -> str | None:
    """None if it was heard, else why not."""
    try:
        body = make_body(notification)
        return await send(look_up(url), body, make_headers(notification, body, look_up(operator.secret), now))
    except (SecretUnavailable, InvalidInput) as error:  # of the operator's settings, on this machine
        return str(error)


async def _record_result(tx: Connection, notification: Notification, error: str | None, now: datetime) -> str:
    """Which of the numbers of ``Delivered`` it counts to."""
    if error is None:
        await notifications.delete(tx, notification.id)
        return "delivered"
    due = now + backoff_delay(notification.attempts) if notification.attempts < MAX_ATTEMPTS else None
    await notifications.reschedule(tx, notification, due_at=due, error=error)
    what = {"what": notification.event, "notice": notification.id, "tries": notification.attempts}
    log.warning("webhook not delivered", **what, reason=error, next=str(due))
    return "put_off" if due else "given_up"


def _target_url(notification: Notification, source: Source | None, operator: OperatorWebhook) -> str:
    """Where to deliver it, as of now; empty: nobody wants to know any more."""
    if source is None:
        return ""
    return operator.url if notification.receiver == "operator" else source.settings.webhook


def make_body(notification: Notification) -> bytes:
    told = {
        "id": notification.id,
        "event": notification.event,
        "at": notification.created_at.isoformat(),
        **notification.payload,
    }
    return json.dumps(told).encode()


def make_headers(notification: Notification, body: bytes, secret: str, now: datetime) -> dict[str, str]:
    """Without a secret there is no signature."""
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
    """Twice as long after each."""
    return INITIAL_BACKOFF * (1 << (attempts - 1))
