"""Link discovery: the URLs that visited pages link or redirect to."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from kept.crawl.admission import defers_links
from kept.crawl.context import CrawlContext
from kept.crawl.decide import NotKept, RetryLater, VisitResult
from kept.model.frontier import DiscoveredUrl
from kept.model.job import CrawlMode

MAX_REMEMBERED_LINKS = 200_000


class LinkDiscovery:
    """Collects the links of a crawl, and remembers those that the frontier has already."""

    def __init__(self, context: CrawlContext) -> None:
        self._context = context
        self._known_links: dict[str, None] = {}

    def discover(self, results: Sequence[VisitResult]) -> list[DiscoveredUrl]:
        """Return the URLs that these pages lead to, each once. Those that a guard may refuse are deferred."""
        if self._context.origin.lists_everything:
            return []
        discovered = _redirect_targets(results)
        for result in results:
            entry, decision = result.entry, result.decision
            if isinstance(decision, RetryLater) or not entry.reached or self._context.job.mode is CrawlMode.FAILED:
                continue  # a ring of orphans must not keep itself alive; a repair visits nothing else
            for link in decision.links:
                if link in self._known_links or not self._context.origin.admits(link):
                    continue
                if link not in discovered or discovered[link].depth > entry.depth + 1:
                    discovered[link] = DiscoveredUrl(url=link, depth=entry.depth + 1, parent=entry.url)
        return [self._defer(found) for found in discovered.values()]

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
