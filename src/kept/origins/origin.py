"""Where documentation lives: what the engine asks of every origin.

An origin answers with values (``kept.model.frontier``). It raises SourceUnavailable only when the root as a
whole cannot be read, which fails the crawl and deletes nothing.
"""

from collections.abc import AsyncIterator
from typing import Protocol

from kept.model.frontier import Entry, Fetched, Listed, Unlisted, Visit


class Origin(Protocol):
    lists_everything: bool
    """What it does not list is not there. Otherwise only what is no longer reachable can be missing."""

    concurrency: int
    """How many visits may be under way at once."""

    async def open(self) -> None:
        """Makes sure that the root is there and is what it was."""

    def list(self) -> AsyncIterator[Listed | Unlisted]:
        """Everything there is, or the seeds to start from; the root is always among them."""

    def admits(self, url: str) -> bool:
        """Whether a link leads to a page of this source."""

    async def visit(self, entry: Entry, *, conditional: bool) -> Visit:
        """What is at this URL now. Conditional: only if it differs from what is held."""

    async def render(self, entry: Entry, fetched: Fetched) -> Visit | None:
        """What a page without words becomes when its scripts run. None: here it is what it is."""

    async def close(self) -> None: ...
