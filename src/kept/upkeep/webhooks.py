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
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto

from kept.errors import SecretUnavailable, WrongCall
from kept.log import Log
from kept.model.source import Source
from kept.store import notices, sources
from kept.store.database import Database, moment
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


class _Fate(Enum):
    DELIVERED = auto()
    PUT_OFF = auto()
    GIVEN_UP = auto()
    DROPPED = auto()
    TAKEN = auto()  # by another process


async def deliver(
    db: Database, send: Send, operator: Operator, *, look_up: LookUp, now: datetime | None = None
) -> Delivered:
    """Delivers what is due, by the database's clock. Ends early where nobody answers: the next pass goes on."""
    fates: list[_Fate] = []
    while True:
        async with db.snapshot() as snapshot:
            at = now or await moment(snapshot)
            due = await notices.due(snapshot, at, limit=AT_ONCE)
        page = await asyncio.gather(*(_deliver(db, send, operator, look_up, one, at) for one in due))
        fates += page
        if len(due) < AT_ONCE or not {_Fate.DELIVERED, _Fate.DROPPED} & set(page):
            break
    if due:
        async with db.transaction() as tx:
            await notices.forget_given_up(tx, before=at - REMEMBERED)
    return Delivered(
        delivered=fates.count(_Fate.DELIVERED),
        put_off=fates.count(_Fate.PUT_OFF),
        given_up=fates.count(_Fate.GIVEN_UP),
        dropped=fates.count(_Fate.DROPPED),
    )


async def _deliver(
    db: Database, send: Send, operator: Operator, look_up: LookUp, notice: Notice, now: datetime
) -> _Fate:
    async with db.transaction() as tx:
        source = await sources.get(tx, notice.source_id)
        said = _said(notice, source, operator)
        if not said:
            await notices.delete(tx, notice.id)
            return _Fate.DROPPED
        if not await notices.take(tx, notice, until=now + LEASE):
            return _Fate.TAKEN
    try:
        body = body_of(notice)
        why = await send(look_up(said), body, headers_of(notice, body, look_up(operator.secret), now))
    except (SecretUnavailable, WrongCall) as error:  # of the operator's settings, on this machine
        why = str(error)
    tries = notice.attempts + 1
    async with db.transaction() as tx:
        if why is None:
            await notices.delete(tx, notice.id)
            return _Fate.DELIVERED
        due = now + back_off(tries) if tries < TRIES else None
        await notices.put_off(tx, notice, attempts=tries, due=due, error=why)
    log.warning("webhook not delivered", what=notice.event, notice=notice.id, tries=tries, reason=why, next=str(due))
    return _Fate.PUT_OFF if due else _Fate.GIVEN_UP


def _said(notice: Notice, source: Source | None, operator: Operator) -> str:
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
