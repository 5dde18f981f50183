"""The folder or site that crash tests crawl, and the changes made to it before."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal, Protocol

from kept.model.source import Access
from kept.origins.folder import FolderOrigin
from kept.origins.web.origin import VISITS_PER_SLOT
from kept.origins.web.soft_404 import PROBE_NAME
from tests.crash import files
from tests.crash.crawler import BATCH, Crawlers
from tests.sites.manual import HOP, LISTS, Site

ScenarioName = Literal["a first crawl", "a refresh", "a refresh that is held"]

Then = Literal["crawl", "give up a crawl", "nothing"]
Changes = list[tuple[Callable[[], None], Then]]  # changes, and whether a crawl follows each


class Docs(Protocol):
    root: str
    visits: str  # the file to which the crawling process writes what it visits
    concurrency: int  # pages that a crawl visits at once

    def changes(self, name: ScenarioName) -> Changes: ...

    def warm(self, crawlers: Crawlers) -> None: ...

    def visited(self) -> list[str]:
        """Return the URLs that were visited since the last call."""


class Folder:
    def __init__(self, folder: Path, size: int = files.FILES) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._size = size
        self._visits = folder.with_name(f"{folder.name} visits")
        self.root = str(folder)
        self.visits = str(self._visits)
        self.concurrency = FolderOrigin.concurrency

    def changes(self, name: ScenarioName) -> Changes:
        match name:
            case "a first crawl":
                return [(self._plant, "nothing")]
            case "a refresh":
                return [
                    (self._plant, "crawl"),
                    (lambda: files.tend(self._folder), "crawl"),
                    (lambda: files.graft(self._folder), "give up a crawl"),
                    (lambda: files.harvest(self._folder), "nothing"),
                ]
            case "a refresh that is held":
                return [(self._plant, "crawl"), (lambda: files.clear_cut(self._folder), "nothing")]

    def warm(self, crawlers: Crawlers) -> None:
        crawlers.warm(self._folder)

    def visited(self) -> list[str]:
        if not self._visits.exists():
            return []
        lines = self._visits.read_text().splitlines()
        self._visits.unlink()
        return lines

    def _plant(self) -> None:
        files.plant(self._folder, self._size)
        files.repeat(self._folder)


class Web:
    """A site; visits are the requests of its server."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.root = site.root
        self.visits = "/dev/null"
        self.concurrency = VISITS_PER_SLOT * Access().concurrency

    def changes(self, name: ScenarioName) -> Changes:
        assert name != "a refresh that is held", "folders show that"
        if name == "a first crawl":
            return [(lambda: None, "nothing")]
        return [(lambda: None, "crawl"), (self._site.revise, "nothing")]

    def warm(self, crawlers: Crawlers) -> None:
        crawlers.warm_site(self._site)

    def visited(self) -> list[str]:
        paths = [request.path for request in self._site.requests()]
        return [self._site.origin + path for path in paths if path not in LISTS | {HOP} and PROBE_NAME not in path]


def most_in_flight(docs: Docs) -> int:
    """Return how many pages a crawl has leased and not settled, at most.

    It leases when no more than half a lease is left to hand out, and while less than a batch waits to be settled. So
    there are at most a batch that is being settled, one that waits, a lease and a half, and what is under way.
    """
    return 2 * BATCH + BATCH * 3 // 2 + docs.concurrency
