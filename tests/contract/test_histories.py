"""Random histories: after every step a source is in the state that the reference model predicts.

Two sources that share contents are crawled, interrupted, held, rolled back, cleaned up and removed, while their sites
change. After each step the store is compared with ``tests.contract.reference_model``: every retained generation, every
lifecycle, the ledger, and the results of search.

``KEPT_TEST_LONG=1`` tries many more.
"""

import asyncio
import itertools
import json
import os
import zlib
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import apsw
import psycopg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from kept.crawl import activate, rollback
from kept.crawl.engine import CrawlRun
from kept.crawl.lifecycle import LifecycleRules
from kept.errors import NeedsDecision, NotFound, SourceUnavailable
from kept.extract.sections import SectionNode, SectionRules, build_content
from kept.jobs import queue
from kept.jobs.worker import claim_and_run
from kept.maintenance.gc import Retention, collect
from kept.model.document import Content, ParsedPage, ShownDocument
from kept.model.frontier import FrontierEntry, ListingFailure, Visit
from kept.model.job import CrawlJob, CrawlMode, JobStatus
from kept.model.section import SectionMatch
from kept.model.source import Limits, Scope, Source, SourceKind, SourceSettings
from kept.model.tokens import FullTextQuery, Term
from kept.service import jobs
from kept.service import sources as kept_sources
from kept.store import documents, sections, sources
from kept.store.database import Database, open_database
from tests.contract.reference_model import Crawl, ReferenceModel, World, read
from tests.factories import Page, Site, make_source

LONG = os.environ.get("KEPT_TEST_LONG") == "1"
PAGES = 14  # of a site, its root included
EXAMPLES = itertools.count(1)

WAYS = [CrawlMode.REFRESH, CrawlMode.FULL, CrawlMode.FAILED]  # a quick one promises less: test_quick
RULES = [
    LifecycleRules(),
    LifecycleRules(brake_documents=1, brake_share=0),  # every loss and every error holds
    LifecycleRules(brake_share=1.0),  # only when everything is lost
]


