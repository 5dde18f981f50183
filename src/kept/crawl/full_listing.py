"""The list of an origin that lists everything (a folder, a git repository), compared with the base.

Absence is evidence: a stored page that is not listed is gone, unless its part of the list could not be read. Pages
that the list alone proves unchanged are only counted: of a large folder that is nearly all of them.
"""

from collections.abc import AsyncIterator, Mapping, Set

from kept.crawl import settle
from kept.crawl.base_documents import BaseDocuments
from kept.crawl.context import CrawlContext
from kept.crawl.decide import needs_no_visit
from kept.errors import SourceUnavailable
from kept.model.frontier import (
    LIMIT_REASON,
    ListedEntry,
    ListedUrl,
    ListingFailure,
    Outcome,
    StoredEtag,
    StoredPage,
)
from kept.model.job import CrawlMode
from kept.store import frontier, jobs

LISTING_BATCH_SIZE = 2000
NOT_STORED: StoredEtag = ("", 0, None)


class FullListing:
    """Turns a complete list into frontier entries for what is new, changed or gone."""

    def __init__(self, context: CrawlContext) -> None:
        self._context = context
        self._unchanged_count = 0

    async def add_to_frontier(self, root_identity: str | None, failures: list[ListingFailure]) -> int:
        """Insert the entries. Returns how many listed pages are unchanged and have no entry.

        Parts of the list that could not be read are added to ``failures``. Raises SourceUnavailable if the root is
        empty or replaced by another folder.
        """
        base = BaseDocuments(self._context)
        await base.load_count()
        over_limit = await base.find_over_limit()
        async with self._context.db.snapshot() as snapshot:
            inserted = await frontier.urls(snapshot, self._context.job.id)  # by an interrupted listing
        new_urls, listed_count, to_visit = [], len(inserted), inserted | over_limit
        async for chunk in chunk_listing(self._context.origin.list(), failures):
            listed_count += len(chunk)
            known = await base.find_listed([listed.url for listed in chunk])
            changed = self._select_changed(chunk, known, to_visit)
            new_urls += [listed.url for listed in changed if base.count and listed.url not in known]
            changed = [listed for listed in changed if listed.url not in inserted]
            stored = await base.load([known[listed.url][1] for listed in changed if listed.url in known])
            entries = [
                self._make_excluded_entry(stored[listed.url])
                if listed.url in over_limit
                else self._make_listed_entry(listed, stored.get(listed.url))
                for listed in changed
            ]
            await self._insert_listed([entry for entry in entries if entry])
        gone = await base.load_absent()
        missing = [page for page in gone.values() if page.url not in inserted]
        self._check_root(
            root_identity,
            base_document_count=base.count,
            absent=sum(self._context.origin.admits(page.url) for page in missing),
            is_empty=not listed_count and not failures,
        )
        # Ask about all of them, whatever an interrupted listing inserted: the answer has to be the same.
        validators = {page.url: page.validators for page in gone.values()}
        renames = await self._context.origin.find_renames(validators, new_urls) if gone and new_urls else {}
        ended = [self._make_absent_entry(page, renames.get(page.url), failures) for page in missing]
        for start in range(0, len(ended), LISTING_BATCH_SIZE):
            await self._insert_listed(ended[start : start + LISTING_BATCH_SIZE])
        return self._unchanged_count

    def _make_excluded_entry(self, stored: StoredPage) -> ListedEntry:
        return ListedEntry(
            url=stored.url,
            version_id=stored.version_id,
            document_id=stored.document_id,
            depth=stored.depth,
            outcome=Outcome.SKIPPED,
            reason=LIMIT_REASON,
            by_settings=True,
        )

    def _select_changed(
        self, chunk: list[ListedUrl], known: Mapping[str, StoredEtag], to_visit: Set[str]
    ) -> list[ListedUrl]:
        """Return what is new or may have changed, and count the rest."""
        changed = []
        is_full = self._context.job.mode is CrawlMode.FULL
        for listed in chunk:
            _, _, etag = known.get(listed.url, NOT_STORED)
            if etag is None or etag != listed.etag or is_full or listed.url in to_visit:
                changed.append(listed)
        self._unchanged_count += len(chunk) - len(changed)
        return changed

    def _make_absent_entry(
        self, stored: StoredPage, renamed_to: str | None, failures: list[ListingFailure]
    ) -> ListedEntry:
        outcome, reason = self._absence_outcome(stored.url, failures)
        if renamed_to:
            outcome, reason = Outcome.MOVED, f"renamed to {renamed_to}"
        return ListedEntry(
            url=stored.url,
            version_id=stored.version_id,
            document_id=stored.document_id,
            depth=stored.depth,
            outcome=outcome,
            reason=reason,
            by_settings=outcome is Outcome.SKIPPED,
            redirect_to=renamed_to,
        )

    def _check_root(self, root_identity: str | None, *, base_document_count: int, absent: int, is_empty: bool) -> None:
        """Raise SourceUnavailable if the root is empty or another folder: that is no evidence that files are gone."""
        source = self._context.source
        if is_empty and absent:
            raise SourceUnavailable(f"{source.root} is empty, where {absent} documents were.")
        is_replaced = source.root_identity and root_identity and source.root_identity != root_identity
        if is_replaced and absent * 2 > base_document_count:
            raise SourceUnavailable(
                f"{source.root} is another folder than before, and {absent} of {base_document_count} documents "
                "are not there."
            )

    def _make_listed_entry(self, listed: ListedUrl, stored: StoredPage | None) -> ListedEntry | None:
        """Return the entry of a listed page; None, and count it, if it is unchanged and needs none."""
        if stored is None:
            return ListedEntry(url=listed.url)
        is_unchanged = self._context.job.mode is not CrawlMode.FULL and needs_no_visit(
            listed, stored, self._context.signature
        )
        if is_unchanged and not stored.needs_entry:
            self._unchanged_count += 1
            return None
        return ListedEntry(
            url=listed.url,
            version_id=stored.version_id,
            document_id=stored.document_id,
            depth=stored.depth,
            outcome=Outcome.UNCHANGED if is_unchanged else None,
        )

    def _absence_outcome(self, url: str, failures: list[ListingFailure]) -> tuple[Outcome, str]:
        """Return the outcome, with its reason, of a stored URL that a complete list does not name."""
        if not self._context.origin.admits(url):
            return Outcome.SKIPPED, "left out by the source's settings"
        for part in failures:
            if url.startswith(part.url):
                return Outcome.FAILED, part.reason
        return Outcome.GONE, "no longer there"

    async def _insert_listed(self, entries: list[ListedEntry]) -> None:
        if not entries:
            return
        async with self._context.db.transaction() as tx:
            await jobs.lock_lease(tx, self._context.lease)
            # The lock keeps other workers from numbering a batch meanwhile.
            job = await jobs.lock(tx, self._context.job.id) or self._context.job
            added = await frontier.insert_listed(tx, job.id, entries, batch=job.batch + 1)
            self._context.job = await settle.update_progress(
                tx,
                await jobs.advance_batch(
                    tx,
                    self._context.job.id,
                    discovered=added,
                    limited=any(entry.reason == LIMIT_REASON for entry in entries),
                ),
            )
        self._context.on_progress(self._context.job)


async def chunk_listing(
    listing: AsyncIterator[ListedUrl | ListingFailure], failures: list[ListingFailure]
) -> AsyncIterator[list[ListedUrl]]:
    """Yield the listed URLs in chunks. Parts that could not be read are added to ``failures``."""
    chunk: list[ListedUrl] = []
    async for listed in listing:
        if isinstance(listed, ListingFailure):
            failures.append(listed)
        else:
            chunk.append(listed)
        if len(chunk) >= LISTING_BATCH_SIZE:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
