"""The Origin protocol: what a crawl needs from a place where documentation lives.

An origin answers with values (``kept.model.frontier``). It raises SourceUnavailable only when the root as a whole
cannot be read: the crawl fails then, and deletes nothing. Building an origin connects to nothing and looks up no
secret; that happens in ``probe``, ``open`` and after.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from kept.model.document import Validators
from kept.model.frontier import Fetched, FrontierEntry, ListedUrl, ListingFailure, UrlFamily, Visit


@dataclass(frozen=True, slots=True, kw_only=True)
class HostAllotment:
    """The share of a host's request slots that one crawl holds, among all crawls of that host."""

    slots: int  # concurrent requests allowed now; may be 0
    fair_slots: int  # the share once other crawls have released what exceeds theirs
    reserved_slots: int  # slots that other crawls cannot take yet: granted, or still in use
    crawlers: int  # crawls that share the host
    valid_seconds: float  # how long it holds without renewal

    @property
    def is_balanced(self) -> bool:
        """Return whether no crawl of the host has slots to release or to gain."""
        return self.slots == self.fair_slots == self.reserved_slots


AllotHostSlots: TypeAlias = Callable[[str, int, int], Awaitable[HostAllotment]]
"""Called with a host's name, the concurrency that the source wants, and the number of requests in flight."""


class Origin(Protocol):
    """One source's origin, used by one crawl. The methods with a body are defaults for origins made of files."""

    lists_everything: bool
    """Whether ``list`` yields everything: then what is not listed is missing, otherwise only what is not reachable."""

    @property
    def concurrency(self) -> int:
        """Return how many visits may be in flight at once; 0 when none may for now."""

    def check(self) -> None:
        """Raise InvalidInput unless the settings are valid. Connects to nothing."""
        return

    async def probe(self) -> None:
        """Raise SourceUnavailable unless the root can be reached now: a mistyped address should not become a source."""
        await self.open()

    async def open(self) -> str | None:
        """Make the origin ready for a crawl. Raises SourceUnavailable.

        Returns an identity that tells the root from another one in its place, or None where there is none.
        """

    def list(self, *, include_excluded: bool = False) -> AsyncIterator[ListedUrl | ListingFailure]:
        """Yield everything there is, or the seeds of a crawl; the root is always among them.

        ``include_excluded``: also yield URLs that a list of the site names and the scope leaves out, with the reason.
        """

    def admits(self, url: str) -> bool:
        """Return whether the source's settings admit a URL."""

    def why_excluded(self, url: str) -> str | None:
        """Return why the source's settings leave a URL out; None when they admit it."""

    def find_family(self, url: str) -> UrlFamily | None:
        """Return the family of a URL that may be one of endlessly many; None where there is no such danger."""
        return None

    async def why_forbidden(self, url: str) -> str | None:
        """Return why the origin itself forbids a visit (robots.txt); None when it does not."""
        return None

    async def renew_host_slots(self, allot: AllotHostSlots) -> None:
        """Renew the allotment of every host in use. Called first of all, then about once a second."""
        return

    async def find_renames(self, missing: Mapping[str, Validators], new_urls: Sequence[str]) -> Mapping[str, str]:
        """Return where missing documents are now, among the new URLs, as far as the origin itself records renames.

        Called only where ``lists_everything``. Renames that it does not know may still be found by content.
        """
        return {}

    async def visit(self, entry: FrontierEntry, *, conditional: bool) -> Visit:
        """Fetch a URL. ``conditional``: only if it differs from the version that is stored."""

    async def render(self, entry: FrontierEntry, fetched: Fetched) -> Visit | None:
        """Fetch a page without text again by running its scripts. None when the origin has no scripts to run."""
        return None

    async def read_file(self, url: str) -> bytes | None:
        """Return the bytes of a file that a page of the source includes; None where it may not, or there is none.

        Also of files that are no documents, but never of hidden or ignored ones, nor of any outside the root.
        """
        return None

    async def close(self) -> None:
        """Release connections, processes and temporary files. Safe to call without ``open``."""