def test_every_history_keeps_every_promise(database_url: str) -> None:
    steps = settings(
        max_examples=800 if LONG else 20,
        stateful_step_count=30 if LONG else 15,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(partial(Histories, database_url), settings=steps)


# What a site is, and how it changes ----------------------------------------------------------------------------------


@dataclass
class Script:
    """A page of a random history."""

    text: str
    links: set[str] = field(default_factory=set)
    state: str = "page"  # or gone, fails, refused, or the URL it redirects to
    tagged: bool = True
    edition: int = 0  # of its validators

    def page(self) -> Page:
        links = tuple(sorted(self.links))
        tag = f'"{zlib.crc32(repr((self.text, links, self.edition)).encode())}"' if self.tagged else None
        match self.state:
            case "page":
                return Page(text=self.text, links=links, tag=tag)
            case "gone":
                return Page(gone=True)
            case "fails":
                return Page(text=self.text, links=links, tag=tag, error="500")
            case "refused":
                return Page(text=self.text, links=links, tag=tag, refused="robots.txt")
            case url:
                return Page(redirect=url)


class Writer:
    """Edits a site, one small change at a time."""

    def __init__(self, salt: str, root: str, *, lists_everything: bool) -> None:
        self.salt = salt
        self.lists_everything = lists_everything
        self.root = root
        self.urls = [
            root if index == 0 and not lists_everything else f"{root}{'ab'[index % 2]}/{index}"
            for index in range(PAGES)
        ]
        self.pages = {url: Script(text=self.text(index), state="gone") for index, url in enumerate(self.urls)}
        self.excluded: set[str] = set()
        self.unlisted: str | None = None
        self.most: int | None = None
        self._fresh = itertools.count()

    def text(self, number: int) -> str:
        """Return a new text of one or more sections. The first two are too short to match pages by content."""
        words = f"{self.salt} subject{number}"
        return words if number < 2 else "|".join([f"{words} {'and much more about it ' * 3}"] * (1 + number % 3))

    def begin(self, count: int, *, chained: bool) -> None:
        """Create a site whose pages are all linked from the root, or each from the one before it."""
        for index, url in enumerate(self.urls[: count + 1]):
            self.pages[url].state = "page"
            if index:
                self.pages[self.urls[index - 1 if chained else 0]].links.add(url)

    def world(self) -> World:
        return World(
            root=self.root,
            pages={url: script.page() for url, script in self.pages.items()},
            lists_everything=self.lists_everything,
            excluded=frozenset(self.excluded),
            unlisted=self.unlisted,
            most=self.most,
        )

    def edit(self, kind: str, at: int, to: int) -> None:
        """Edit an existing page (except the root), possibly with another URL."""
        standing = [url for url in self.urls[1:] if self.pages[url].state == "page"] or self.urls[1:]
        vacant = [url for url in self.urls[1:] if self.pages[url].state == "gone"] or self.urls[1:]
        here, new, other = standing[at % len(standing)], vacant[to % len(vacant)], self.urls[to]
        page, many = self.pages[here], [*standing, *standing][at % len(standing) :][: 1 + to // 2]
        match kind:
            case "write":
                page.text = self.text(to)
            case "write something new":
                page.text = f"{self.text(2)} {next(self._fresh)}"
            case "add":
                self.pages[new].state = "page"
                self.pages[self.urls[0] if at % 2 else here].links.add(new)
            case "copy":
                self.pages[new].text, self.pages[new].state = page.text, "page"
                page.links.add(new)
            case "link":
                page.links.add(other)
            case "unlink":
                page.links.discard(other)
            case "orphan":
                self._relink([here], None)
            case "orphan many":
                self._relink(many, None)
            case "take away" | "fail" | "refuse":
                page.state = {"take away": "gone", "fail": "fails", "refuse": "refused"}[kind]
            case "take many away" | "fail many":
                for url in many:
                    self.pages[url].state = "gone" if kind == "take many away" else "fails"
            case "mend":
                self.pages[other].state = "page"
            case "mend all":
                for script in self.pages.values():
                    script.state = "gone" if script.state == "gone" else "page"
                self.pages[self.urls[0]].state = "page"
                self.pages[self.urls[0]].links |= set(self.urls[1:])
                self.excluded, self.unlisted, self.most = set(), None, None
            case "break the root":
                self.pages[self.urls[0]].state = ["gone", "fails", "refused", "page"][to % 4]
            case "move" | "move and redirect" | "move and hide":
                self.pages[new].text, self.pages[new].state, page.state = page.text, "page", "gone"
                self._relink([here], new)
                if kind == "move and redirect" and not self.lists_everything:
                    page.state = new
                elif kind == "move and hide":
                    page.state = "refused"
            case "redirect" if not self.lists_everything:
                page.state = other
            case "redirect in a circle" if not self.lists_everything:
                page.state, self.pages[other].state = other, here
            case "redirect on" if not self.lists_everything:
                page.state = next((url for url, script in self.pages.items() if script.state in self.pages), other)
            case "swap":
                page.text, self.pages[other].text = self.pages[other].text, page.text
            case "tag":
                page.tagged = not page.tagged
            case "touch":
                page.edition += 1
            case "exclude":
                self.excluded ^= {other}
            case "unlist":
                self.unlisted = None if self.unlisted else f"{self.root}{'ab'[at % 2]}/"
            case "limit":
                self.most = None if self.most else to + 1

    def _relink(self, old: Sequence[str], new: str | None) -> None:
        """Replace links to the old URL by links to the new one, or remove them."""
        for script in self.pages.values():
            if script.links & set(old):
                script.links = script.links - set(old) | ({new} if new else set())


EDITS = [
    "move", "move", "move", "move and redirect", "move and redirect", "move and hide", "swap", "copy", "redirect",
    "redirect on", "redirect in a circle", "add", "add", "add", "write", "write", "write something new", "take away",
    "take away", "take many away", "orphan", "orphan many", "link", "unlink", "fail", "fail many", "refuse", "mend",
    "mend", "mend all", "mend all", "break the root", "tag", "touch", "exclude", "unlist", "limit",
]  # fmt: skip

Edit = tuple[str, int, int]  # what, where, and where to

edit = st.tuples(st.sampled_from(EDITS), st.integers(0, PAGES - 1), st.integers(0, PAGES - 1))
some_edits = st.lists(edit, min_size=1, max_size=6)
few_edits = st.lists(edit, max_size=2)

Cut = tuple[str, int]  # how, and after how many visits

cuts = st.one_of(
    st.none(),
    st.tuples(st.sampled_from(["stop", "pause", "kill", "cancel", "unavailable"]), st.integers(0, 8)),
)
"""How a crawl is cut short, if it is."""

SIDE = st.integers(0, 1)


@dataclass
class CutSite(Site):
    """A scripted site that can fail in the middle of a crawl."""

    cannot_list: str | None = None
    cut_after: int | None = None
    cut: Callable[[], Awaitable[None]] | None = None
    was_cut: bool = False

    async def open(self) -> None:
        await self._maybe_cut()

    async def list(self) -> Any:
        if self.cannot_list:
            yield ListingFailure(url=self.cannot_list, reason="cannot be listed")
        async for one in super().list():
            if not self.lists_everything or not self.cannot_list or not one.url.startswith(self.cannot_list):
                yield one

    async def visit(self, entry: FrontierEntry, *, conditional: bool) -> Visit:
        visit = await super().visit(entry, conditional=conditional)
        await self._maybe_cut()
        return visit

    async def _maybe_cut(self) -> None:
        if self.cut and not self.was_cut and self.cut_after == len(self.visits):
            self.was_cut = True
            await self.cut()


@cache
def content(text: str) -> Content:
    """Return the content of a page, whose sections are separated by bars."""
    first, *others = text.split("|")
    tree = SectionNode(content=first)
    for number, part in enumerate(others):
        tree.children.append(SectionNode(heading=f"Part {number}", level=1, anchor=f"part-{number}", content=part))
    return build_content("", text, tree, SectionRules())


async def read_page(signature: str, body: bytes, content_type: str, url: str) -> ParsedPage:
    text, *links = body.decode().split("\n")
    return ParsedPage(content=content(read(text, signature)), links=tuple(link for link in links if link))


# The machine ---------------------------------------------------------------------------------------------------------


@dataclass
class Side:
    """One source, with its site and its reference model."""

    source: Source
    writer: Writer
    promised: ReferenceModel = field(default_factory=ReferenceModel)
    ids: dict[int, str] = field(default_factory=dict)  # what the store calls our documents
    live: "Live | None" = None
    latest: str | None = None  # the job whose frontier is the ledger
    numbers: set[int] = field(default_factory=set)


@dataclass
class Live:
    """An interrupted crawl that can be resumed."""

    job: str
    crawl: Crawl
    rules: LifecycleRules


class Histories(RuleBasedStateMachine):
    def __init__(self, database_url: str) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.db: Database = self.run(open_database(database_url))
        self.raw = Raw(database_url)
        self.salt = f"example{next(EXAMPLES)}"
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.sides: list[Side] = []

    def run(self, work: Any) -> Any:
        return self.runner.run(work)

    @initialize(
        second=st.sampled_from([SourceKind.WEB, SourceKind.FOLDER]),
        count=st.sampled_from([10, 10, 8, 5, 0]),
        chained=st.booleans(),
    )
    def add_two_sources(self, second: SourceKind, count: int, chained: bool) -> None:
        for kind in (SourceKind.WEB, second):
            self.sides.append(self.run(self.add(kind, len(self.sides))))
            self.sides[-1].writer.begin(count, chained=chained)

    async def add(self, kind: SourceKind, index: int) -> Side:
        name = f"{self.salt}-{index}"
        root = f"file:///{name}/" if kind is SourceKind.FOLDER else f"https://{name}.test/"
        writer = Writer(self.salt, root, lists_everything=kind is SourceKind.FOLDER)
        return Side(source=await make_source(self.db, name, root=root, kind=kind), writer=writer)

    # What can happen

    @rule(at=SIDE, changes=some_edits, rules=st.sampled_from(RULES), wanted=st.sampled_from([None, True, False]))
    def refresh(self, at: int, changes: list[Edit], rules: LifecycleRules, wanted: bool | None) -> None:
        """Crawl, and decide about a held generation now, later, or never."""
        self.crawl(at, changes, CrawlMode.REFRESH, "1", 1, rules, None)
        if wanted is not None:
            self.check_everything()
            self.decide_about_what_is_held(days=0, wanted=wanted)

    @rule(at=SIDE, changes=few_edits, days=st.integers(2, 8), cut=cuts)
    def refresh_later(self, at: int, changes: list[Edit], days: int, cut: Cut | None) -> None:
        self.crawl(at, changes, CrawlMode.REFRESH, "1", 24 * days, RULES[0], cut)

    @rule(at=SIDE, changes=few_edits, mode=st.sampled_from(WAYS), signature=st.sampled_from("1123"), cut=cuts)
    def crawl_in_another_way(
        self, at: int, changes: list[Edit], mode: CrawlMode, signature: str, cut: Cut | None
    ) -> None:
        self.crawl(at, changes, mode, signature, 1, RULES[0], cut)

    @rule(at=SIDE, broken=some_edits, mended=few_edits)
    def break_and_repair(self, at: int, broken: list[Edit], mended: list[Edit]) -> None:
        self.crawl(at, broken, CrawlMode.REFRESH, "1", 1, RULES[-1], None)
        self.check_everything()
        self.crawl(at, mended, CrawlMode.FAILED, "1", 1, RULES[-1], None)

    def crawl(
        self,
        at: int,
        changes: list[Edit],
        mode: CrawlMode,
        signature: str,
        hours: int,
        rules: LifecycleRules,
        cut: Cut | None,
    ) -> None:
        side = self.sides[at]
        if side.live:
            self.run(self.go_on(side, cut))
            return
        for change in changes:
            side.writer.edit(*change)
        self.now += timedelta(hours=hours)
        self.run(self.crawl_side(side, mode, signature, rules, cut))

    @precondition(lambda self: any(side.live for side in self.sides))
    @rule(cut=cuts, cancelled=st.booleans())
    def go_on_or_cancel(self, cut: Cut | None, cancelled: bool) -> None:
        for side in self.sides:
            if side.live and cancelled:
                self.run(queue.cancel(self.db, side.live.job))
                side.promised.give_up(side.live.crawl)
                side.live = None
            elif side.live:
                self.run(self.go_on(side, cut))

    @precondition(lambda self: any(side.promised.held for side in self.sides))
    @rule(days=st.integers(0, 8), wanted=st.booleans())
    def decide_about_what_is_held(self, days: int, wanted: bool) -> None:
        self.now += timedelta(days=days)
        for side in self.sides:
            if side.promised.held and wanted:
                number = self.run(activate.activate_held(self.db, side.source.id, RULES[0], now=self.now))
                side.promised.activate_held(self.now, RULES[0])
                assert number == side.promised.active
            elif side.promised.held:
                self.run(activate.discard_held(self.db, side.source.id))
                side.promised.discard_held()

    @rule(
        at=SIDE,
        what=st.sampled_from(
            ["roll back"] * 3 + ["clean up"] * 2 + ["roll back to nothing", "decide about nothing", "remove"]
        ),
        back=st.integers(0, 4),
        young=st.booleans(),
    )
    def intervene(self, at: int, what: str, back: int, young: bool) -> None:
        side = self.sides[at]
        shown = [one.number for one in side.promised.generations.values() if one.state in ("active", "retired")]
        match what:
            case "roll back" if shown:
                target = shown[-1 - back % len(shown)]
                if side.live:
                    with pytest.raises(NeedsDecision):
                        self.run(rollback.roll_back(self.db, side.source.id, target))
                else:
                    self.run(rollback.roll_back(self.db, side.source.id, target))
                    side.promised.roll_back(target)
            case "roll back to nothing" if not side.live:
                never_shown = side.promised.held.number if side.promised.held else 99
                with pytest.raises(NotFound):
                    self.run(rollback.roll_back(self.db, side.source.id, never_shown))
            case "decide about nothing" if not side.promised.held:
                with pytest.raises(NotFound):
                    self.run(activate.activate_held(self.db, side.source.id, RULES[0], now=self.now))
                with pytest.raises(NotFound):
                    self.run(activate.discard_held(self.db, side.source.id))
            case "remove":
                self.run(kept_sources.remove_source(self.db, side.source.label))
                kind = [SourceKind.WEB, SourceKind.FOLDER][back % 2]
                self.sides[at] = self.run(self.add(kind, at))
                self.sides[at].writer.begin(5, chained=False)
            case "clean up":
                self.clean_up(keep=1 + back, young=young)

    def clean_up(self, keep: int, young: bool) -> None:
        younger_than = timedelta(days=30 if young else 0)
        self.run(collect(self.db, Retention(generations=keep, younger_than=younger_than)))
        for side in self.sides:
            side.promised.collect(keep=keep, young=young)
        assert self.raw("SELECT hash FROM contents WHERE id NOT IN (SELECT content_id FROM versions)") == []
        assert self.raw("SELECT number FROM generations WHERE state = 'abandoned' AND NOT cleared") == []
        assert self.raw("SELECT id FROM sources WHERE removed_at IS NOT NULL") == []

    def teardown(self) -> None:
        for side in self.sides:
            self.run(kept_sources.remove_source(self.db, side.source.label))
        self.run(collect(self.db, Retention()))
        for side in self.sides:
            self.check_that_nothing_is_left(side.source)
        assert self.raw("SELECT hash FROM contents") == []
        assert self.raw("SELECT id FROM sections") == []
        self.raw.close()
        self.run(self.db.close())
        self.runner.close()

    # How it happens

    async def crawl_side(
        self, side: Side, mode: CrawlMode, signature: str, rules: LifecycleRules, cut: Cut | None
    ) -> None:
        world, promised = side.writer.world(), side.promised
        async with self.db.transaction() as tx:
            settings = SourceSettings(
                scope=Scope(exclude=tuple(sorted(world.excluded))), limits=Limits(max_pages=world.most)
            )
            await sources.set_settings(tx, side.source.id, settings)
        job = await queue.enqueue(self.db, side.source.id, mode=mode)
        site, done = await self.run_crawl(job.id, world, signature, rules, cut)
        if done.generation is None and done.status is JobStatus.COMPLETED:
            assert mode is CrawlMode.FAILED
            assert promised.has_nothing_to_repair
            return
        if done.generation is None:
            assert cut == ("unavailable", 0) or cut in (("stop", 0), ("pause", 0), ("kill", 0), ("cancel", 0))
            if done.status in (JobStatus.PENDING, JobStatus.PAUSED):
                await queue.cancel(self.db, job.id)
            return
        assert mode is not CrawlMode.FAILED or not promised.has_nothing_to_repair
        crawl = promised.begin(world, mode=mode, signature=signature)
        self.after_crawl(side, Live(job=job.id, crawl=crawl, rules=rules), site, done, cut)

    async def go_on(self, side: Side, cut: Cut | None) -> None:
        live = side.live
        assert live is not None
        if self.raw("SELECT status FROM crawl_jobs WHERE id = :id", id=live.job) == [("paused",)]:
            await queue.resume(self.db, live.job)
        site, done = await self.run_crawl(live.job, live.crawl.world, live.crawl.signature, live.rules, cut)
        self.after_crawl(side, live, site, done, cut)

    def after_crawl(self, side: Side, live: Live, site: CutSite, done: CrawlJob, cut: Cut | None) -> None:
        side.live = None
        match cut[0] if cut and site.was_cut else None:
            case "cancel" | "unavailable":
                assert done.status in (JobStatus.CANCELLED, JobStatus.FAILED)
                side.promised.give_up(live.crawl)
            case "stop" | "pause" | "kill" if done.status in (JobStatus.PENDING, JobStatus.PAUSED):
                side.live = live
            case _:
                entries = self.raw("SELECT url, depth, reason FROM frontier WHERE job_id = :job", job=live.job)
                ended = side.promised.finish(
                    live.crawl,
                    depths={url: depth for url, depth, _ in entries},
                    kept_out=frozenset(url for url, _, reason in entries if reason == "a limit was reached"),
                    now=self.now,
                    rules=live.rules,
                )
                actual = "held" if done.held else {"completed": "active"}.get(done.status, done.status)
                assert actual == ended, f"{done.status}, held: {done.held}, {done.error}; expected: {ended}"
                if ended != "failed" and live.crawl.mode != "failed":
                    side.latest = live.job

    async def run_crawl(
        self, job: str, world: World, signature: str, rules: LifecycleRules, cut: Cut | None
    ) -> tuple[CutSite, CrawlJob]:
        """Run the job to its end, or until it is interrupted."""
        site = CutSite(
            pages=world.pages,
            lists_everything=world.lists_everything,
            root=world.root,
            excluded=world.excluded,
            cannot_list=world.unlisted,
        )
        runs: list[CrawlRun] = []

        def make_run(lease: Any, claimed: Source) -> CrawlRun:
            reading = partial(read_page, signature)
            run = CrawlRun(
                self.db, lease, claimed, site, read=reading, signature=signature, rules=rules, now=self.now,
            )  # fmt: skip
            runs.append(run)
            return run

        working = asyncio.create_task(claim_and_run(self.db, job, make_run))

        async def cut_it() -> None:
            match cut:
                case ("stop", _):
                    runs[0].stop()
                case ("pause", _):
                    await queue.pause(self.db, job)
                case ("kill", _):
                    working.cancel()
                case ("cancel", _):
                    await queue.cancel(self.db, job)
                case ("unavailable", _):
                    raise SourceUnavailable("the root is not there")

        if cut:
            site.cut_after, site.cut = cut[1], cut_it
        with suppress(asyncio.CancelledError):
            await working
        return site, await jobs.get_job(self.db, job)

    # Comparison with the model

    @invariant()
    def check_everything(self) -> None:
        if self.sides:
            self.run(self.compare())

    async def compare(self) -> None:
        async with self.db.snapshot() as snapshot:
            found = await sections.search_sections_fts(
                snapshot, FullTextQuery(terms=[Term((self.salt,))]), [], limit=100_000
            )
            for side in self.sides:
                promised = side.promised
                current = await sources.get(snapshot, side.source.id)
                assert current is not None
                assert current.active_generation == promised.active
                numbers = [one.number for one in promised.generations.values() if one.state in ("active", "retired")]
                shown = {
                    number: await documents.of_generation(snapshot, side.source.id, number, limit=1000)
                    for number in numbers
                }
                in_search = await sections.in_generations(
                    snapshot, list(found.scores), [(side.source.id, number) for number in numbers]
                )
                self.compare_generations(side)
                for number in numbers:
                    self.compare_shown(side, number, shown[number])
                    self.compare_found(side, number, [match for match in in_search if match.generation == number])
        for side in self.sides:
            self.compare_active(side)
            self.compare_documents(side)
            self.compare_ledger(side)
            self.check_removals(side)
            self.check_rows(side)
        self.raw.check_full_text()

    def compare_generations(self, side: Side) -> None:
        rows = self.raw(
            "SELECT number, base, state, documents, partial, changed, tally FROM generations WHERE source_id = :source",
            source=side.source.id,
        )
        promised = side.promised.generations
        assert {row[0]: row[2] for row in rows} == {one.number: one.state for one in promised.values()}
        for number, base, state, count, partial_, changed, tally in rows:
            one = promised[number]
            assert base == one.base
            if state in ("active", "retired", "held"):
                assert count == one.documents, f"generation {number} says it shows {count}, expected: {one.documents}"
                assert partial_ == one.partial, f"generation {number}: partial is {partial_}, expected: {one.partial}"
                counts = {outcome: count for outcome, count in self.raw.json(tally).items() if count}
                counts["dead_link"] = counts.pop("dead_links", 0)
                assert +Counter(counts) == +Counter(one.tally)
            if state in ("active", "retired"):
                assert bool(changed) == one.changed
        side.numbers |= promised.keys()
        assert side.numbers == set(range(1, max(side.numbers, default=0) + 1)), "numbers follow each other"

    def compare_shown(self, side: Side, number: int, documents: list[ShownDocument]) -> None:
        promised = side.promised.generations[number].shows
        assert sorted(one.url for one in documents) == sorted(promised), f"generation {number}"
        for one in documents:
            version = promised[one.url]
            assert one.content_hash == content(version.content).hash, f"generation {number}, {one.url}"
            if version.document not in side.ids:
                assert one.id not in side.ids.values(), f"{one.url} should be a new document"
                side.ids[version.document] = one.id
            assert one.id == side.ids[version.document], f"generation {number}, {one.url}: not that document"

    def compare_found(self, side: Side, number: int, matches: list[SectionMatch]) -> None:
        """Check that search finds every section of the shown documents, and nothing else."""
        shown = side.promised.generations[number].shows.values()
        assert sorted((match.url, match.document_id, match.text) for match in matches) == sorted(
            (version.url, side.ids[version.document], section.text)
            for version in shown
            for section in content(version.content).sections
        )

    def compare_active(self, side: Side) -> None:
        rows = self.raw("SELECT url, id FROM documents_active WHERE source_id = :source", source=side.source.id)
        shown = side.promised.shows(side.promised.active).values()
        assert sorted(rows) == sorted((version.url, side.ids[version.document]) for version in shown)

    def compare_documents(self, side: Side) -> None:
        rows = self.raw(
            "SELECT id, lifecycle, retry_count, missed_crawls, since, first_generation FROM documents"
            " WHERE source_id = :source",
            source=side.source.id,
        )
        unseen = {row[0]: row[5] for row in rows if row[0] not in side.ids.values()}
        held_or_on_its_way_out = [
            one.number for one in side.promised.generations.values() if one.state not in ("active", "retired")
        ]
        assert set(unseen.values()) <= set(held_or_on_its_way_out), "a document that no generation ever showed"
        known = {row[0]: row[1:5] for row in rows if row[0] not in unseen}
        assert known.keys() == {side.ids[id] for id in side.promised.documents}
        for id, one in side.promised.documents.items():
            lifecycle, retries, missed, since = known[side.ids[id]]
            assert lifecycle == one.lifecycle, f"{one.last.url} is {lifecycle}, expected: {one.lifecycle}"
            assert (retries, missed) == (one.retries, one.missed), one.last.url
            if lifecycle in ("missing", "error"):
                assert self.raw.moment(since) == one.since, one.last.url

    def compare_ledger(self, side: Side) -> None:
        """Compare the outcomes in the ledger with the model."""
        if side.latest:
            rows = self.raw("SELECT url, outcome FROM frontier WHERE job_id = :job", job=side.latest)
            found, promised = dict(rows), side.promised.ledger
            if side.writer.lists_everything:  # what is listed and is as it was leaves no entry
                found = {url: outcome for url, outcome in found.items() if outcome != "unchanged"}
                promised = {url: outcome for url, outcome in promised.items() if outcome != "unchanged"}
            assert found == promised

    def check_removals(self, side: Side) -> None:
        """Check that every removal has its reason: in the history and, if the latest crawl made it, in the ledger."""
        removed = self.raw(
            "SELECT v.url, v.died, v.end_reason FROM versions v WHERE v.source_id = :source AND v.died IS NOT NULL"
            " AND NOT EXISTS (SELECT 1 FROM versions n WHERE n.document_id = v.document_id AND n.born = v.died)",
            source=side.source.id,
        )
        assert [url for url, _, reason in removed if not reason] == []
        assert not self.raw(
            "SELECT v.url FROM versions v JOIN versions n ON n.document_id = v.document_id AND n.born = v.died"
            " WHERE v.source_id = :source AND v.end_reason IS NOT NULL",
            source=side.source.id,
        )
        if side.latest:
            [[generation]] = self.raw("SELECT generation FROM crawl_jobs WHERE id = :job", job=side.latest)
            rows = self.raw("SELECT url, outcome, reason FROM frontier WHERE job_id = :job", job=side.latest)
            ledger = {url: (outcome, reason) for url, outcome, reason in rows}
            for url, _, reason in (one for one in removed if one[1] == generation):
                assert ledger[url] in (("gone", reason), ("skipped", reason)), url

    def check_rows(self, side: Side) -> None:
        source = side.source.id
        living = self.raw(
            "SELECT document_id, url FROM versions WHERE source_id = :source AND died IS NULL AND NOT pending"
            " AND born <= :active",
            source=source,
            active=side.promised.active or 0,
        )
        assert len({document for document, _ in living}) == len({url for _, url in living}) == len(living)
        assert not self.raw(
            "SELECT v.id FROM versions v JOIN generations g ON g.source_id = v.source_id AND g.number = v.born"
            " WHERE v.source_id = :source AND g.state = 'abandoned' AND g.cleared",
            source=source,
        )
        assert not self.raw(
            "SELECT d.id FROM documents d JOIN generations g ON g.source_id = d.source_id"
            " AND g.number = d.first_generation WHERE d.source_id = :source AND g.state = 'abandoned' AND g.cleared",
            source=source,
        )
        assert not self.raw(
            "SELECT id FROM versions WHERE source_id = :source AND pending AND (died IS NOT NULL OR born <= :active)",
            source=source,
            active=side.promised.active or 0,
        )

    def check_that_nothing_is_left(self, source: Source) -> None:
        for table in ("documents", "versions", "generations", "crawl_jobs"):
            assert self.raw(f"SELECT 1 FROM {table} WHERE source_id = :source", source=source.id) == []
        assert self.raw("SELECT 1 FROM sources WHERE id = :source", source=source.id) == []


class Raw:
    """Reads the tables directly, without the store."""

    def __init__(self, url: str) -> None:
        self._postgres = self._sqlite = None
        if urlsplit(url).scheme == "sqlite":
            self._sqlite = apsw.Connection(url.removeprefix("sqlite:///"))
        else:
            self._postgres = psycopg.connect(url, autocommit=True)

    def __call__(self, sql: str, **values: Any) -> list[tuple[Any, ...]]:
        if self._sqlite:
            return self._sqlite.execute(sql, values).fetchall()
        assert self._postgres is not None
        for name in values:
            sql = sql.replace(f":{name}", f"%({name})s")
        return [tuple(map(self._plain, row)) for row in self._postgres.execute(sql, values).fetchall()]

    def close(self) -> None:
        for connection in (self._sqlite, self._postgres):
            if connection:
                connection.close()

    def check_full_text(self) -> None:
        """Check the full-text index: PostgreSQL has it in the rows of sections, SQLite in a table of its own."""
        if self._sqlite:
            words = {row[0] for row in self._sqlite.execute("SELECT rowid FROM section_words")}
            assert words == {row[0] for row in self._sqlite.execute("SELECT id FROM sections")}

    @staticmethod
    def json(stored: Any) -> dict[str, int]:
        return json.loads(stored) if isinstance(stored, str) else stored

    @staticmethod
    def moment(stored: Any) -> datetime:
        return datetime.fromisoformat(stored) if isinstance(stored, str) else stored

    @staticmethod
    def _plain(value: Any) -> Any:
        return str(value) if isinstance(value, UUID) else value
