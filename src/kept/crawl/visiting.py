"""One entry, visited: asked for at its origin, read, rendered first where that is needed, and decided on."""

import hashlib
from collections.abc import Awaitable, Callable

from kept.crawl.decide import decide, is_conditional, needs_reading
from kept.crawl.ground import Ground
from kept.crawl.settle import Visited
from kept.extract.sections import Unreadable
from kept.model.document import Reading
from kept.model.frontier import Entry, Fetched, Visit
from kept.model.job import CrawlMode

Read = Callable[[bytes, str, str], Awaitable[Reading | Unreadable]]  # body, content type, URL


class Visits:
    """How entries are visited."""

    def __init__(self, ground: Ground, read: Read) -> None:
        self._ground = ground
        self._read = read

    async def visit(self, entry: Entry) -> Visited:
        full, signature = self._ground.job.mode is CrawlMode.FULL, self._ground.signature
        conditional = is_conditional(entry, signature, full=full)
        visit = await self._ground.origin.visit(entry, conditional=conditional)
        read, raw_hash = await self._look(entry, visit)
        # A page that has been rendered and is still a shell is no longer Fetched, so this ends.
        while isinstance(visit, Fetched) and isinstance(read, Reading) and read.is_shell:
            rendered = await self._ground.origin.render(entry, visit)
            if rendered is None:
                break
            visit = rendered
            read, raw_hash = await self._look(entry, visit)
        size = len(visit.body) if isinstance(visit, Fetched) else 0
        decision = decide(
            entry,
            visit,
            read,
            raw_hash=raw_hash,
            signature=signature,
            now=self._ground.now(),
            conditional=conditional,
        )
        return Visited(entry=entry, decision=decision, bytes=size)

    async def _look(self, entry: Entry, visit: Visit) -> tuple[Reading | Unreadable | None, str]:
        """What the reader makes of what came, and the hash of its bytes. Bytes that are held are not read again."""
        if not isinstance(visit, Fetched):
            return None, ""
        raw_hash = hashlib.sha256(visit.body).hexdigest()
        if not needs_reading(entry, raw_hash, self._ground.signature):
            return None, raw_hash
        return await self._read(visit.body, visit.content_type, visit.came_from or entry.url), raw_hash
