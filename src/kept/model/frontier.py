"""The frontier: the URLs of a job, what visiting one can bring, and what the crawl makes of it."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from kept.model.document import Validators, Version
from kept.model.robots_directives import RobotsDirectives


class Outcome(StrEnum):
    """What visiting one URL came to."""

    NEW = "new"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    MOVED = "moved"
    GONE = "gone"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierEntry:
    """One URL of a job, taken to be visited."""

    url: str
    depth: int
    attempts: int  # visits so far that are to be tried again
    reached: bool  # named by the root, a seed or a reached entry; otherwise only remembered
    base_version: Version | None  # what the base shows at this URL


# What an origin lists: everything it has, or the seeds to start from.


class ListedUrl(NamedTuple):
    """A URL that the origin names. With an ETag, a held version that has the same needs no visit.

    A tuple, because a folder makes one of every file.
    """

    url: str
    etag: str | None = None
    modified_at: datetime | None = None
    excluded: str | None = None  # why the scope leaves it out, where the listing includes such URLs


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingFailure:
    """A part of the list that could not be read. What lies below it is not absent, it is unknown."""

    url: str
    reason: str


# What a visit can bring. A missing page and a slow server are everyday life: values, not exceptions.


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    body: bytes
    content_type: str
    validators: Validators = field(default_factory=Validators)
    status: int | None = None
    final_url: str | None = None  # where a temporary redirect led: its links count from there
    robots_directives: RobotsDirectives | None = (
        RobotsDirectives()
    )  # of its headers; None: what it asks of robots, anywhere, does not count


@dataclass(frozen=True, slots=True, kw_only=True)
class NotModified:
    """The origin says that what we hold is what it has."""

    status: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirected:
    """Permanently elsewhere (301, 308). Temporary redirects are followed by the origin itself."""

    to: str
    status: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """The origin says that there is nothing here."""

    reason: str
    status: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Not to be kept: wrong type, too large, out of scope, forbidden by robots.txt."""

    reason: str
    by_settings: bool = False  # our own settings exclude it, not the origin
    status: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreachable:
    """It may be there, but cannot be read now."""

    reason: str
    status: int | None = None
    is_retryable: bool = True  # False: trying again within this crawl would change nothing
    retry_after: timedelta | None = None


Visit: TypeAlias = Fetched | NotModified | Redirected | Gone | Refused | Unreachable
