"""The list of an origin that can name everything it has.

Absence is evidence: what is held and not listed is gone, unless its part of the list could not be read. What is plainly
as it was is only counted: of a large folder that is nearly all.
"""

from collections.abc import AsyncIterator, Iterable, Set

from kept.crawl import settle
from kept.crawl.decide import needs_no_visit
from kept.crawl.ground import Ground
from kept.errors import SourceUnavailable
from kept.model.frontier import Listed, Outcome, Unlisted
from kept.model.job import CrawlMode
from kept.store import frontier, jobs
from kept.store.frontier import HeldTag, HeldUrl, ListedEntry

LISTED_AT_ONCE = 2000
NOT_HELD: HeldTag = ("", 0, None)


class CompleteList:
    """Becomes entries: of what is new, changed or gone."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._unmentioned = 0

    async def take(self, root: str | None, unlisted: list[Unlisted]) -> int:
        """How many are listed, unchanged, and leave no entry. ``root``: what tells it from another in its place.

        What could not be listed goes to ``unlisted``.
        """
        known: dict[str, HeldTag] = {}
        async with self._ground.db.snapshot() as snapshot:
            if self._ground.base is not None:
                known = await frontier.held_tags(
                    snapshot, source=self._ground.source.id, base=self._ground.base, signature=self._ground.signature
                )
            taken = await frontier.urls(snapshot, self._ground.job.id)  # by a walk that was cut short
        absent, arrived, listed = dict(known), [], len(taken)
        async for chunk in chunks(self._ground.origin.list(), unlisted):
            listed += len(chunk)
            different = self._different(chunk, absent, taken)
            arrived += [one.url for one in different if known and one.url not in known]
            different = [one for one in different if one.url not in taken]
            held = await self._held(known[one.url] for one in different if one.url in known)
            entries = [self._listed(one, held.get(one.url)) for one in different]
            await self._insert_listed([entry for entry in entries if entry])
        gone = await self._held(absent.values())
        left = [one for one in gone.values() if one.url not in taken]
        missed = sum(self._ground.origin.admits(one.url) for one in left)
        self._check_root(root, shown=len(known), absent=missed, is_empty=not listed and not unlisted)
        # Asked about all of them, whatever a walk that was cut short has taken: the answer has to be the same.
        validators = {one.url: one.validators for one in gone.values()}
        moved = await self._ground.origin.renamed(validators, arrived) if gone and arrived else {}
        ended = [self._absent(one, moved.get(one.url), unlisted) for one in left]
        for start in range(0, len(ended), LISTED_AT_ONCE):
            await self._insert_listed(ended[start : start + LISTED_AT_ONCE])
        return self._unmentioned

    def _different(self, chunk: list[Listed], absent: dict[str, HeldTag], taken: Set[str]) -> list[Listed]:
        """What is not plainly as it was. The rest is only counted: of a large folder that is nearly all."""
        different = []
        full = self._ground.job.mode is CrawlMode.FULL
        for one in chunk:
            _, _, etag = absent.pop(one.url, NOT_HELD)
            if etag is None or etag != one.etag or full or one.url in taken:
                different.append(one)
        self._unmentioned += len(chunk) - len(different)
        return different

    async def _held(self, tags: Iterable[HeldTag]) -> dict[str, HeldUrl]:
        versions = [version for _, version, _ in tags]
        if not versions:
            return {}
        async with self._ground.db.snapshot() as snapshot:
            return {one.url: one for one in await frontier.held_urls(snapshot, versions)}

    def _absent(self, held: HeldUrl, moved_to: str | None, unlisted: list[Unlisted]) -> ListedEntry:
        outcome, reason = self._absence(held.url, unlisted)
        if moved_to:
            outcome, reason = Outcome.MOVED, f"renamed to {moved_to}"
        return ListedEntry(
            url=held.url,
            version_id=held.version_id,
            document=held.document,
            depth=held.depth,
            outcome=outcome,
            reason=reason,
            by_settings=outcome is Outcome.SKIPPED,
            redirect_to=moved_to,
        )

    def _check_root(self, root: str | None, *, shown: int, absent: int, is_empty: bool) -> None:
        """A root that is empty, or that another folder took the place of, is no evidence that files are gone."""
        source = self._ground.source
        if is_empty and absent:
            raise SourceUnavailable(f"{source.root} is empty, where {absent} documents were.")
        was = source.root_identity
        if was and root and was != root and absent * 2 > shown:
            raise SourceUnavailable(
                f"{source.root} is another folder than before, and {absent} of {shown} documents are not there."
            )

    def _listed(self, listed: Listed, held: HeldUrl | None) -> ListedEntry | None:
        """None: it is as it was, and nobody will ask for its entry. It is only counted."""
        if held is None:
            return ListedEntry(url=listed.url)
        same = self._ground.job.mode is not CrawlMode.FULL and needs_no_visit(listed, held, self._ground.signature)
        if same and not held.needs_entry:
            self._unmentioned += 1
            return None
        return ListedEntry(
            url=listed.url,
            version_id=held.version_id,
            document=held.document,
            depth=held.depth,
            outcome=Outcome.UNCHANGED if same else None,
        )

    def _absence(self, url: str, unlisted: list[Unlisted]) -> tuple[Outcome, str]:
        """What it means that a complete list does not name a URL."""
        if not self._ground.origin.admits(url):
            return Outcome.SKIPPED, "left out by the source's settings"
        for part in unlisted:
            if url.startswith(part.url):
                return Outcome.FAILED, part.reason
        return Outcome.GONE, "no longer there"

    async def _insert_listed(self, entries: list[ListedEntry]) -> None:
        if not entries:
            return
        async with self._ground.db.transaction() as tx:
            await jobs.hold(tx, self._ground.place)
            job = await jobs.lock(tx, self._ground.job.id) or self._ground.job  # nobody else numbers a batch meanwhile
            added = await frontier.insert_listed(tx, job.id, entries, batch=job.batch + 1)
            self._ground.job = await settle.count(
                tx, await jobs.number_batch(tx, self._ground.job.id, discovered=added)
            )
        self._ground.on_progress(self._ground.job)


async def chunks(listing: AsyncIterator[Listed | Unlisted], unlisted: list[Unlisted]) -> AsyncIterator[list[Listed]]:
    """What is listed, in chunks; what could not be listed goes aside."""
    chunk: list[Listed] = []
    async for one in listing:
        if isinstance(one, Unlisted):
            unlisted.append(one)
        else:
            chunk.append(one)
        if len(chunk) >= LISTED_AT_ONCE:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
