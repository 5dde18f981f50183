"""The walk: takes open entries, visits them, and settles what it learned, batch by batch.

    1. begin       a generation to fill (or the one that was begun before)
    2. list        the origin names everything it has, or where to start
    3. lease       take entries that are due; they are this worker's until they are settled or it is gone
    4. visit       at the origin, many at once; read what came; decide
    5. settle      one fenced transaction a batch; links that lead on join the frontier
    6. activate    when nothing is left

Resuming is walking on: an entry is open until the commit that closes it. There is no recovery code.

Several may walk one job, each from its own place. One lists; all lease, visit and settle; whoever sees that nothing is
left activates, and the job's row lets only one of them. What they may ask of a host they share (``hosts``).
"""

import asyncio
import hashlib
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Set
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import Any

from kept.crawl import activate, settle
from kept.crawl.activate import Activation
from kept.crawl.decide import (
    Decision,
    Ended,
    Keep,
    TryAgain,
    Unchanged,
    decide,
    is_conditional,
    needs_no_visit,
    needs_reading,
)
from kept.crawl.history import is_newer, judge_claims
from kept.crawl.hosts import Sharing
from kept.crawl.settle import Visited
from kept.crawl.sweep import Rules
from kept.errors import LeaseLost, SourceUnavailable
from kept.extract.sections import Unreadable
from kept.log import Log
from kept.model.document import Reading
from kept.model.frontier import Entry, Fetched, Listed, Outcome, Unlisted, Visit
from kept.model.job import CrawlJob, CrawlMode, JobStatus
from kept.model.source import Source
from kept.origins.origin import Origin
from kept.store import documents, frontier, generations, jobs, sources
from kept.store.database import Connection, Database, moment, when
from kept.store.frontier import Found, HeldTag, HeldUrl, ListedEntry
from kept.store.jobs import Place

log = Log(__name__)

BATCH_PAGES = 200
BATCH_SECONDS = 2.0
LISTED_AT_ONCE = 2000
LEASED_AT_ONCE = 200  # at most
LEASED_SECONDS = 1.0  # as much as is visited in that time: the rest is left to others, who may be there or come
REMEMBERED_LINKS = 200_000
LONGEST_NAP = 1.0
SHORTEST_NAP = 0.2  # while others have the last entries, or all of the host
NOT_HELD: HeldTag = ("", 0, None)

Read = Callable[[bytes, str, str], Awaitable[Reading | Unreadable]]  # body, content type, URL


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """The walk ended without being finished here: paused, cancelled, handed over, or finished by another."""

    status: JobStatus


