"""Where documentation lives: what the engine asks of every origin.

An origin answers with values (``kept.model.frontier``). It raises SourceUnavailable only when the root as a
whole cannot be read, which fails the crawl and deletes nothing.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from kept.model.document import Validators
from kept.model.frontier import Fetched, FrontierEntry, ListedUrl, ListingFailure, Visit


@dataclass(frozen=True, slots=True, kw_only=True)
class HostAllotment:
    """What one crawl may ask of a host, among all who crawl there."""

    slots: int  # requests at once; 0: none for now
    fair_slots: int  # what it comes to when the others have given up what is not theirs any more
    reserved_slots: int  # what the others may not have yet: the slots, and what is still in use
    crawlers: int  # how many share the host
    valid_seconds: float  # for so long, unless it is renewed

    @property
    def is_balanced(self) -> bool:
        """Nobody has to give up or to take anything."""
        return self.slots == self.fair_slots == self.reserved_slots


AllotHostSlots: TypeAlias = Callable[[str, int, int], Awaitable[HostAllotment]]
"""Asked for a host's name, what the source would have at once, and what is under way."""


class Origin(Protocol):
    lists_everything: bool
    """What it does not list is not there. Otherwise only what is no longer reachable can be missing."""

    @property
    def concurrency(self) -> int:
        """How many visits may be under way at once; 0: none for now."""

    async def renew_host_slots(self, allot: AllotHostSlots) -> None:
        """Called before all else, then about once a second: what may be asked of each host is renewed."""

    async def open(self) -> str | None:
        """Makes sure that the root is there. What tells it from another in its place, where that can be said."""

    def list(self) -> AsyncIterator[ListedUrl | ListingFailure]:
        """Everything there is, or the seeds to start from; the root is always among them."""

    def admits(self, url: str) -> bool:
        """Whether a link leads to a page of this source."""

    async def find_renames(self, missing: Mapping[str, Validators], new_urls: Sequence[str]) -> Mapping[str, str]:
        """Of what it does not list any more, where it says that it is now: among the URLs that have ``arrived``.

        Only what lists everything is asked. What it does not know may still be told by its content.
        """

    async def visit(self, entry: FrontierEntry, *, conditional: bool) -> Visit:
        """What is at this URL now. Conditional: only if it differs from what is held."""

    async def render(self, entry: FrontierEntry, fetched: Fetched) -> Visit | None:
        """What a page without words becomes when its scripts run. None: here it is what it is."""

    async def close(self) -> None: ...
