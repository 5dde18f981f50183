"""What a crawl makes of a visit: everything it decides about one URL, on one screen.

Pure: an entry, what its origin answered and what the reader made of it go in, a decision comes out.
"""

import random
from datetime import datetime, timedelta
from typing import TypeAlias, assert_never

from kept.extract.sections import Unreadable
from kept.model.document import Reading, Validators
from kept.model.frontier import (
    Entry,
    Fetched,
    Gone,
    Listed,
    NotModified,
    Outcome,
    Redirected,
    Refused,
    Unreachable,
    Visit,
)
from kept.model.nouns import dataclass
from kept.model.wishes import Wishes
from kept.store.frontier import HeldUrl, Renewal

ATTEMPTS = 4
LONGEST_WAIT = timedelta(minutes=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """New content: a version is born."""

    reading: Reading
    fetched: Fetched
    raw_hash: str
    outcome: Outcome
    read_again: bool = False  # the same bytes, read by another reader

    @property
    def links(self) -> tuple[str, ...]:
        return self.reading.links


@dataclass(frozen=True, slots=True, kw_only=True)
class Unchanged:
    """The version that is held lives on."""

    links: tuple[str, ...]
    renewal: Renewal | None = None
    status: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """Nothing to keep: moved, gone, failed or skipped. ``links`` are those that are followed all the same."""

    outcome: Outcome
    reason: str
    status: int | None = None
    by_settings: bool = False
    redirect_to: str | None = None
    links: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TryAgain:
    at: datetime
    reason: str
    status: int | None = None


Decision: TypeAlias = Keep | Unchanged | Ended | TryAgain


def is_conditional(entry: Entry, signature: str, *, full: bool) -> bool:
    """Whether "only if it changed" may be asked: we hold what it was, read the way we read today."""
    return not full and entry.held is not None and bool(entry.held.validators) and entry.held.signature == signature


def needs_no_visit(listed: Listed, held: HeldUrl, signature: str) -> bool:
    """The quick check of an origin that lists everything."""
    return bool(listed.etag) and held.validators == Validators(etag=listed.etag) and held.signature == signature


def needs_reading(entry: Entry, raw_hash: str, signature: str) -> bool:
    """The same bytes count as the same content only if the same reader read them."""
    return entry.held is None or entry.held.raw_hash != raw_hash or entry.held.signature != signature


def decide(
    entry: Entry,
    visit: Visit,
    read: Reading | Unreadable | None,
    *,
    raw_hash: str,
    signature: str,
    now: datetime,
    conditional: bool,
) -> Decision:
    """What becomes of an entry. ``read`` is None where the bytes are those that are held already."""
    held = entry.held
    match visit:
        case NotModified() if not conditional:
            return _failed(entry, "answered 'not modified' to a question that was not asked", visit.status)
        case NotModified():
            assert held is not None, "only what is held is asked about in this way"
            return Unchanged(links=held.links, status=visit.status)
        case Fetched():
            return _decide_about_content(entry, visit, read, raw_hash=raw_hash, signature=signature)
        case Redirected(to=to):
            return _redirected(entry, to, f"redirects to {to}", visit.status)
        case Gone(reason=reason):
            return Ended(outcome=Outcome.GONE, reason=reason, status=visit.status)
        case Refused(reason=reason, by_settings=by_settings):
            return Ended(outcome=Outcome.SKIPPED, reason=reason, status=visit.status, by_settings=by_settings)
        case Unreachable(reason=reason, retry=True, retry_after=wait) if (
            entry.attempts + 1 < ATTEMPTS and (wait or timedelta()) <= LONGEST_WAIT
        ):
            return TryAgain(at=now + (wait or back_off(entry.attempts)), reason=reason, status=visit.status)
        case Unreachable(reason=reason):
            return _failed(entry, reason, visit.status)
        case _:
            assert_never(visit)


def _decide_about_content(
    entry: Entry, fetched: Fetched, read: Reading | Unreadable | None, *, raw_hash: str, signature: str
) -> Decision:
    held, status = entry.held, fetched.status
    if isinstance(read, Unreadable) and read.broke and held:
        return _failed(entry, read.reason, status)  # what was read well before is not lost to a reader's fault
    if isinstance(read, Unreadable):
        return Ended(outcome=Outcome.SKIPPED, reason=read.reason, status=status)
    wishes = Wishes() if fetched.wishes is None else fetched.wishes | (read.wishes if read else Wishes())
    links, canonical = (read.links, read.canonical) if read else (held.links, held.canonical) if held else ((), None)
    links, canonical = () if wishes.nofollow else links, None if canonical == entry.url else canonical
    if wishes.noindex:
        return Ended(outcome=Outcome.SKIPPED, reason="the page asks not to be kept", status=status, links=links)
    if read and read.moved_to and read.moved_to != entry.url:
        return _redirected(entry, read.moved_to, f"sends its reader to {read.moved_to}", status)
    if held is not None and (read is None or read.content.hash == held.content_hash):
        known = Renewal(
            validators=held.validators,
            raw_hash=held.raw_hash,
            signature=held.signature,
            links=held.links,
            canonical=held.canonical,
        )
        renewal = Renewal(
            validators=fetched.validators, raw_hash=raw_hash, signature=signature, links=links, canonical=canonical
        )
        return Unchanged(links=links, renewal=None if renewal == known else renewal, status=status)
    assert read is not None, "only bytes that are held need no reading"
    read = read._replace(links=links, canonical=canonical)
    again = held is not None and held.raw_hash == raw_hash
    outcome = Outcome.NEW if held is None else Outcome.UNCHANGED if again else Outcome.CHANGED
    return Keep(reading=read, fetched=fetched, raw_hash=raw_hash, outcome=outcome, read_again=again)


def _redirected(entry: Entry, to: str, reason: str, status: int | None) -> Ended:
    outcome = Outcome.SKIPPED if entry.held is None else Outcome.MOVED
    return Ended(outcome=outcome, reason=reason, status=status, redirect_to=to)


def back_off(attempts: int) -> timedelta:
    """One second, then about twice as long each time."""
    return timedelta(seconds=2**attempts * random.uniform(0.75, 1.25))


def _failed(entry: Entry, reason: str, status: int | None) -> Ended:
    links = entry.held.links if entry.held else ()
    return Ended(outcome=Outcome.FAILED, reason=reason, status=status, links=links)
