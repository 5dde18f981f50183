"""One visit: fetch an entry from its origin, read it, render it if it is a JavaScript shell, and decide about it."""

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import replace

from kept.crawl.companions import CompanionFinder
from kept.crawl.context import CrawlContext
from kept.crawl.decide import VisitResult, decide, is_conditional, needs_reading
from kept.model.companions import Companions
from kept.model.document import ParsedPage, Unreadable
from kept.model.frontier import Fetched, FrontierEntry, Visit
from kept.model.job import CrawlMode

ReadPage = Callable[..., Awaitable[ParsedPage | Unreadable]]
"""Called with body, content type and URL; with ``companions`` only for a page that has some."""


class Visitor:
    """Visits the entries of one crawl."""

    def __init__(self, context: CrawlContext, read: ReadPage) -> None:
        self._context = context
        self._read = read
        self._companions = CompanionFinder(context.origin)

    async def visit(self, entry: FrontierEntry) -> VisitResult:
        is_full, signature = self._context.job.mode is CrawlMode.FULL, self._context.signature
        conditional = is_conditional(entry, signature, full=is_full)
        visit = await self._context.origin.visit(entry, conditional=conditional)
        companions = None
        if isinstance(visit, Fetched) and (companions := await self._companions.find(visit, entry.url)):
            visit = replace(visit, validators=visit.validators.with_companions(companions.digest))
        page, raw_hash = await self._read_if_needed(entry, visit, companions)
        # This ends: a page that was rendered and is still a shell is no longer Fetched.
        while isinstance(visit, Fetched) and isinstance(page, ParsedPage) and page.is_js_shell:
            rendered = await self._context.origin.render(entry, visit)
            if rendered is None:
                break
            visit = rendered
            page, raw_hash = await self._read_if_needed(entry, visit)
        size = len(visit.body) if isinstance(visit, Fetched) else 0
        decision = decide(
            entry,
            visit,
            page,
            raw_hash=raw_hash,
            signature=signature,
            now=self._context.now(),
            conditional=conditional,
        )
        return VisitResult(entry=entry, decision=decision, bytes=size)

    async def _read_if_needed(
        self, entry: FrontierEntry, visit: Visit, companions: Companions | None = None
    ) -> tuple[ParsedPage | Unreadable | None, str]:
        """Return the parsed page and the hash of its bytes. Bytes that are stored already are not read again."""
        if not isinstance(visit, Fetched):
            return None, ""
        raw_hash = hashlib.sha256(visit.body + (companions.digest.encode() if companions else b"")).hexdigest()
        if not needs_reading(entry, raw_hash, self._context.signature):
            return None, raw_hash
        options = {"companions": companions} if companions else {}
        return await self._read(visit.body, visit.content_type, visit.final_url or entry.url, **options), raw_hash
