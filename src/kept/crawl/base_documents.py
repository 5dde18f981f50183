"""The documents of the base, looked up as an origin lists them: those of a large folder need not fit into memory."""

from array import array
from bisect import bisect_left
from collections.abc import Sequence, Set
from itertools import groupby

from kept.crawl.context import CrawlContext
from kept.model.frontier import StoredEtag, StoredPage
from kept.store import frontier

URLS_PER_PAGE = 10_000
IDS_PER_QUERY = 2_000


class BaseDocuments:
    """Looks up what the base of a crawl shows, and remembers which of it was listed again."""

    def __init__(self, context: CrawlContext) -> None:
        self._context = context
        self._listed = array("q")  # version ids
        self.count = 0

    async def load_count(self) -> None:
        if self._context.base_generation is not None:
            async with self._context.db.snapshot() as snapshot:
                self.count = await frontier.count_stored(
                    snapshot, source=self._context.source.id, base=self._context.base_generation
                )

    async def find_listed(self, urls: Sequence[str]) -> dict[str, StoredEtag]:
        """Return those at these URLs, with their ETags where these suffice, and remember that they were listed."""
        if not self.count or self._context.base_generation is None:
            return {}
        async with self._context.db.snapshot() as snapshot:
            found = await frontier.stored_etags(
                snapshot,
                urls,
                source=self._context.source.id,
                base=self._context.base_generation,
                signature=self._context.signature,
            )
        self._listed.extend(version for _, version, _ in found.values())
        return found

    async def find_over_limit(self) -> Set[str]:
        """Return the URLs that a lowered limit leaves out."""
        max_pages = self._context.source.settings.limits.max_pages
        if max_pages is None or self.count <= max_pages or self._context.base_generation is None:
            return frozenset()
        async with self._context.db.snapshot() as snapshot:
            return await frontier.stored_urls_over_limit(
                snapshot,
                source=self._context.source.id,
                base=self._context.base_generation,
                max_pages=max_pages,
            )

    async def load_absent(self) -> dict[str, StoredPage]:
        """Return those that were not listed, by URL."""
        listed = array("q", (id for id, _ in groupby(sorted(self._listed))))  # a list may name a page twice
        absent: list[int] = []
        after = ""
        while self._context.base_generation is not None and len(listed) + len(absent) < self.count:
            async with self._context.db.snapshot() as snapshot:
                page = await frontier.stored_urls(
                    snapshot,
                    source=self._context.source.id,
                    base=self._context.base_generation,
                    after=after,
                    limit=URLS_PER_PAGE,
                )
            if not page:
                break
            after = page[-1][0]
            absent += [id for _, id in page if not _has(listed, id)]
        return await self.load(absent)

    async def load(self, versions: Sequence[int]) -> dict[str, StoredPage]:
        """Return the pages of these versions, by URL."""
        found: dict[str, StoredPage] = {}
        for start in range(0, len(versions), IDS_PER_QUERY):
            async with self._context.db.snapshot() as snapshot:
                pages = await frontier.stored_pages(snapshot, versions[start : start + IDS_PER_QUERY])
            found.update((page.url, page) for page in pages)
        return found


def _has(numbers: Sequence[int], number: int) -> bool:
    at = bisect_left(numbers, number)
    return at < len(numbers) and numbers[at] == number
