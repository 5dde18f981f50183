"""Previews that callers of the server ask for: one page, or the pages that a crawl would begin with.

Nothing is stored, so any key may ask. But each preview may keep connections, a process and a tab of the browser busy
for as long as a site likes: they are limited in time, for each caller and in all.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from kept.errors import InvalidInput, QuotaExceeded, SourceUnavailable
from kept.model.source import SourceKind
from kept.service.access import Principal
from kept.service.context import Services
from kept.service.source_options import SourceOptions
from kept.service.source_request import ResolvedSource, SourceRequest, resolve_request

if TYPE_CHECKING:  # loads what a crawl needs
    from kept.crawl.preview import PagePreview, ScopePreview

MAX_RUNNING = 8
MAX_RUNNING_OF_CALLER = 4
MAX_RUNNING_OF_TREES = 2  # of repositories and packages, which are listed as a whole
MAX_REQUESTED = 24  # running or waiting
MAX_REQUESTED_OF_CALLER = 8
_TREES = (SourceKind.GIT, SourceKind.PACKAGE)
PREVIEW_SECONDS = 30.0  # with the time that it waits


class PreviewLimits:
    """Counts the previews of this process."""

    def __init__(self) -> None:
        self._requested = Counter[str]()  # by caller
        self._in_all = asyncio.Semaphore(MAX_RUNNING)
        self._of_trees = asyncio.Semaphore(MAX_RUNNING_OF_TREES)
        self._of_callers = defaultdict[str, asyncio.Semaphore](lambda: asyncio.Semaphore(MAX_RUNNING_OF_CALLER))

    @asynccontextmanager
    async def slot(self, caller: str, kind: SourceKind) -> AsyncIterator[None]:
        """Wait until another preview of this caller may run. Raises QuotaExceeded if too many wait already."""
        if self._requested[caller] >= MAX_REQUESTED_OF_CALLER or self._requested.total() >= MAX_REQUESTED:
            raise QuotaExceeded("Too many pages are being fetched for previews. Try again when some of them are there.")
        self._requested[caller] += 1
        try:
            async with self._of_callers[caller]:
                if kind in _TREES:
                    async with self._of_trees, self._in_all:
                        yield
                else:
                    async with self._in_all:
                        yield
        finally:
            self._requested[caller] -= 1
            if not self._requested[caller]:
                del self._requested[caller], self._of_callers[caller]


async def preview_page(services: Services, principal: Principal, url: str, options: SourceOptions) -> "PagePreview":
    """Fetch one page and return how it would be read. Raises InvalidInput, QuotaExceeded and SourceUnavailable."""
    page = resolve_request(SourceRequest(root=url, options=options, as_="web"), principal)
    if page.kind in _TREES:
        raise InvalidInput(f"{url} is not the address of one page. 'kept add {url}' keeps all its documentation.")
    async with _limited(services, principal, page):
        return await services.preview_page(page.kind, page.root, page.settings, page.authority)


async def preview_scope(services: Services, principal: Principal, source: ResolvedSource) -> "ScopePreview":
    """Return the pages that a crawl would begin with. Raises QuotaExceeded and SourceUnavailable."""
    async with _limited(services, principal, source):
        return await services.preview_scope(source.kind, source.root, source.settings, source.authority)


@asynccontextmanager
async def _limited(services: Services, principal: Principal, source: ResolvedSource) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(PREVIEW_SECONDS), services.preview_limits.slot(principal.name or "", source.kind):
            yield
    except TimeoutError:
        raise SourceUnavailable(f"{source.root} did not answer within {PREVIEW_SECONDS:g} seconds.") from None
