"""The links that visits lead on to, each offered to the frontier once, as far as this walk remembers."""

from itertools import islice

from kept.crawl.decide import Ended, TryAgain
from kept.crawl.ground import Ground
from kept.crawl.settle import Visited
from kept.model.job import CrawlMode
from kept.store.frontier import Found

REMEMBERED_LINKS = 200_000


class Links:
    """What was found."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._known_links: dict[str, None] = {}

    def found_by(self, visited: list[Visited]) -> tuple[list[Found], list[str]]:
        """The URLs that these visits lead on to, each once; and those that are too deep, unless others lead there."""
        if self._ground.origin.lists_everything:
            return [], []
        found = _redirects(visited)
        beyond: dict[str, None] = {}
        deepest = self._ground.source.settings.limits.max_depth
        for one in visited:
            entry = one.entry
            if isinstance(one.decision, TryAgain) or not entry.reached or self._ground.job.mode is CrawlMode.FAILED:
                continue  # a ring of orphans cannot keep itself alive; a repair goes nowhere else
            for link in one.decision.links:
                if link in self._known_links or link in found or not self._ground.origin.admits(link):
                    continue
                if deepest is not None and entry.depth >= deepest:
                    beyond[link] = None
                else:
                    found[link] = Found(url=link, depth=entry.depth + 1, parent=entry.url)
        return list(found.values()), list(beyond)

    def remember(self, found: list[Found]) -> None:
        """Links that are in the frontier need not be offered again; the memory for that is bounded."""
        self._known_links.update((one.url, None) for one in found if one.reached)
        for url in list(islice(self._known_links, max(0, len(self._known_links) - REMEMBERED_LINKS))):
            del self._known_links[url]


def _redirects(visited: list[Visited]) -> dict[str, Found]:
    """Before the links: a URL that a document moves to is that, whatever else leads there."""
    found: dict[str, Found] = {}
    for one in sorted(visited, key=lambda one: one.entry.held is None):
        entry, decision = one.entry, one.decision
        if isinstance(decision, Ended) and decision.redirect_to:
            found.setdefault(
                decision.redirect_to,
                Found(
                    url=decision.redirect_to,
                    depth=entry.depth,
                    parent=entry.url,
                    document=entry.held.document_id if entry.held else None,
                    reached=entry.reached,
                    wanted=True,
                ),
            )
    return found
