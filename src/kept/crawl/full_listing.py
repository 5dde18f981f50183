"""The list of an origin that can name everything it has.

Absence is evidence: what is held and not listed is gone, unless its part of the list could not be read. What is plainly
as it was is only counted: of a large folder that is nearly all.
"""

from collections.abc import AsyncIterator, Iterable, Set

from kept.crawl import settle
from kept.crawl.context import CrawlContext
from kept.crawl.decide import needs_no_visit
from kept.errors import SourceUnavailable
from kept.model.frontier import ListedUrl, ListingFailure, Outcome
from kept.model.job import CrawlMode
from kept.store import frontier, jobs
from kept.store.frontier import ListedEntry, StoredEtag, StoredPage

LISTING_BATCH_SIZE = 2000
NOT_HELD: StoredEtag = ("", 0, None)


class FullListing:
    """Becomes entries: of what is new, changed or gone."""

    def __init__(self, context: CrawlContext) -> None:
        self._context = context
        self._unchanged_count = 0

    async def add_to_frontier(self, root_identity: str | None, unlisted: list[ListingFailure]) -> int:
        """How many are listed, unchanged, and leave no entry. ``root``: what tells it from another in its place.

        What could not be listed goes to ``unlisted``.
        """
        known: dict[str, StoredEtag] = {}
        async with self._context.db.snapshot() as snapshot:
            if self._context.base_generation is not None:
                known = await frontier.stored_etags(
                    snapshot,
                    source=self._context.source.id,
                    base=self._context.base_generation,
                    signature=self._context.signature,
                )
            taken = await frontier.urls(snapshot, self._context.job.id)  # by a walk that was cut short
        absent, arrived, listed = dict(known), [], len(taken)
        async for chunk in chunk_listing(self._context.origin.list(), unlisted):
            listed += len(chunk)
            different = self._select_changed(chunk, absent, taken)
            arrived += [one.url for one in different if known and one.url not in known]
            different = [one for one in different if one.url not in taken]
            held = await self._load_held(known[one.url] for one in different if one.url in known)
            entries = [self._make_listed_entry(one, held.get(one.url)) for one in different]
            await self._insert_listed([entry for entry in entries if entry])
        gone = await self._load_held(absent.values())
        left = [one for one in gone.values() if one.url not in taken]
        missed = sum(self._context.origin.admits(one.url) for one in left)
        self._check_root(
            root_identity, base_document_count=len(known), absent=missed, is_empty=not listed and not unlisted
        )
        # Asked about all of them, whatever a walk that was cut short has taken: the answer has to be the same.
        validators = {one.url: one.validators for one in gone.values()}
        moved = await self._context.origin.find_renames(validators, arrived) if gone and arrived else {}
        ended = [self._make_absent_entry(one, moved.get(one.url), unlisted) for one in left]
        for start in range(0, len(ended), LISTING_BATCH_SIZE):
            await self._insert_listed(ended[start : start + LISTING_BATCH_SIZE])
        return self._unchanged_count

    def _select_changed(
        self, chunk: list[ListedUrl], absent: dict[str, StoredEtag], taken: Set[str]
    ) -> list[ListedUrl]:
        """What is not plainly as it was. The rest is only counted: of a large folder that is nearly all."""
        different = []
        full = self._context.job.mode is CrawlMode.FULL
        for one in chunk:
            _, _, etag = absent.pop(one.url, NOT_HELD)
            if etag is None or etag != one.etag or full or one.url in taken:
                different.append(one)
        self._unchanged_count += len(chunk) - len(different)
        return different

    async def _load_held(self, tags: Iterable[StoredEtag]) -> dict[str, StoredPage]:
        versions = [version for _, version, _ in tags]
        if not versions:
            return {}
        async with self._context.db.snapshot() as snapshot:
            return {one.url: one for one in await frontier.stored_pages(snapshot, versions)}

    def _make_absent_entry(self, held: StoredPage, moved_to: str | None, unlisted: list[ListingFailure]) -> ListedEntry:
        outcome, reason = self._absence_outcome(held.url, unlisted)
        if moved_to:
            outcome, reason = Outcome.MOVED, f"renamed to {moved_to}"
        return ListedEntry(
            url=held.url,
            version_id=held.version_id,
            document_id=held.document_id,
            depth=held.depth,
            outcome=outcome,
            reason=reason,
            by_settings=outcome is Outcome.SKIPPED,
            redirect_to=moved_to,
        )

    def _check_root(self, root_identity: str | None, *, base_document_count: int, absent: int, is_empty: bool) -> None:
        """A root that is empty, or that another folder took the place of, is no evidence that files are gone."""
        source = self._context.source
        if is_empty and absent:
            raise SourceUnavailable(f"{source.root} is empty, where {absent} documents were.")
        was = source.root_identity
        if was and root_identity and was != root_identity and absent * 2 > base_document_count:
            raise SourceUnavailable(
                f"{source.root} is another folder than before, and {absent} of {base_document_count} documents "
                "are not there."
            )

    def _make_listed_entry(self, listed: ListedUrl, held: StoredPage | None) -> ListedEntry | None:
        """None: it is as it was, and nobody will ask for its entry. It is only counted."""
        if held is None:
            return ListedEntry(url=listed.url)
        same = self._context.job.mode is not CrawlMode.FULL and needs_no_visit(listed, held, self._context.signature)
        if same and not held.needs_entry:
            self._unchanged_count += 1
            return None
        return ListedEntry(
            url=listed.url,
            version_id=held.version_id,
            document_id=held.document_id,
            depth=held.depth,
            outcome=Outcome.UNCHANGED if same else None,
        )

    def _absence_outcome(self, url: str, unlisted: list[ListingFailure]) -> tuple[Outcome, str]:
        """What it means that a complete list does not name a URL."""
        if not self._context.origin.admits(url):
            return Outcome.SKIPPED, "left out by the source's settings"
        for part in unlisted:
            if url.startswith(part.url):
                return Outcome.FAILED, part.reason
        return Outcome.GONE, "no longer there"

    async def _insert_listed(self, entries: list[ListedEntry]) -> None:
        if not entries:
            return
        async with self._context.db.transaction() as tx:
            await jobs.lock_lease(tx, self._context.lease)
            job = (
                await jobs.lock(tx, self._context.job.id) or self._context.job
            )  # nobody else numbers a batch meanwhile
            added = await frontier.insert_listed(tx, job.id, entries, batch=job.batch + 1)
            self._context.job = await settle.update_progress(
                tx, await jobs.advance_batch(tx, self._context.job.id, discovered=added)
            )
        self._context.on_progress(self._context.job)


async def chunk_listing(
    listing: AsyncIterator[ListedUrl | ListingFailure], unlisted: list[ListingFailure]
) -> AsyncIterator[list[ListedUrl]]:
    """What is listed, in chunks; what could not be listed goes aside."""
    chunk: list[ListedUrl] = []
    async for one in listing:
        if isinstance(one, ListingFailure):
            unlisted.append(one)
        else:
            chunk.append(one)
        if len(chunk) >= LISTING_BATCH_SIZE:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
