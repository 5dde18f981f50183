"""One entry, visited: asked for at its origin, read, rendered first where that is needed, and decided on."""

import hashlib
from collections.abc import Awaitable, Callable

from kept.crawl.context import CrawlContext
from kept.crawl.decide import decide, is_conditional, needs_reading
from kept.crawl.settle import VisitResult
from kept.extract.sections import Unreadable
from kept.model.document import ParsedPage
from kept.model.frontier import Fetched, FrontierEntry, Visit
from kept.model.job import CrawlMode

ReadPage = Callable[[bytes, str, str], Awaitable[ParsedPage | Unreadable]]  # body, content type, URL


class Visitor:
    """How entries are visited."""

    def __init__(self, context: CrawlContext, read: ReadPage) -> None:
        self._context = context
        self._read = read

    async def visit(self, entry: FrontierEntry) -> VisitResult:
        full, signature = self._context.job.mode is CrawlMode.FULL, self._context.signature
        conditional = is_conditional(entry, signature, full=full)
        visit = await self._context.origin.visit(entry, conditional=conditional)
        read, raw_hash = await self._read_if_needed(entry, visit)
        # A page that has been rendered and is still a shell is no longer Fetched, so this ends.
        while isinstance(visit, Fetched) and isinstance(read, ParsedPage) and read.is_js_shell:
            rendered = await self._context.origin.render(entry, visit)
            if rendered is None:
                break
            visit = rendered
            read, raw_hash = await self._read_if_needed(entry, visit)
        size = len(visit.body) if isinstance(visit, Fetched) else 0
        decision = decide(
            entry,
            visit,
            read,
            raw_hash=raw_hash,
            signature=signature,
            now=self._context.now(),
            conditional=conditional,
        )
        return VisitResult(entry=entry, decision=decision, bytes=size)

    async def _read_if_needed(self, entry: FrontierEntry, visit: Visit) -> tuple[ParsedPage | Unreadable | None, str]:
        """What the reader makes of what came, and the hash of its bytes. Bytes that are held are not read again."""
        if not isinstance(visit, Fetched):
            return None, ""
        raw_hash = hashlib.sha256(visit.body).hexdigest()
        if not needs_reading(entry, raw_hash, self._context.signature):
            return None, raw_hash
        return await self._read(visit.body, visit.content_type, visit.final_url or entry.url), raw_hash
