"""Where the crawl of a site begins: its root, and what its seed lists name; and whether they are right about times."""

from collections.abc import AsyncIterator, Iterable, Set

from kept.crawl.change_rate import is_modified_since, is_sitemap_wrong
from kept.crawl.context import CrawlContext
from kept.crawl.decide import NewContent, Unchanged
from kept.crawl.full_listing import chunk_listing
from kept.crawl.settle import VisitResult
from kept.model.frontier import ListedUrl, ListingFailure
from kept.model.job import CrawlMode
from kept.store import documents, generations, jobs, sources
from kept.store.database import parse_time
from kept.store.frontier import DiscoveredUrl


class SiteSeeds:
    """What is listed, and what that claims to be modified."""

    def __init__(self, context: CrawlContext) -> None:
        self._context = context
        self._claimed_modified: set[str] = set()  # URLs that a seed list calls modified
        self._checked_claims = self._confirmed_claims = 0  # those of them that were visited, and that were

    async def list_seeds(self, unlisted: list[ListingFailure]) -> AsyncIterator[list[DiscoveredUrl]]:
        """The seeds, as they come. What could not be listed goes to ``unlisted``."""
        quick = self._context.job.mode is CrawlMode.QUICK
        trusted = self._context.source.sitemap_wrong_at is None
        async for chunk in chunk_listing(self._context.origin.list(), unlisted):
            newer = await self._find_modified(chunk) if self._context.base_generation is not None else frozenset()
            wanted = {self._context.source.root, *(newer if trusted else ())}
            self._claimed_modified |= newer if trusted or not quick else frozenset()
            yield [DiscoveredUrl(url=one.url, depth=0, visit_if_known=one.url in wanted) for one in chunk]

    def check_claims(self, visited: Iterable[VisitResult]) -> None:
        """Other bytes are a modification, even where they say the same."""
        decisions = (
            [one.decision for one in visited if one.entry.url in self._claimed_modified]
            if self._claimed_modified
            else []
        )
        answered = [one for one in decisions if isinstance(one, NewContent | Unchanged)]
        self._checked_claims += len(answered)
        self._confirmed_claims += sum(isinstance(one, NewContent) or one.renewal is not None for one in answered)

    async def judge_sitemap(self) -> None:
        """Whether what the sitemap says of times can be believed next time."""
        wrong = is_sitemap_wrong(claims=self._checked_claims, confirmed=self._confirmed_claims)
        if wrong is not None and wrong != (self._context.source.sitemap_wrong_at is not None):
            async with self._context.db.transaction() as tx:
                await jobs.lock_lease(tx, self._context.lease)
                await sources.set_sitemap_wrong(tx, self._context.source.id, wrong=wrong)

    async def _find_modified(self, listed: list[ListedUrl]) -> Set[str]:
        """What is known and, as the origin says, was modified since it was last visited."""
        listed = [one for one in listed if one.modified_at]
        if not listed:
            return frozenset()
        async with self._context.db.snapshot() as snapshot:
            last = await generations.last_verified(snapshot, self._context.source.id)
            known = await documents.upcoming_by_url(
                snapshot,
                self._context.source.id,
                [one.url for one in listed],
                generation=self._context.job.generation or 0,
            )
        fetched = {row["url"]: parse_time(row["fetched_at"]) for row in known}
        visited = {url: max(at, last or at) for url, at in fetched.items()}
        return {one.url for one in listed if one.url in visited and is_modified_since(one, visited[one.url])}
