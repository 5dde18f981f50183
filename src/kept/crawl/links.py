"""Link discovery: the URLs that visited pages link or redirect to, and the stored links of pages that failed."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice

from kept.crawl import settle
from kept.crawl.admission import defers_links
from kept.crawl.context import CrawlContext
from kept.crawl.decide import NotKept, RetryLater, VisitResult
from kept.crawl.document_matching import resolve_redirects
from kept.crawl.observations import is_failed_end
from kept.model.frontier import DiscoveredUrl, RedirectedEntry
from kept.model.job import CrawlMode
from kept.store import frontier, jobs
from kept.store.database import Connection

MAX_REMEMBERED_LINKS = 200_000


class LinkDiscovery:
    """Collects the links of a crawl, and remembers those that the frontier has already."""

    def __init__(self, context: CrawlContext) -> None:
        self._context = context
        self._known_links: dict[str, None] = {}
        self._failed_redirects: set[str] = set()  # whose stored links are followed

    @property
    def _follows_links(self) -> bool:
        """Whether links lead anywhere: a repair visits nothing else, and a list has everything."""
        return not self._context.origin.lists_everything and self._context.job.mode is not CrawlMode.FAILED

    def discover(self, results: Sequence[VisitResult]) -> list[DiscoveredUrl]:
        """Return the URLs that these pages lead to, each once. Those that a guard may refuse are deferred."""
        if self._context.origin.lists_everything:
            return []
        discovered = _redirect_targets(results)
        for result in results:
            entry, decision = result.entry, result.decision
            if isinstance(decision, RetryLater) or not entry.reached or not self._follows_links:
                continue  # a ring of orphans must not keep itself alive
            self._add_links(discovered, entry.url, entry.depth, decision.links)
        return [self._defer(found) for found in discovered.values()]

    async def follow_failed_redirects(self, tx: Connection, *, retried: bool = False) -> None:
        """Follow the stored links of documents that redirect, in a circle or to what failed. The job is locked.

        Such a document stays as it was. Where its redirects end is known only when nothing reached is left to visit.
        ``retried``: an earlier try may not have been committed.
        """
        context = self._context
        if not self._follows_links or context.base_generation is None:
            return
        if retried:
            self._failed_redirects.clear()
        failed = find_failed_redirects(await frontier.list_redirected(tx, context.job.id))
        failed = [entry for entry in failed if entry.url not in self._failed_redirects]
        if not failed:
            return
        self._failed_redirects.update(entry.url for entry in failed)
        links = await frontier.stored_links(tx, [entry.version_id for entry in failed if entry.version_id])
        discovered: dict[str, DiscoveredUrl] = {}
        for entry in failed:
            self._add_links(discovered, entry.url, entry.depth, links.get(entry.version_id or 0, ()))
        added = await settle.add_discovered(tx, context.job, [self._defer(found) for found in discovered.values()])
        if added:
            advanced = await jobs.advance_batch(tx, context.job.id, discovered=added)
            context.job = await settle.update_progress(tx, advanced)

    def _add_links(self, discovered: dict[str, DiscoveredUrl], url: str, depth: int, links: Iterable[str]) -> None:
        for link in links:
            if link in self._known_links or not self._context.origin.admits(link):
                continue
            if link not in discovered or discovered[link].depth > depth + 1:
                discovered[link] = DiscoveredUrl(url=link, depth=depth + 1, parent=url)

    def _defer(self, found: DiscoveredUrl) -> DiscoveredUrl:
        if not found.reached or found.moved_document_id:
            return found  # no guard keeps a document out that moves
        family = self._context.origin.find_family(found.url)
        if family is None and not defers_links(self._context.source.settings.limits):
            return found
        return replace(found, family=family.key if family else None, deferred=True)

    def remember(self, discovered: Sequence[DiscoveredUrl]) -> None:
        """Remember links that are in the frontier, so that they are not offered to it again. The memory is bounded."""
        self._known_links.update((link.url, None) for link in discovered if link.reached)
        for url in list(islice(self._known_links, max(0, len(self._known_links) - MAX_REMEMBERED_LINKS))):
            del self._known_links[url]


def find_failed_redirects(entries: Sequence[RedirectedEntry]) -> list[RedirectedEntry]:
    """Return the reached documents among redirected entries whose redirects end in a circle or at what failed."""
    redirects = {entry.url: entry.redirect_to for entry in entries}
    targets = {entry.redirect_to: entry.target for entry in entries}
    found = []
    for entry in entries:
        if entry.version_id is None or not entry.reached:
            continue
        end = resolve_redirects(entry.url, redirects)
        if end is None or is_failed_end(targets[end]):
            found.append(entry)
    return found


def _redirect_targets(results: Sequence[VisitResult]) -> dict[str, DiscoveredUrl]:
    """Return the targets of permanent redirects, by URL.

    They come before the links, and documents' redirects first: where a document moves to must be known as that.
    """
    targets: dict[str, DiscoveredUrl] = {}
    for result in sorted(results, key=lambda result: result.entry.base_version is None):
        entry, decision = result.entry, result.decision
        if isinstance(decision, NotKept) and decision.redirect_to:
            targets.setdefault(
                decision.redirect_to,
                DiscoveredUrl(
                    url=decision.redirect_to,
                    depth=entry.depth,
                    parent=entry.url,
                    moved_document_id=entry.base_version.document_id if entry.base_version else None,
                    reached=entry.reached,
                    visit_if_known=True,
                ),
            )
    return targets
