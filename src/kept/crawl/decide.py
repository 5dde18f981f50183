"""The decision about one visited URL.

Pure: an entry, the origin's answer and the parsed page go in, a decision comes out.
"""

import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias, assert_never

from kept.model.document import ParsedPage, Unreadable, Validators
from kept.model.frontier import (
    Fetched,
    FrontierEntry,
    Gone,
    ListedUrl,
    MetadataUpdate,
    NotModified,
    Outcome,
    Redirected,
    Refused,
    StoredPage,
    Unreachable,
    Visit,
)
from kept.model.robots_directives import RobotsDirectives

MAX_ATTEMPTS = 4
MAX_RETRY_AFTER = timedelta(minutes=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewContent:
    """The page has new content: a version is added."""

    page: ParsedPage
    fetched: Fetched
    raw_hash: str
    outcome: Outcome
    read_again: bool = False  # the bytes are the same, but the reader changed

    @property
    def links(self) -> tuple[str, ...]:
        return self.page.links


@dataclass(frozen=True, slots=True, kw_only=True)
class Unchanged:
    """The stored version stays, perhaps with new metadata."""

    links: tuple[str, ...]
    metadata_update: MetadataUpdate | None = None
    status: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NotKept:
    """Nothing to store: moved, gone, failed or skipped. Its ``links`` are followed nevertheless."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitResult:
    """A visited entry and the decision about it."""

    entry: FrontierEntry
    decision: Decision
    bytes: int = 0


def is_conditional(entry: FrontierEntry, signature: str, *, full: bool) -> bool:
    """Whether to send validators: a stored version has some and was read by today's pipeline."""
    return (
        not full
        and entry.base_version is not None
        and bool(entry.base_version.validators)
        and entry.base_version.signature == signature
    )


def needs_no_visit(listed: ListedUrl, stored: StoredPage, signature: str) -> bool:
    """Whether a complete list alone proves that the page is unchanged."""
    return bool(listed.etag) and stored.validators == Validators(etag=listed.etag) and stored.signature == signature


def needs_reading(entry: FrontierEntry, raw_hash: str, signature: str) -> bool:
    """Whether the body has to be read. Equal bytes mean equal content only if today's pipeline read them before."""
    return (
        entry.base_version is None
        or entry.base_version.raw_hash != raw_hash
        or entry.base_version.signature != signature
    )


def decide(
    entry: FrontierEntry,
    visit: Visit,
    page: ParsedPage | Unreadable | None,
    *,
    raw_hash: str,
    signature: str,
    now: datetime,
    conditional: bool,
) -> Decision:
    """Decide about a visited entry. ``page`` is None where the body needed no reading."""
    base = entry.base_version
    match visit:
        case NotModified() if not conditional:
            return _fail_entry(entry, "answered 304 Not Modified to an unconditional request", visit.status)
        case NotModified():
            assert base is not None, "only requests for a stored version are conditional"
            return Unchanged(links=base.links, status=visit.status)
        case Fetched():
            return _decide_fetched(entry, visit, page, raw_hash=raw_hash, signature=signature)
        case Redirected(to=to):
            return _decide_redirect(entry, to, f"redirects to {to}", visit.status)
        case Gone(reason=reason):
            outcome = Outcome.GONE if base else Outcome.DEAD_LINK
            return NotKept(outcome=outcome, reason=reason, status=visit.status)
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
    entry: FrontierEntry, fetched: Fetched, page: ParsedPage | Unreadable | None, *, raw_hash: str, signature: str
) -> Decision:
    base, status = entry.base_version, fetched.status
    if isinstance(page, Unreadable) and page.is_reader_failure and base:
        return _fail_entry(entry, page.reason, status)  # a reader's failure must not lose a page that was read before
    if isinstance(page, Unreadable):
        return NotKept(outcome=Outcome.SKIPPED, reason=page.reason, status=status)
    robots = (
        RobotsDirectives()
        if fetched.robots_directives is None
        else fetched.robots_directives | (page.robots_directives if page else RobotsDirectives())
    )
    links, canonical = (page.links, page.canonical) if page else (base.links, base.canonical) if base else ((), None)
    links, canonical = () if robots.nofollow else links, None if canonical == entry.url else canonical
    if robots.noindex:
        return NotKept(outcome=Outcome.SKIPPED, reason="the page asks not to be kept", status=status, links=links)
    if page and page.moved_to and page.moved_to != entry.url:
        return _decide_redirect(entry, page.moved_to, f"sends its reader to {page.moved_to}", status)
    if page and not page.content.sections:
        return NotKept(outcome=Outcome.SKIPPED, reason="it has no text to read", status=status, links=links)
    if base is not None and (page is None or page.content.hash == base.content_hash):
        stored = MetadataUpdate(
            validators=base.validators,
            raw_hash=base.raw_hash,
            signature=base.signature,
            links=base.links,
            canonical=base.canonical,
        )
        current = MetadataUpdate(
            validators=fetched.validators, raw_hash=raw_hash, signature=signature, links=links, canonical=canonical
        )
        return Unchanged(links=links, metadata_update=None if current == stored else current, status=status)
    assert page is not None, "only stored bytes need no reading"
    page = page._replace(links=links, canonical=canonical)
    read_again = base is not None and base.raw_hash == raw_hash
    outcome = Outcome.NEW if base is None else Outcome.UNCHANGED if read_again else Outcome.CHANGED
    return NewContent(page=page, fetched=fetched, raw_hash=raw_hash, outcome=outcome, read_again=read_again)


def _decide_redirect(entry: FrontierEntry, to: str, reason: str, status: int | None) -> NotKept:
    outcome = Outcome.SKIPPED if entry.base_version is None else Outcome.MOVED
    return NotKept(outcome=outcome, reason=reason, status=status, redirect_to=to)


def backoff_delay(attempts: int) -> timedelta:
    """Return the delay before the next attempt: about one second, doubled each time."""
    return timedelta(seconds=2**attempts * random.uniform(0.75, 1.25))


def _fail_entry(entry: FrontierEntry, reason: str, status: int | None) -> NotKept:
    links = entry.base_version.links if entry.base_version else ()
    return NotKept(outcome=Outcome.FAILED, reason=reason, status=status, links=links)
