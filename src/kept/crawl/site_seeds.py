"""The seeds of a web site: its root and what its sitemap and llms.txt name; and whether their dates can be trusted."""

from collections.abc import AsyncIterator, Iterable, Set

from kept.crawl.change_rate import is_modified_since, is_sitemap_wrong
from kept.crawl.context import CrawlContext
from kept.crawl.decide import NewContent, Unchanged, VisitResult
from kept.crawl.full_listing import chunk_listing
from kept.model.frontier import DiscoveredUrl, ListedUrl, ListingFailure
from kept.model.job import CrawlMode
from kept.store import documents, generations, jobs, sources


class SiteSeeds:
    """Lists the seeds, and checks during the crawl which pages were modified as claimed."""

    def __init__(self, context: CrawlContext) -> None:
        self._context = context
        self._claimed_modified: set[str] = set()  # URLs that a seed list calls modified
        self._checked_claims = 0  # of them, visited
        self._confirmed_claims = 0  # of those, really modified

    async def list_seeds(self, failures: list[ListingFailure]) -> AsyncIterator[list[DiscoveredUrl]]:
        """Yield the seeds in chunks. Lists that could not be read are added to ``failures``."""
        is_quick = self._context.job.mode is CrawlMode.QUICK
        is_trusted = self._context.source.sitemap_wrong_at is None
        async for chunk in chunk_listing(self._context.origin.list(), failures):
            modified = await self._find_modified(chunk) if self._context.base_generation is not None else frozenset()
            visited_if_known = {self._context.source.root, *(modified if is_trusted else ())}
            self._claimed_modified |= modified if is_trusted or not is_quick else frozenset()
            yield [
                DiscoveredUrl(url=listed.url, depth=0, visit_if_known=listed.url in visited_if_known)
                for listed in chunk
            ]

    def check_claims(self, results: Iterable[VisitResult]) -> None:
        """Count how many pages that are claimed to be modified were. Other bytes with equal content count too."""
        if not self._claimed_modified:
            return
        for result in results:
            decision = result.decision
            if result.entry.url in self._claimed_modified and isinstance(decision, NewContent | Unchanged):
                self._checked_claims += 1
                self._confirmed_claims += isinstance(decision, NewContent) or decision.metadata_update is not None

    async def judge_sitemap(self) -> None:
        """Store whether the sitemap's dates can be trusted by the next crawl."""
        is_wrong = is_sitemap_wrong(claims=self._checked_claims, confirmed=self._confirmed_claims)
        if is_wrong is not None and is_wrong != (self._context.source.sitemap_wrong_at is not None):
            async with self._context.db.transaction() as tx:
                await jobs.lock_lease(tx, self._context.lease)
                await sources.set_sitemap_wrong(tx, self._context.source.id, wrong=is_wrong)

    async def _find_modified(self, listed: list[ListedUrl]) -> Set[str]:
        """Return the known URLs that were modified since their last visit, according to the origin."""
        dated = [url for url in listed if url.modified_at]
        if not dated:
            return frozenset()
        async with self._context.db.snapshot() as snapshot:
            verified_at = await generations.last_verified(snapshot, self._context.source.id)
            known = await documents.upcoming_by_url(
                snapshot,
                self._context.source.id,
                [url.url for url in dated],
                generation=self._context.job.generation or 0,
            )
        visited_at = {version.url: max(version.fetched_at, verified_at or version.fetched_at) for version in known}
        return {url.url for url in dated if url.url in visited_at and is_modified_since(url, visited_at[url.url])}
