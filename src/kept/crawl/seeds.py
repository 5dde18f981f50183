"""Where the crawl of a site begins: its root, and what its seed lists name; and whether they are right about times."""

from collections.abc import AsyncIterator, Iterable, Set

from kept.crawl.decide import Keep, Unchanged
from kept.crawl.ground import Ground
from kept.crawl.history import is_newer, judge_claims
from kept.crawl.listing import chunks
from kept.crawl.settle import Visited
from kept.model.frontier import Listed, Unlisted
from kept.model.job import CrawlMode
from kept.store import documents, generations, jobs, sources
from kept.store.database import when
from kept.store.frontier import Found


class Seeds:
    """What is listed, and what that claims to be modified."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._claimed: set[str] = set()  # URLs that a seed list calls modified
        self._claims = self._true_claims = 0  # those of them that were visited, and that were

    async def take(self, unlisted: list[Unlisted]) -> AsyncIterator[list[Found]]:
        """The seeds, as they come. What could not be listed goes to ``unlisted``."""
        quick = self._ground.job.mode is CrawlMode.QUICK
        trusted = self._ground.source.sitemap_wrong_at is None
        async for chunk in chunks(self._ground.origin.list(), unlisted):
            newer = await self._said_to_be_newer(chunk) if self._ground.base is not None else frozenset()
            wanted = {self._ground.source.root, *(newer if trusted else ())}
            self._claimed |= newer if trusted or not quick else frozenset()
            yield [Found(url=one.url, depth=0, wanted=one.url in wanted) for one in chunk]

    def check(self, visited: Iterable[Visited]) -> None:
        """Other bytes are a modification, even where they say the same."""
        decisions = [one.decision for one in visited if one.entry.url in self._claimed] if self._claimed else []
        answered = [one for one in decisions if isinstance(one, Keep | Unchanged)]
        self._claims += len(answered)
        self._true_claims += sum(isinstance(one, Keep) or one.renewal is not None for one in answered)

    async def judge(self) -> None:
        """Whether what the sitemap says of times can be believed next time."""
        wrong = judge_claims(made=self._claims, true=self._true_claims)
        if wrong is not None and wrong != (self._ground.source.sitemap_wrong_at is not None):
            async with self._ground.db.transaction() as tx:
                await jobs.hold(tx, self._ground.place)
                await sources.judge_sitemap(tx, self._ground.source.id, wrong=wrong)

    async def _said_to_be_newer(self, listed: list[Listed]) -> Set[str]:
        """What is known and, as the origin says, was modified since it was last visited."""
        listed = [one for one in listed if one.modified_at]
        if not listed:
            return frozenset()
        async with self._ground.db.snapshot() as snapshot:
            last = await generations.last_verified(snapshot, self._ground.source.id)
            known = await documents.living_at(
                snapshot,
                self._ground.source.id,
                [one.url for one in listed],
                generation=self._ground.job.generation or 0,
            )
        fetched = {row["url"]: when(row["fetched_at"]) for row in known}
        visited = {url: max(at, last or at) for url, at in fetched.items()}
        return {one.url for one in listed if one.url in visited and is_newer(one, visited[one.url])}
