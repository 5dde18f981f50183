"""What a crawl makes of a visit: everything it decides about one URL, on one screen.

Pure: an entry, what its origin answered and what the reader made of it go in, a decision comes out.
"""

import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias, assert_never

from kept.extract.sections import Unreadable
from kept.model.document import ParsedPage, Validators
from kept.model.frontier import (
    Fetched,
    FrontierEntry,
    Gone,
    ListedUrl,
    NotModified,
    Outcome,
    Redirected,
    Refused,
    Unreachable,
    Visit,
)
from kept.model.robots_directives import RobotsDirectives
from kept.store.frontier import MetadataUpdate, StoredPage

MAX_ATTEMPTS = 4
MAX_RETRY_AFTER = timedelta(minutes=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewContent:
    """New content: a version is born."""

    reading: ParsedPage
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
    renewal: MetadataUpdate | None = None
    status: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NotKept:
    """Nothing to keep: moved, gone, failed or skipped. ``links`` are those that are followed all the same."""

    outcome: Outcome
    reason: str
    status: int | None = None
    by_settings: bool = False
    redirect_to: str | None = None
    links: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryLater:
    retry_at: datetime
    reason: str
    status: int | None = None


Decision: TypeAlias = NewContent | Unchanged | NotKept | RetryLater


def is_conditional(entry: FrontierEntry, signature: str, *, full: bool) -> bool:
    """Whether "only if it changed" may be asked: we hold what it was, read the way we read today."""
    return (
        not full
        and entry.base_version is not None
        and bool(entry.base_version.validators)
        and entry.base_version.signature == signature
    )


def needs_no_visit(listed: ListedUrl, held: StoredPage, signature: str) -> bool:
    """The quick check of an origin that lists everything."""
    return bool(listed.etag) and held.validators == Validators(etag=listed.etag) and held.signature == signature


def needs_reading(entry: FrontierEntry, raw_hash: str, signature: str) -> bool:
    """The same bytes count as the same content only if the same reader read them."""
    return (
        entry.base_version is None
        or entry.base_version.raw_hash != raw_hash
        or entry.base_version.signature != signature
    )


def decide(
    entry: FrontierEntry,
    visit: Visit,
    read: ParsedPage | Unreadable | None,
    *,
    raw_hash: str,
    signature: str,
    now: datetime,
    conditional: bool,
) -> Decision:
    """What becomes of an entry. ``read`` is None where the bytes are those that are held already."""
    held = entry.base_version
    match visit:
        case NotModified() if not conditional:
            return _fail_entry(entry, "answered 'not modified' to a question that was not asked", visit.status)
        case NotModified():
            assert held is not None, "only what is held is asked about in this way"
            return Unchanged(links=held.links, status=visit.status)
        case Fetched():
            return _decide_fetched(entry, visit, read, raw_hash=raw_hash, signature=signature)
        case Redirected(to=to):
            return _decide_redirect(entry, to, f"redirects to {to}", visit.status)
        case Gone(reason=reason):
            return NotKept(outcome=Outcome.GONE, reason=reason, status=visit.status)
        case Refused(reason=reason, by_settings=by_settings):
            return NotKept(outcome=Outcome.SKIPPED, reason=reason, status=visit.status, by_settings=by_settings)
        case Unreachable(reason=reason, is_retryable=True, retry_after=wait) if (
            entry.attempts + 1 < MAX_ATTEMPTS and (wait or timedelta()) <= MAX_RETRY_AFTER
        ):
            return RetryLater(
                retry_at=now + (wait or backoff_delay(entry.attempts)), reason=reason, status=visit.status
            )
        case Unreachable(reason=reason):
            return _fail_entry(entry, reason, visit.status)
        case _:
            assert_never(visit)


def _decide_fetched(
    entry: FrontierEntry, fetched: Fetched, read: ParsedPage | Unreadable | None, *, raw_hash: str, signature: str
) -> Decision:
    held, status = entry.base_version, fetched.status
    if isinstance(read, Unreadable) and read.is_reader_failure and held:
        return _fail_entry(entry, read.reason, status)  # what was read well before is not lost to a reader's fault
    if isinstance(read, Unreadable):
        return NotKept(outcome=Outcome.SKIPPED, reason=read.reason, status=status)
    wishes = (
        RobotsDirectives()
        if fetched.robots_directives is None
        else fetched.robots_directives | (read.robots_directives if read else RobotsDirectives())
    )
    links, canonical = (read.links, read.canonical) if read else (held.links, held.canonical) if held else ((), None)
    links, canonical = () if wishes.nofollow else links, None if canonical == entry.url else canonical
    if wishes.noindex:
        return NotKept(outcome=Outcome.SKIPPED, reason="the page asks not to be kept", status=status, links=links)
    if read and read.moved_to and read.moved_to != entry.url:
        return _decide_redirect(entry, read.moved_to, f"sends its reader to {read.moved_to}", status)
    if held is not None and (read is None or read.content.hash == held.content_hash):
        known = MetadataUpdate(
            validators=held.validators,
            raw_hash=held.raw_hash,
            signature=held.signature,
            links=held.links,
            canonical=held.canonical,
        )
        renewal = MetadataUpdate(
            validators=fetched.validators, raw_hash=raw_hash, signature=signature, links=links, canonical=canonical
        )
        return Unchanged(links=links, renewal=None if renewal == known else renewal, status=status)
    assert read is not None, "only bytes that are held need no reading"
    read = read._replace(links=links, canonical=canonical)
    again = held is not None and held.raw_hash == raw_hash
    outcome = Outcome.NEW if held is None else Outcome.UNCHANGED if again else Outcome.CHANGED
    return NewContent(reading=read, fetched=fetched, raw_hash=raw_hash, outcome=outcome, read_again=again)


def _decide_redirect(entry: FrontierEntry, to: str, reason: str, status: int | None) -> NotKept:
    outcome = Outcome.SKIPPED if entry.base_version is None else Outcome.MOVED
    return NotKept(outcome=outcome, reason=reason, status=status, redirect_to=to)


def backoff_delay(attempts: int) -> timedelta:
    """One second, then about twice as long each time."""
    return timedelta(seconds=2**attempts * random.uniform(0.75, 1.25))


def _fail_entry(entry: FrontierEntry, reason: str, status: int | None) -> NotKept:
    links = entry.base_version.links if entry.base_version else ()
    return NotKept(outcome=Outcome.FAILED, reason=reason, status=status, links=links)
