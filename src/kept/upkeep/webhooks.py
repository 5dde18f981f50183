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
from datetime import datetime, timedelta

from kept.errors import SecretUnavailable, WrongCall
from kept.log import Log
from kept.model.nouns import dataclass
from kept.model.source import Source
from kept.store import notices, sources
from kept.store.database import Connection, Database, moment
from kept.store.notices import Notice

log = Log(__name__)

AT_ONCE = 50
TRIES = 12  # over about half a day
FIRST_WAIT = timedelta(seconds=10)
LEASE = timedelta(minutes=1)  # longer than any delivery takes
REMEMBERED = timedelta(days=30)  # what was given up

Send = Callable[[str, bytes, Mapping[str, str]], Awaitable[str | None]]  # URL, body, headers -> why it was not taken
LookUp = Callable[[str], str]  # what "env:NAME" stands for


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """Who runs this Kept, and is told of every source."""

    url: str = ""
    secret: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    delivered: int = 0
    put_off: int = 0
    given_up: int = 0
    dropped: int = 0  # nobody wants to know


async def deliver(
    db: Database, send: Send, operator: Operator, *, look_up: LookUp, now: datetime | None = None
) -> Delivered:
    """Delivers what is due, by the database's clock. Ends early where nobody answers: the next pass goes on."""
    fates = Counter[str]()
    while True:
        async with db.snapshot() as snapshot:
            at = now or await moment(snapshot)
            if not await notices.due(snapshot, at, limit=1):
                break
        wanted, unwanted = await _take(db, operator, at)
        answers = await asyncio.gather(*(_told(send, operator, look_up, one, url, at) for one, url in wanted))
        async with db.transaction() as tx:
            page = [await _settle(tx, one, why, at) for (one, _), why in zip(wanted, answers, strict=True)]
        fates.update({"dropped": unwanted})
        fates.update(page)
        if len(page) + unwanted < AT_ONCE or not (unwanted or "delivered" in page):
            break
    return Delivered(**fates)


async def _take(db: Database, operator: Operator, now: datetime) -> tuple[list[tuple[Notice, str]], int]:
    """Notices that are this process's to deliver, and where to; and how many nobody wants any more: they are gone."""
    wanted, unwanted = [], 0
    async with db.transaction() as tx:
        for notice in await notices.take(tx, now, until=now + LEASE, limit=AT_ONCE):
            url = _wanted_at(notice, await sources.get(tx, notice.source_id), operator)
            if url:
                wanted.append((notice, url))
            else:
                await notices.delete(tx, notice.id)
                unwanted += 1
        await notices.forget_given_up(tx, before=now - REMEMBERED)
    return wanted, unwanted


async def _told(send: Send, operator: Operator, look_up: LookUp, notice: Notice, url: str, now: datetime) -> str | None:
    """None if it was heard, else why not."""
    try:
        body = body_of(notice)
        return await send(look_up(url), body, headers_of(notice, body, look_up(operator.secret), now))
    except (SecretUnavailable, WrongCall) as error:  # of the operator's settings, on this machine
        return str(error)


async def _settle(tx: Connection, notice: Notice, why: str | None, now: datetime) -> str:
    """Which of the numbers of ``Delivered`` it counts to."""
    if why is None:
        await notices.delete(tx, notice.id)
        return "delivered"
    due = now + back_off(notice.attempts) if notice.attempts < TRIES else None
    await notices.put_off(tx, notice, due=due, error=why)
    what = {"what": notice.event, "notice": notice.id, "tries": notice.attempts}
    log.warning("webhook not delivered", **what, reason=why, next=str(due))
    return "put_off" if due else "given_up"


def _wanted_at(notice: Notice, source: Source | None, operator: Operator) -> str:
    """Where to deliver it, as of now; empty: nobody wants to know any more."""
    if source is None:
        return ""
    return operator.url if notice.receiver == "operator" else source.settings.webhook


def body_of(notice: Notice) -> bytes:
    told = {"id": notice.id, "event": notice.event, "at": notice.created_at.isoformat(), **notice.payload}
    return json.dumps(told).encode()


def headers_of(notice: Notice, body: bytes, secret: str, now: datetime) -> dict[str, str]:
    """Without a secret there is no signature."""
    timestamp = str(int(now.timestamp()))
    headers = {
        "Content-Type": "application/json",
        "Kept-Event": notice.event,
        "Kept-Delivery": notice.id,
        "Kept-Timestamp": timestamp,
    }
    return headers | ({"Kept-Signature": f"sha256={sign(secret, timestamp, body)}"} if secret else {})


def sign(secret: str, timestamp: str, body: bytes) -> str:
    return hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()


def back_off(tries: int) -> timedelta:
    """Twice as long after each."""
    return FIRST_WAIT * (1 << (tries - 1))
