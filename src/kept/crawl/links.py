"""The links that visits lead on to, each offered to the frontier once, as far as this walk remembers."""

from itertools import islice

from kept.crawl.context import CrawlContext
from kept.crawl.decide import NotKept, RetryLater
from kept.crawl.settle import VisitResult
from kept.model.job import CrawlMode
from kept.store.frontier import DiscoveredUrl

MAX_REMEMBERED_LINKS = 200_000


class LinkDiscovery:
    """What was found."""

    def __init__(self, context: CrawlContext) -> None:
        self._context = context
        self._known_links: dict[str, None] = {}

    def discover(self, visited: list[VisitResult]) -> tuple[list[DiscoveredUrl], list[str]]:
        """The URLs that these visits lead on to, each once; and those that are too deep, unless others lead there."""
        if self._context.origin.lists_everything:
            return [], []
        found = _redirect_targets(visited)
        too_deep: dict[str, None] = {}
        deepest = self._context.source.settings.limits.max_depth
        for one in visited:
            entry = one.entry
            if isinstance(one.decision, RetryLater) or not entry.reached or self._context.job.mode is CrawlMode.FAILED:
                continue  # a ring of orphans cannot keep itself alive; a repair goes nowhere else
            for link in one.decision.links:
                if link in self._known_links or link in found or not self._context.origin.admits(link):
                    continue
                if deepest is not None and entry.depth >= deepest:
                    too_deep[link] = None
                else:
                    found[link] = DiscoveredUrl(url=link, depth=entry.depth + 1, parent=entry.url)
        return list(found.values()), list(too_deep)

    def remember(self, found: list[DiscoveredUrl]) -> None:
        """Links that are in the frontier need not be offered again; the memory for that is bounded."""
        self._known_links.update((one.url, None) for one in found if one.reached)
        for url in list(islice(self._known_links, max(0, len(self._known_links) - MAX_REMEMBERED_LINKS))):
            del self._known_links[url]


def _redirect_targets(visited: list[VisitResult]) -> dict[str, DiscoveredUrl]:
    """Before the links: a URL that a document moves to is that, whatever else leads there."""
    found: dict[str, DiscoveredUrl] = {}
    for one in sorted(visited, key=lambda one: one.entry.base_version is None):
        entry, decision = one.entry, one.decision
        if isinstance(decision, NotKept) and decision.redirect_to:
            found.setdefault(
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
    return found
