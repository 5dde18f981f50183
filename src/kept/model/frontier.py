"""The frontier: the URLs of a job, what an origin answers to a visit, and the outcome of the visit."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from kept.model.document import Lifecycle, Validators, Version
from kept.model.robots_directives import RobotsDirectives


class Outcome(StrEnum):
    """The result of visiting one URL."""

    NEW = "new"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    MOVED = "moved"
    GONE = "gone"  # a document that is no longer there
    DEAD_LINK = "dead_link"  # there is nothing, and nothing was kept there before
    FAILED = "failed"
    SKIPPED = "skipped"

    @property
    def tally_field(self) -> str:
        """Return the name of its count in a Tally."""
        return "dead_links" if self is Outcome.DEAD_LINK else self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierEntry:
    """One URL of a job, leased to be visited."""

    url: str
    depth: int
    attempts: int  # visits so far that ended in a retry
    reached: bool  # named by the root, a seed or a reached entry; False: only known from the base
    base_version: Version | None  # the version that the base has at this URL


# Listings: everything an origin has, or the seeds to start from. ---------------------------------------------------


class ListedUrl(NamedTuple):
    """A URL that the origin lists. A stored version with the same ETag needs no visit.

    A tuple, because a folder makes one for every file.
    """

    url: str
    etag: str | None = None
    modified_at: datetime | None = None
    excluded: str | None = None  # why the scope leaves it out, where the listing includes such URLs


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingFailure:
    """A part of the list that could not be read. URLs below it are unknown, not absent."""

    url: str
    reason: str


# Visits. A missing page and a slow server are ordinary: values, not exceptions. ------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    body: bytes
    content_type: str
    validators: Validators = field(default_factory=Validators)
    status: int | None = None
    final_url: str | None = None  # the end of a temporary redirect; relative links are resolved against it
    robots_directives: RobotsDirectives | None = RobotsDirectives()  # of its headers; None: ignore the page's own too


@dataclass(frozen=True, slots=True, kw_only=True)
class NotModified:
    """The stored version is current."""

    status: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirected:
    """A permanent redirect (301, 308). Temporary redirects are followed by the origin itself."""

    to: str
    status: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """There is nothing at this URL."""

    reason: str
    status: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Not to be kept: wrong type, too large, out of scope, forbidden by robots.txt."""

    reason: str
    by_settings: bool = False  # the source's settings exclude it, not the origin
    status: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreachable:
    """The page may exist, but cannot be read now."""

    reason: str
    status: int | None = None
    is_retryable: bool = True  # False: a retry within this crawl is pointless
    retry_after: timedelta | None = None


Visit: TypeAlias = Fetched | NotModified | Redirected | Gone | Refused | Unreachable


# Guards: what they hold back until nothing else is left to visit, and decide then. -------------------------------


LIMIT_REASON = "a limit was reached"


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlFamily:
    """URLs of one pattern that may be endless, such as the months of a calendar, and how far a crawl follows them.

    A round admits what other pages and the rounds before led to. Pages that are all listed somewhere need one round;
    pages that only lead from one to the next need as many as there are.
    """

    key: str  # what its URLs have in common
    max_rounds: int
    max_urls: int | None = None  # None: any number
    trap_reason: str = ""  # why those beyond are refused


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyProgress:
    """How far a crawl has followed a family."""

    rounds: int = 0
    urls: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeferredEntry:
    """An entry that waits for the guards' decision."""

    id: int
    url: str
    depth: int
    family: str | None
    is_document: bool  # the base has it, or a document moved here