class Walk:
    """One worker's walk through one job."""

    def __init__(
        self,
        db: Database,
        place: Place,
        source: Source,
        origin: Origin,
        *,
        read: Read,
        signature: str,
        rules: Rules,
        on_progress: Callable[[CrawlJob], None] = lambda job: None,
        now: datetime | None = None,
    ) -> None:
        self._db = db
        self._place = place
        self._source = source
        self._origin = origin
        self._read = read
        self._signature = signature
        self._rules = rules
        self._on_progress = on_progress
        self._fixed_now = now
        self._sharing = Sharing(db, place, origin)
        self._stopping = asyncio.Event()
        self._ended = JobStatus.PROCESSING  # what was known of the job when it was stopped
        self._known_links: dict[str, None] = {}
        self._stride = LEASED_AT_ONCE  # how many entries are leased at once
        self._cut_off = False
        self._unmentioned = 0  # listed and unchanged: they leave no entry
        self._base: int | None = None
        self._known = 0  # documents of the base
        self._claimed: set[str] = set()  # URLs that a seed list calls modified
        self._claims = self._true_claims = 0  # those of them that were visited, and that were
        self._root: str | None = None  # what tells it from another in its place
        self._job: CrawlJob
        self._clock: tuple[datetime, float]

    def stop(self, status: JobStatus = JobStatus.PROCESSING) -> None:
        """Asks the walk to stop after the batch at hand, because its job is paused or ended, or this worker goes."""
        self._ended = status
        self._stopping.set()

    async def run(self) -> Activation | Stopped | None:
        """Walks to the end. None: somebody else has activated, or the job failed."""
        try:
            async with self._sharing.renewed():
                if not await self._unless_stopped(self._prepare()):
                    return Stopped(status=self._ended)
                stopped = await self._walk()
            if stopped:
                return stopped
            await self._judge_sitemap()
            return await activate.activate(self._db, self._place, self._rules, now=self._fixed_now)
        finally:
            await self._origin.close()

    async def _prepare(self) -> None:
        self._root = await self._origin.open()
        self._job = await activate.begin(
            self._db, self._place, lists_everything=self._origin.lists_everything, now=self._fixed_now
        )
        await self._look_around()
        await self._list()

    async def _unless_stopped(self, step: Coroutine[Any, Any, None]) -> bool:
        """True if the step was done. False if it was cut short; walking on, it is taken up where it was."""
        doing, stopping = asyncio.create_task(step), asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({doing, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            doing.cancel()
            stopping.cancel()
            await asyncio.wait({doing, stopping})
        return not doing.cancelled() and doing.result() is None

    async def _look_around(self) -> None:
        async with self._db.snapshot() as snapshot:
            self._clock = (await moment(snapshot), time.monotonic())
            generation = await generations.get(snapshot, self._source.id, self._job.generation or 0)
            if generation and generation.base:
                base = await generations.get(snapshot, self._source.id, generation.base)
                self._base, self._known = generation.base, base.documents if base else 0

    # 2. list

    async def _list(self) -> None:
        if self._job.listed:
            return
        unlisted: list[Unlisted] = []
        if self._job.mode is not CrawlMode.FAILED:
            if self._origin.lists_everything:
                await self._take_complete_list(unlisted)
            else:
                await self._take_seeds(unlisted)
        async with self._db.transaction() as tx:
            await jobs.hold(tx, self._place)
            await jobs.mark_listed(
                tx, self._job.id, lists_everything=self._origin.lists_everything, unlisted=bool(unlisted)
            )
            # Counted here and not before: a walk that is cut short lists them again.
            unchanged, self._unmentioned = self._unmentioned, 0
            numbered = await jobs.number_batch(tx, self._job.id, discovered=unchanged, unmentioned=unchanged)
            self._job = await settle.count(tx, numbered)
            if self._root:
                await sources.remember_root(tx, self._source.id, self._root)

    async def _take_seeds(self, unlisted: list[Unlisted]) -> None:
        quick = self._job.mode is CrawlMode.QUICK
        trusted = self._source.sitemap_wrong_at is None
        async for chunk in _chunks(self._origin.list(), unlisted):
            newer = await self._said_to_be_newer(chunk) if self._base is not None else frozenset()
            wanted = {self._source.root, *(newer if trusted else ())}
            self._claimed |= newer if trusted or not quick else frozenset()
            await self._settle([], [Found(url=one.url, depth=0, wanted=one.url in wanted) for one in chunk])

    async def _said_to_be_newer(self, listed: list[Listed]) -> Set[str]:
        """What is known and, as the origin says, was modified since it was last visited."""
        listed = [one for one in listed if one.modified_at]
        if not listed:
            return frozenset()
        async with self._db.snapshot() as snapshot:
            last = await generations.last_verified(snapshot, self._source.id)
            known = await documents.living_at(
                snapshot, self._source.id, [one.url for one in listed], generation=self._job.generation or 0
            )
        fetched = {row["url"]: when(row["fetched_at"]) for row in known}
        visited = {url: max(at, last or at) for url, at in fetched.items()}
        return {one.url for one in listed if one.url in visited and is_newer(one, visited[one.url])}

    def _check_claims(self, decisions: Iterable[Decision]) -> None:
        """Other bytes are a modification, even where they say the same."""
        answered = [one for one in decisions if isinstance(one, Keep | Unchanged)]
        self._claims += len(answered)
        self._true_claims += sum(isinstance(one, Keep) or one.renewal is not None for one in answered)

    async def _judge_sitemap(self) -> None:
        wrong = judge_claims(made=self._claims, true=self._true_claims)
        if wrong is not None and wrong != (self._source.sitemap_wrong_at is not None):
            async with self._db.transaction() as tx:
                await jobs.hold(tx, self._place)
                await sources.judge_sitemap(tx, self._source.id, wrong=wrong)

    async def _take_complete_list(self, unlisted: list[Unlisted]) -> None:
        """Absence is evidence: what is held and not listed is gone, unless its part of the list could not be read."""
        known: dict[str, HeldTag] = {}
        async with self._db.snapshot() as snapshot:
            if self._base is not None:
                known = await frontier.held_tags(
                    snapshot, source=self._source.id, base=self._base, signature=self._signature
                )
            taken = await frontier.urls(snapshot, self._job.id)  # by a walk that was cut short
        absent, arrived, listed = dict(known), [], len(taken)
        async for chunk in _chunks(self._origin.list(), unlisted):
            listed += len(chunk)
            different = self._different(chunk, absent, taken)
            arrived += [one.url for one in different if known and one.url not in known]
            different = [one for one in different if one.url not in taken]
            held = await self._held(known[one.url] for one in different if one.url in known)
            entries = [self._listed(one, held.get(one.url)) for one in different]
            await self._insert_listed([entry for entry in entries if entry])
        gone = await self._held(absent.values())
        left = [one for one in gone.values() if one.url not in taken]
        missed = sum(self._origin.admits(one.url) for one in left)
        self._check_root(shown=len(known), absent=missed, is_empty=not listed and not unlisted)
        # Asked about all of them, whatever a walk that was cut short has taken: the answer has to be the same.
        validators = {one.url: one.validators for one in gone.values()}
        moved = await self._origin.renamed(validators, arrived) if gone and arrived else {}
        ended = [self._absent(one, moved.get(one.url), unlisted) for one in left]
        for start in range(0, len(ended), LISTED_AT_ONCE):
            await self._insert_listed(ended[start : start + LISTED_AT_ONCE])

    def _different(self, chunk: list[Listed], absent: dict[str, HeldTag], taken: Set[str]) -> list[Listed]:
        """What is not plainly as it was. The rest is only counted: of a large folder that is nearly all."""
        different = []
        full = self._job.mode is CrawlMode.FULL
        for one in chunk:
            _, _, etag = absent.pop(one.url, NOT_HELD)
            if etag is None or etag != one.etag or full or one.url in taken:
                different.append(one)
        self._unmentioned += len(chunk) - len(different)
        return different

    async def _held(self, tags: Iterable[HeldTag]) -> dict[str, HeldUrl]:
        versions = [version for _, version, _ in tags]
        if not versions:
            return {}
        async with self._db.snapshot() as snapshot:
            return {one.url: one for one in await frontier.held_urls(snapshot, versions)}

    def _absent(self, held: HeldUrl, moved_to: str | None, unlisted: list[Unlisted]) -> ListedEntry:
        outcome, reason = self._absence(held.url, unlisted)
        if moved_to:
            outcome, reason = Outcome.MOVED, f"renamed to {moved_to}"
        return ListedEntry(
            url=held.url,
            version_id=held.version_id,
            document=held.document,
            depth=held.depth,
            outcome=outcome,
            reason=reason,
            by_settings=outcome is Outcome.SKIPPED,
            redirect_to=moved_to,
        )

    def _check_root(self, *, shown: int, absent: int, is_empty: bool) -> None:
        """A root that is empty, or that another folder took the place of, is no evidence that files are gone."""
        if is_empty and absent:
            raise SourceUnavailable(f"{self._source.root} is empty, where {absent} documents were.")
        was = self._source.root_identity
        if was and self._root and was != self._root and absent * 2 > shown:
            raise SourceUnavailable(
                f"{self._source.root} is another folder than before, and {absent} of {shown} documents are not there."
            )

    def _listed(self, listed: Listed, held: HeldUrl | None) -> ListedEntry | None:
        """None: it is as it was, and nobody will ask for its entry. It is only counted."""
        if held is None:
            return ListedEntry(url=listed.url)
        same = self._job.mode is not CrawlMode.FULL and needs_no_visit(listed, held, self._signature)
        if same and not held.needs_entry:
            self._unmentioned += 1
            return None
        return ListedEntry(
            url=listed.url,
            version_id=held.version_id,
            document=held.document,
            depth=held.depth,
            outcome=Outcome.UNCHANGED if same else None,
        )

    def _absence(self, url: str, unlisted: list[Unlisted]) -> tuple[Outcome, str]:
        """What it means that a complete list does not name a URL."""
        if not self._origin.admits(url):
            return Outcome.SKIPPED, "left out by the source's settings"
        for part in unlisted:
            if url.startswith(part.url):
                return Outcome.FAILED, part.reason
        return Outcome.GONE, "no longer there"

    async def _insert_listed(self, entries: list[ListedEntry]) -> None:
        if not entries:
            return
        async with self._db.transaction() as tx:
            await jobs.hold(tx, self._place)
            added = await frontier.insert_listed(tx, self._job.id, entries, batch=self._job.batch + 1)
            self._job = await settle.count(tx, await jobs.number_batch(tx, self._job.id, discovered=added))
        self._on_progress(self._job)

    # 3 to 5. lease, visit, settle

    async def _walk(self) -> Stopped | None:
        """Visits go on while the batch before is settled and the next entries are leased."""
        entries: deque[Entry] = deque()
        visiting: set[asyncio.Task[Visited]] = set()
        visited: list[Visited] = []
        leasing: asyncio.Task[list[Entry]] | None = None
        settling: asyncio.Task[None] | None = None
        began = time.monotonic()
        more = True  # whether the frontier may have entries that are not leased
        stopping = asyncio.create_task(self._stopping.wait())
        self._stride = self._lease_for(0.0)
        try:
            while True:
                stopped, concurrency = self._stopped(), self._origin.concurrency
                if stopped and not settling and not visited:
                    return stopped
                if not concurrency and not settling and not visited:
                    if self._place.joined and self._sharing.is_crowded_out:
                        return Stopped(status=self._job.status)  # those who were here before need all of the host
                    if entries or visiting:
                        await self._give_back(entries, visiting)
                while entries and len(visiting) < concurrency and not stopped:
                    visiting.add(asyncio.create_task(self._visit(entries.popleft())))
                under_way = visiting or visited or settling
                if concurrency and not entries and not leasing and not stopped and (more or not under_way):
                    leasing = asyncio.create_task(self._lease())
                runs_dry = not entries and not leasing and len(visiting) * 2 <= concurrency
                due = len(visited) >= BATCH_PAGES or time.monotonic() - began >= BATCH_SECONDS or runs_dry or stopped
                if visited and due and not settling:
                    settling = asyncio.create_task(self._settle(visited, self._found(visited)))
                    self._stride = self._lease_for(len(visited) / max(time.monotonic() - began, 0.001))
                    visited, began = [], time.monotonic()

                waiting: set[asyncio.Task[Any]] = visiting | {task for task in (leasing, settling) if task}
                waiting |= set() if stopped else {stopping}
                nap = LONGEST_NAP if concurrency else SHORTEST_NAP
                left = max(0.0, began + BATCH_SECONDS - time.monotonic()) if visited and not settling else nap
                done, _ = await asyncio.wait(waiting, timeout=left, return_when=asyncio.FIRST_COMPLETED)
                visited += [task.result() for task in visiting & done]
                visiting -= done
                if settling in done:
                    await settling
                    settling, more = None, True
                if leasing in done:
                    leased = await leasing
                    entries.extend(leased)
                    leasing, more = None, more and len(leased) >= self._stride
                    if not entries and not visiting and not visited and not settling and not await self._more():
                        return None
        finally:
            unfinished: set[asyncio.Task[Any]] = visiting | {task for task in (leasing, settling, stopping) if task}
            for task in unfinished:
                task.cancel()
            await asyncio.gather(*unfinished, return_exceptions=True)

    def _lease_for(self, pace: float) -> int:
        """How many entries to lease at once, at so many a second."""
        return min(LEASED_AT_ONCE, max(round(pace * LEASED_SECONDS), self._origin.concurrency, 1))

    def _stopped(self) -> Stopped | None:
        if self._stopping.is_set() and self._ended is not JobStatus.PROCESSING:
            return Stopped(status=self._ended)
        if self._job.status is not JobStatus.PROCESSING or self._stopping.is_set():
            return Stopped(status=self._job.status)
        return None

    async def _more(self) -> bool:
        """Whether entries are left, after a while for those that are not due or are another worker's."""
        async with self._db.snapshot() as snapshot:
            open = await frontier.unfinished(snapshot, self._job.id)
            job = await jobs.get(snapshot, self._job.id)
        if job is None:
            raise LeaseLost("The job was ended meanwhile.")
        self._job = job
        if not open.entries:
            return job.status is not JobStatus.PROCESSING  # then it is stopped, not finished here
        wait = (open.due_at - self._now()).total_seconds() if open.due_at else SHORTEST_NAP
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), min(max(wait, 0.05), LONGEST_NAP))
        return True

    async def _give_back(self, entries: deque[Entry], visiting: set[asyncio.Task[Visited]]) -> None:
        """What is leased and may not be asked for: others perhaps may."""
        for task in visiting:
            task.cancel()
        await asyncio.gather(*visiting, return_exceptions=True)
        visiting.clear()
        entries.clear()
        async with self._db.transaction() as tx:
            await jobs.hold(tx, self._place)
            await frontier.give_back(tx, self._place.id)

    async def _lease(self) -> list[Entry]:
        """The next entries: reached ones first; when none is left, what is only remembered."""
        async with self._db.transaction() as tx:
            await jobs.hold(tx, self._place)
            room = await self._room(tx)
            lease = partial(frontier.lease, tx, self._job.id, worker=self._place.id)
            entries = await lease(limit=self._stride, known=room is not None)
            if room:
                entries += await lease(limit=min(room, self._stride))
            elif room == 0 and not entries:
                await self._keep_out(tx)
            if not entries and not (await frontier.unfinished(tx, self._job.id)).reached:
                entries = await lease(limit=self._stride, reached=False)
        return entries

    async def _room(self, tx: Connection) -> int | None:
        """How many new documents a limit still admits; None: there is no limit. What all who walk here have leased
        counts, so the job is locked: nobody else leases meanwhile.
        """
        limits = self._source.settings.limits
        started = self._job.started_at
        if limits.max_seconds is not None and started and self._now() - started > timedelta(seconds=limits.max_seconds):
            return 0
        if limits.max_pages is None:
            return None
        self._job = await jobs.lock(tx, self._job.id) or self._job
        under_way = await frontier.new_under_way(tx, self._job.id)
        new = self._job.progress.tally.new + await jobs.uncounted_new(tx, self._job.id)
        return max(0, limits.max_pages - self._known - new - under_way)

    async def _keep_out(self, tx: Connection) -> None:
        self._job = await jobs.lock(tx, self._job.id) or self._job
        if await frontier.new_under_way(tx, self._job.id):
            return  # one of them may turn out to be no document
        skipped = await frontier.skip_new(tx, self._job.id, reason="a limit was reached", batch=self._job.batch + 1)
        if skipped:
            await jobs.mark_limited(tx, self._job.id)
            self._job = await settle.count(tx, await jobs.number_batch(tx, self._job.id))

    async def _visit(self, entry: Entry) -> Visited:
        full = self._job.mode is CrawlMode.FULL
        visit = await self._origin.visit(entry, conditional=is_conditional(entry, self._signature, full=full))
        read, raw_hash = await self._look(entry, visit)
        # A page that has been rendered and is still a shell is no longer Fetched, so this ends.
        while isinstance(visit, Fetched) and isinstance(read, Reading) and read.is_shell:
            rendered = await self._origin.render(entry, visit)
            if rendered is None:
                break
            visit = rendered
            read, raw_hash = await self._look(entry, visit)
        size = len(visit.body) if isinstance(visit, Fetched) else 0
        decision = decide(entry, visit, read, raw_hash=raw_hash, signature=self._signature, now=self._now())
        return Visited(entry=entry, decision=decision, bytes=size)

    async def _look(self, entry: Entry, visit: Visit) -> tuple[Reading | Unreadable | None, str]:
        """What the reader makes of what came, and the hash of its bytes. Bytes that are held are not read again."""
        if not isinstance(visit, Fetched):
            return None, ""
        raw_hash = hashlib.sha256(visit.body).hexdigest()
        if not needs_reading(entry, raw_hash, self._signature):
            return None, raw_hash
        return await self._read(visit.body, visit.content_type, visit.came_from or entry.url), raw_hash

    def _found(self, visited: list[Visited]) -> list[Found]:
        """The URLs that these visits lead on to, each once."""
        found: dict[str, Found] = {}
        deepest = self._source.settings.limits.max_depth
        for one in visited:
            entry, decision = one.entry, one.decision
            if isinstance(decision, TryAgain) or self._origin.lists_everything:
                continue
            if isinstance(decision, Ended) and decision.redirect_to:
                document = entry.held.document_id if entry.held else None
                found.setdefault(
                    decision.redirect_to,
                    Found(
                        url=decision.redirect_to,
                        depth=entry.depth,
                        parent=entry.url,
                        document=document,
                        reached=entry.reached,
                        wanted=True,
                    ),
                )
            if not entry.reached or self._job.mode is CrawlMode.FAILED:
                continue  # a ring of orphans cannot keep itself alive; a repair goes nowhere else
            for link in decision.links:
                if link in self._known_links or link in found or not self._origin.admits(link):
                    continue
                if deepest is not None and entry.depth >= deepest:
                    self._cut_off = True
                    continue
                found[link] = Found(url=link, depth=entry.depth + 1, parent=entry.url)
        return list(found.values())

    async def _settle(self, visited: list[Visited], found: list[Found]) -> None:
        began = time.monotonic()
        self._job = await settle.settle(self._db, self._place, self._job, visited, found, signature=self._signature)
        self._remember(found)
        if self._claimed:
            self._check_claims(one.decision for one in visited if one.entry.url in self._claimed)
        if self._cut_off and not self._job.limited:
            async with self._db.transaction() as tx:
                await jobs.mark_limited(tx, self._job.id)
        log.debug(
            "batch settled",
            source=self._source.label,
            job=self._job.id,
            pages=len(visited),
            found=len(found),
            took_ms=round(1000 * (time.monotonic() - began)),
        )
        self._on_progress(self._job)

    def _remember(self, found: list[Found]) -> None:
        """Links that are in the frontier need not be offered again; the memory for that is bounded."""
        self._known_links.update((one.url, None) for one in found if one.reached)
        for url in list(islice(self._known_links, max(0, len(self._known_links) - REMEMBERED_LINKS))):
            del self._known_links[url]

    def _now(self) -> datetime:
        """The database's clock, without asking it each time."""
        moment, at = self._clock
        return moment + timedelta(seconds=time.monotonic() - at)


async def _chunks(listing: AsyncIterator[Listed | Unlisted], unlisted: list[Unlisted]) -> AsyncIterator[list[Listed]]:
    """What is listed, in chunks; what could not be listed goes aside."""
    chunk: list[Listed] = []
    async for one in listing:
        if isinstance(one, Unlisted):
            unlisted.append(one)
        else:
            chunk.append(one)
        if len(chunk) >= LISTED_AT_ONCE:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