# Entries to insert, and how they are settled. ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveredUrl:
    """A URL that a reached entry links or redirects to, or that a seed list names."""

    url: str
    depth: int
    parent: str | None = None
    moved_document_id: str | None = None  # the document that a redirect moves here
    reached: bool = True
    visit_if_known: bool = False  # a quick crawl visits it even if the base has it
    family: str | None = None  # the key of its URL family
    deferred: bool = False  # wait until nothing else is left to visit; then the guards decide


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedEntry:
    """An entry made from a complete list. With an outcome, it needs no visit."""

    url: str
    version_id: int | None = None
    document_id: str | None = None
    depth: int = 0
    outcome: Outcome | None = None
    reason: str | None = None
    by_settings: bool = False
    redirect_to: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataUpdate:
    """Metadata of an unchanged page that differs from its living version. Activation applies it."""

    validators: Validators
    raw_hash: str
    signature: str
    links: tuple[str, ...]
    canonical: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledEntry:
    """An entry with its final outcome."""

    url: str
    outcome: Outcome
    reason: str | None = None
    http_status: int | None = None
    document_id: str | None = None
    by_settings: bool = False
    redirect_to: str | None = None
    metadata_update: MetadataUpdate | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryRetry:
    """An entry that is to be visited again later."""

    url: str
    due_at: datetime
    reason: str
    http_status: int | None = None


# What the store knows of entries and of the base's pages. ----------------------------------------------------------


StoredEtag: TypeAlias = tuple[str, int, str | None]
"""URL, version id, and the ETag if it alone proves the page unchanged. A plain row: a refresh has one per file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPage:
    """The base's version at a URL, as far as a complete list is compared with it."""

    url: str
    version_id: int
    document_id: str
    depth: int = 0
    validators: Validators = Validators()
    signature: str = ""
    needs_entry: bool = False  # activation needs its outcome even if it is unchanged


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedPage:
    """A page of the active generation that changed before, with its history as far as it is kept."""

    entry: ListedEntry
    changes: int
    known_since: datetime
    fetched_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenEntries:
    """Which entries of a job are not settled yet."""

    has_any: bool
    has_reached: bool  # some of them are reached, and not deferred
    has_deferred: bool
    next_due_at: datetime | None  # of those that are not leased; None: all are leased


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryResult:
    """The outcome of one entry; None while it is open."""

    url: str
    outcome: Outcome | None
    reason: str | None
    by_settings: bool
    was_visited: bool
    version_id: int | None  # the base's version at this URL
    document_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RedirectedEntry:
    """An entry that redirects to another URL, and the result of that one, if it is in the frontier."""

    url: str
    depth: int
    reached: bool
    version_id: int | None  # the base's version at this URL
    redirect_to: str
    target: EntryResult | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExceptionalEntry:
    """A document, or a redirect, that did not simply stay unchanged."""

    url: str
    depth: int
    outcome: Outcome
    reason: str | None
    by_settings: bool
    redirect_to: str | None
    reached: bool
    document_id: str | None
    content_id: int | None  # of the base's version
    lifecycle: Lifecycle | None
    since: datetime | None
    missed_crawls: int
    retry_count: int
    verified_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CanonicalEntry:
    """A page of this crawl that names another URL as its canonical one, and its current version."""

    entry: ExceptionalEntry
    canonical: str
    version_id: int
    content_id: int
    content_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """The result of one URL in a crawl."""

    source: str  # its label
    url: str
    outcome: str | None  # None: it has not been visited yet
    reason: str | None
    http_status: int | None
    attempts: int
    depth: int
    discovered_from: str | None
    visited_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NotKeptReason:
    """Why some URLs were not kept."""

    outcome: str
    reason: str
    count: int
    examples: list[str] = field(default_factory=list)
    linked_from: dict[str, str] = field(default_factory=dict)  # of dead links: a page that links there, by URL


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedEntry:
    """A URL that a batch has settled."""

    id: int
    batch: int
    url: str
    outcome: str
    reason: str | None
    http_status: int | None
    depth: int
    document_id: str | None
    redirect_to: str | None
    visited_at: datetime
    removed: bool = False  # the job's generation no longer shows the document that was here


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledBatch:
    """How many entries a batch settled, and when."""

    entries: int
    settled_at: datetime
