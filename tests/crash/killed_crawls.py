"""Kill and resume crawls, and compare them with an undisturbed one.

    python -m tests.crash.killed_crawls --rounds 100 --store both
    python -m tests.crash.killed_crawls --rounds 20 --store both --origin web

The first kills crawls of a folder at every crash point (every named statement and every commit: its first, middle and
last occurrence; before, half-way through its rows, and after), then `--rounds` crawls at random moments, again and
again until they are complete. The second does the same with a site: at every crash point of a small one, and with
strace at every write to the files of SQLite, or at everything that is sent to PostgreSQL; then about ten times a crawl
of one of 3,000 pages; and `--rounds` refreshes of it are killed and given up, and the one after that has to see every
change. They print the seed (repeat a run with `--seed`) and the counts.

The oracle is an undisturbed run of the same crawl. After every kill the shown documents have to be the complete old set
or the complete new one, and no committed page is visited again, according to the log of the server.
"""

import argparse
import asyncio
import random
import secrets
import shutil
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from itertools import count, pairwise
from pathlib import Path
from typing import Any, get_args
from uuid import uuid4

import psycopg

from kept.errors import NeedsDecision
from kept.jobs import queue
from kept.model.search_request import SearchRequest
from kept.service import search as search_service
from kept.store.database import Database, open_database
from tests.crash.crawler import Call, Crawlers, Order, Point, Run, Side, Write
from tests.crash.docs import Docs, Folder, ScenarioName, Web, most_in_flight
from tests.crash.state import (
    WATCHER,
    Interim,
    State,
    difference,
    everything,
    interim,
    reading,
    wait_until_left_alone,
)
from tests.postgres import PostgresServer
from tests.sites import manual

Crash = Point | Write | Call | float  # a float: seconds after the start

SCENARIOS: tuple[ScenarioName, ...] = get_args(ScenarioName)
WEB_SCENARIOS: tuple[ScenarioName, ...] = ("a first crawl", "a refresh")
WRITING = "write,pwrite64,fsync,fdatasync,ftruncate,unlink,rename"  # to the files of SQLite
SENDING = "sendto,sendmsg,write"  # to PostgreSQL, to the site, to itself
PAGES = 3000
FEW_PAGES = 20
KILLS_A_ROUND = 10  # of a site, about
EVERYTHING_SHOWN = 10_000  # more hits than there are pages
SIDES: tuple[Side, ...] = ("before", "within", "after")
MOST_SILENT_KILLS = 2  # one more kill without progress, and the job would be given up by design


@dataclass
class Counts:
    kills: int = 0
    crawls: int = 0
    not_reached: list[str] = field(default_factory=list)
    most_in_flight: int = 0  # pages visited and not committed, at one kill
    in_flight: int = 0  # at all kills together
    allowed: int = 0  # at one kill, by the engine's own limits
    visited: int = 0
    visited_again: int = 0
    answers: int = 0  # of searches while it happened

    def __str__(self) -> str:
        return (
            f"{self.crawls} crawls, {self.kills} kills, {len(self.not_reached)} crash points not reached; "
            f"{self.visited} pages visited, {self.visited_again} of them again, {self.in_flight} in flight when killed "
            f"(at most {self.most_in_flight} at once, {self.allowed} allowed); "
            f"{self.answers} searches answered meanwhile"
        )


class Store:
    """Creates databases, empty or as copies of a prepared one."""

    def __init__(self, folder: Path, server: PostgresServer | None = None) -> None:
        self._folder = folder
        self._server = server

    @property
    def name(self) -> str:
        return "postgres" if self._server else "sqlite"

    @contextmanager
    def database(self, base: str | None = None) -> Iterator[str]:
        url = self.copy(base) if base else self.new()
        try:
            yield url
        finally:
            self.drop(url)

    def new(self) -> str:
        return self._server.create_database() if self._server else f"sqlite:///{self._folder / uuid4().hex}.db"

    def copy(self, base: str) -> str:
        if self._server is None:
            url = self.new()
            for suffix in ("", "-wal"):  # not -shm: a copy has to be recovered like a file after a power cut
                path = Path(_path(base) + suffix)
                if path.exists():
                    shutil.copyfile(path, _path(url) + suffix)
            return url
        url = self._server.url(f"kept_test_{uuid4().hex}")
        with psycopg.connect(self._server.url("postgres"), autocommit=True) as session:
            session.execute(f"CREATE DATABASE {_name(url)} TEMPLATE {_name(base)}".encode())
        return url

    def drop(self, url: str) -> None:
        if self._server:
            self._server.drop_database(url)
            return
        for suffix in ("", "-wal", "-shm"):
            Path(_path(url) + suffix).unlink(missing_ok=True)

    @contextmanager
    def at_rest(self, url: str) -> Iterator[str]:
        """Copy the database of a killed process, to inspect it without recovering it."""
        wait_until_left_alone(url)
        if self._server:
            yield url
            return
        with self.database(url) as copy:
            yield copy


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A crawl to disturb, and its undisturbed result."""

    name: ScenarioName
    store: Store
    crawlers: Crawlers
    docs: Docs
    base: str | None  # the database it starts with
    last_job: str | None
    before: list[tuple[Any, ...]]
    after: list[tuple[Any, ...]]
    expected: State
    undisturbed: Run

    def __str__(self) -> str:
        return f"{self.name} of {self.docs.root} on {self.store.name}"

    def points(self) -> list[Point]:
        """Return the crash points of this crawl: the first, a middle and the last occurrence of each, in order."""
        many = {(name, k) for name, k in self.undisturbed.many}
        found = [
            Point(name, side, k)
            for name, times in Counter(self.undisturbed.executed).items()
            for k in dict.fromkeys((1, (times + 1) // 2, times))
            for side in SIDES
            if side != "within" or (name, k) in many
        ]
        return sorted(found, key=self.position)

    def position(self, point: Point) -> int:
        """Return the position of a crash point in the undisturbed crawl."""
        places = [place for place, name in enumerate(self.undisturbed.executed) if name == point.name]
        return places[point.k - 1]

    def in_a_row(self, points: Sequence[Point], length: int) -> list[list[tuple[Point, Point]]]:
        """Group the points, so that one crawl is killed at several of them, one after the other.

        A resumed process does not begin from the start, so its k-th execution is another one. Each point therefore has
        its number within its group.
        """
        points = sorted(points, key=self.position)
        apart = -(-len(points) // length)
        rows = [points[first::apart] for first in range(apart)]
        return [[(row[0], row[0]), *((two, self._after(one, two)) for one, two in pairwise(row))] for row in rows]

    def _after(self, before: Point, point: Point) -> Point:
        executed = self.undisturbed.executed[self.position(before) : self.position(point) + 1]
        return Point(point.name, point.side, executed.count(point.name))

    def crawl(self, url: str, crash: Crash | None = None, **faults: Any) -> Run:
        """Run the crawl, or the rest of it."""
        match crash:
            case Point():
                faults["crash"] = crash
            case Write():
                faults["write"] = crash
            case Call():
                faults["inject"] = f"{crash.calls}:signal=SIGKILL:when={crash.n}"
            case float():
                faults["kill_after"] = crash
        docs = self.docs
        return self.crawlers.crawl(Order(url=url, root=docs.root, visits=docs.visits, last_job=self.last_job, **faults))


def prepare(name: ScenarioName, store: Store, crawlers: Crawlers, docs: Docs) -> Scenario:
    """Prepare the docs and a database before the crawl, and the result of an undisturbed crawl."""
    base = None if name == "a first crawl" else store.new()
    last_job = None

    def crawl(url: str, **more: Any) -> Run:
        docs.warm(crawlers)
        run = crawlers.crawl(Order(url=url, root=docs.root, visits=docs.visits, last_job=last_job, **more))
        assert run.killed == ("crash" in more), run.error
        assert not run.error, run.error
        wait_until_left_alone(url)
        return run

    for change, then in docs.changes(name):
        change()
        if base and then != "nothing":
            crawl(base, **{} if then == "crawl" else {"crash": Point("complete_job", "before", 1)})
            last_job = _last_job(base)
        if base and then == "give up a crawl":
            asyncio.run(_cancel(base, last_job or ""))

    with store.database(base) as url:
        before = interim(url, last_job).shown if base else []
        counting = {"write": Write(-1)} if store.name == "sqlite" and isinstance(docs, Folder) else {}
        run = crawl(url, **counting)
        return Scenario(
            name=name,
            store=store,
            crawlers=crawlers,
            docs=docs,
            base=base,
            last_job=last_job,
            before=before,
            after=interim(url, last_job).shown,
            expected=everything(url),
            undisturbed=run,
        )


def disturb(scenario: Scenario, crashes: Iterable[Crash], counts: Counts, *, watched: bool = False) -> int:
    """Run the crawl to its end, killed at each of the crash points. Returns how many were reached.

    Raises AssertionError if the result differs from that of an undisturbed crawl.
    """
    store, docs, crashes = scenario.store, scenario.docs, iter(crashes)
    allowed = counts.allowed = most_in_flight(docs)
    with store.database(scenario.base) as url:
        docs.visited()  # before
        committed, may_kill, kills = set[str](), True, 0
        every: list[str] = []
        in_flight = 0
        with watch(url, scenario, counts) if watched and scenario.base else nullcontext():
            while True:
                run = scenario.crawl(url, next(crashes, None) if may_kill else None)
                visited = docs.visited()
                assert not run.error, run.error
                assert len(visited) == len(set(visited)), "a page was visited twice by one process"
                assert not committed & set(visited), f"committed and visited again: {committed & set(visited)}"
                every += visited
                if not run.killed:
                    break
                kills += 1
                with store.at_rest(url) as left:
                    state_left = check_interim(left, scenario, searching=kills == 1)
                lost = set(visited) - state_left.done
                assert lost <= state_left.leased, f"pages are lost that were not leased: {lost - state_left.leased}"
                assert len(state_left.leased) <= allowed, (
                    f"{len(state_left.leased)} pages are in flight, {allowed} are allowed"
                )
                counts.most_in_flight = max(counts.most_in_flight, len(lost))
                in_flight += len(lost)
                committed, may_kill = state_left.done, state_left.retries < MOST_SILENT_KILLS
        again = len(every) - len(set(every))
        assert again <= in_flight, f"{again} pages were visited again, {in_flight} were in flight"
        counts.kills += kills
        counts.crawls += 1
        counts.in_flight += in_flight
        counts.visited += len(every)
        counts.visited_again += again
        wait_until_left_alone(url)
        different = difference(everything(url), scenario.expected)
        assert not different, different
    return kills


def give_up(scenario: Scenario, moment: float, counts: Counts) -> None:
    """Kill the crawl after some seconds and give it up. The next one has to see every change nevertheless.

    Nothing of the abandoned crawl may be left, such as a validator that would turn a change into "not modified".
    """
    with scenario.store.database(scenario.base) as url:
        run = scenario.crawl(url, moment)
        assert not run.error, run.error
        counts.kills += run.killed
        with scenario.store.at_rest(url) as left:
            check_interim(left, scenario)
        killed = _last_job(url)
        if killed != scenario.last_job:
            with suppress(NeedsDecision):  # it was killed when all was done
                asyncio.run(_cancel(url, killed))
            scenario = replace(scenario, last_job=killed)
        run = scenario.crawl(url)
        assert not run.error, run.error
        counts.crawls += 1
        wait_until_left_alone(url)
        assert interim(url, scenario.last_job).shown == scenario.after, "the next crawl has missed a change"
        different = difference(_living(everything(url)), _living(scenario.expected))
        assert not different, different


def _living(state: State) -> State:
    """Return the shown documents and their validators, without their generations."""
    rows = [(url, *rest) for _, url, _, died, *rest in state["versions"] if died is None]
    return {"versions": sorted(rows, key=repr), "contents": state["contents"]}


def check_interim(url: str, scenario: Scenario, *, searching: bool = True) -> Interim:
    """Check that all old documents are shown before the commit of the activation, all new ones after it."""
    state_left = interim(url, scenario.last_job)
    assert state_left.shown in (scenario.before, scenario.after), "neither the old set nor the new one is shown"
    if state_left.shown and searching:
        found = asyncio.run(_search_everywhere(url))
        assert found == {row[0] for row in state_left.shown}, "a search finds something else than what is shown"
    return state_left


@contextmanager
def watch(url: str, scenario: Scenario, counts: Counts) -> Iterator[None]:
    """Search all the time, through every kill."""
    old, new = ({row[0] for row in rows} for rows in (scenario.before, scenario.after))
    ended = threading.Event()
    wrong: list[str] = []

    async def search() -> None:
        name = "" if url.startswith("sqlite") else f"&application_name={WATCHER}"
        db = await open_database(f"{url}{name}", create=False)
        try:
            while not ended.is_set():
                found = await _found_everywhere(db)
                counts.answers += 1
                await asyncio.sleep(0.01)  # leave time for the crawl
                if found not in (old, new):
                    wrong.append(f"{len(found)} documents: {len(found - old)} not old, {len(found - new)} not new")
        finally:
            await db.close()

    def run() -> None:
        try:
            asyncio.run(search())
        except Exception as error:
            wrong.append(f"{type(error).__name__}: {error}")

    reader = threading.Thread(target=run)
    reader.start()
    try:
        yield
    finally:
        ended.set()
        reader.join()
    assert not wrong, f"a search was answered with a mixture: {wrong[:3]}"


def count_calls(scenario: Scenario, calls: str) -> int:
    """Return how many of these calls the busiest thread of an undisturbed crawl makes."""
    with scenario.store.database(scenario.base) as url, tempfile.NamedTemporaryFile("r") as traced:
        run = scenario.crawl(url, inject=f"{calls}:delay_enter=0", traced=traced.name)
        assert not run.error, run.error
        return max(Counter(line.split()[0] for line in traced).values())


def random_moments(chance: random.Random, seconds: float) -> Iterator[float]:
    """Yield random moments without end."""
    while True:
        yield chance.uniform(0, seconds)


def many_moments(chance: random.Random, run: Run, kills: int) -> Iterator[float]:
    """Yield moments for many kills in one crawl: one in six before any progress, the others after a part of it."""
    begun = run.first_batch
    part = 2 * (run.seconds - begun) / kills
    while True:
        yield chance.uniform(0, begun) if chance.random() < 1 / 6 else chance.uniform(begun, begun + part)


async def _search_everywhere(url: str) -> set[str]:
    db = await open_database(url, create=False)
    try:
        return await _found_everywhere(db)
    finally:
        await db.close()


async def _found_everywhere(db: Database) -> set[str]:
    """Return the pages that a search finds; pages with equal texts are one hit."""
    hits = await search_service.search_sections(db, SearchRequest(text="everywhere", limit=EVERYTHING_SHOWN))
    return {url.partition("#")[0] for hit in hits for url in (hit.url, *(other["url"] for other in hit.also))}


async def _cancel(url: str, job: str) -> None:
    db = await open_database(url)
    try:
        await queue.cancel(db, job)
    finally:
        await db.close()
    wait_until_left_alone(url)


def _last_job(url: str) -> str:
    wait_until_left_alone(url)
    with reading(url) as db:
        return str(db.rows("SELECT id FROM crawl_jobs ORDER BY created_at DESC LIMIT 1")[0][0])


def _path(url: str) -> str:
    return url.removeprefix("sqlite:///")


def _name(url: str) -> str:
    return url.partition("?")[0].rpartition("/")[2]


# The long form ----------------------------------------------------------------------------------------------------


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash.killed_crawls")
    parser.add_argument("--origin", choices=["folder", "web"], default="folder")
    parser.add_argument("--rounds", type=int, default=100, help="crawls that are killed at random moments, per store")
    parser.add_argument("--store", choices=["sqlite", "postgres", "both"], default="both")
    parser.add_argument("--pages", type=int, default=PAGES, help="pages of the site")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**32))
    parser.add_argument("--no-points", action="store_true", help="random moments only")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    wrong = 0
    for name in ["sqlite", "postgres"] if arguments.store == "both" else [arguments.store]:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            crawlers = stack.enter_context(Crawlers())
            server = PostgresServer() if name == "postgres" else None
            if server:
                stack.callback(server.close)
                server.start()
            store = Store(folder, server)
            chance = random.Random(f"{arguments.seed} {name}")
            if arguments.origin == "folder":
                scenarios = [prepare(one, store, crawlers, Folder(folder / one)) for one in SCENARIOS]
                wrong += 0 if arguments.no_points else _kill_everywhere(scenarios)
                wrong += _kill_anywhere(scenarios, chance, arguments.rounds)
            else:

                def site(pages: int, stack: ExitStack = stack) -> Web:
                    return Web(stack.enter_context(manual.served(pages)))

                if not arguments.no_points:
                    few = [prepare(one, store, crawlers, site(FEW_PAGES)) for one in WEB_SCENARIOS]
                    wrong += _kill_everywhere(few) + _kill_at_every_call(few, chance)
                many = [prepare(one, store, crawlers, site(arguments.pages)) for one in WEB_SCENARIOS]
                wrong += _kill_anywhere(many, chance, arguments.rounds, arguments.rounds * KILLS_A_ROUND)
                wrong += _give_up_anywhere(many[-1], chance, arguments.rounds)
    return 1 if wrong else 0


def _kill_everywhere(scenarios: Sequence[Scenario]) -> int:
    wrong = 0
    for scenario in scenarios:
        counts = Counts()
        for point in scenario.points():
            try:
                if not disturb(scenario, [point], counts):
                    counts.not_reached.append(str(point))
            except AssertionError as error:
                wrong += 1
                print(f"WRONG: {scenario}, killed {point}: {error}", flush=True)
        print(f"{scenario}, killed at every crash point: {counts}", flush=True)
        if counts.not_reached:
            print(f"  not reached: {', '.join(counts.not_reached)}", flush=True)
    return wrong


def _kill_at_every_call(scenarios: Sequence[Scenario], chance: random.Random) -> int:
    """Kill at the first, the second, … call until a crawl is complete, and once more soon after each resumption."""
    wrong = 0
    for scenario in scenarios:
        counts, calls = Counts(), calls_of(scenario)
        for n in count(1):
            try:
                if not disturb(scenario, [Call(calls, n), Call(calls, chance.randint(1, 40))], counts):
                    break
            except AssertionError as error:
                wrong += 1
                print(f"WRONG: {scenario}, killed at call no. {n}: {error}", flush=True)
        print(f"{scenario}, killed at every one of {n - 1} calls: {counts}", flush=True)
    return wrong


def calls_of(scenario: Scenario) -> str:
    return WRITING if scenario.store.name == "sqlite" else SENDING


def _kill_anywhere(scenarios: Sequence[Scenario], chance: random.Random, rounds: int, kills: int = 0) -> int:
    """Kill a number of crawls, and more if they were not killed often enough."""
    wrong, counts = 0, Counts()
    while counts.crawls + wrong < rounds or counts.kills < kills:
        scenario = chance.choice(scenarios)
        run = scenario.undisturbed
        moments = many_moments(chance, run, KILLS_A_ROUND) if kills else random_moments(chance, run.seconds)
        try:
            disturb(scenario, moments, counts, watched=True)
        except AssertionError as error:
            wrong += 1
            print(f"WRONG: {scenario}, random round {counts.crawls + wrong}: {error}", flush=True)
    print(f"{scenarios[0].store.name}, crawls killed at random moments: {counts}", flush=True)
    return wrong


def _give_up_anywhere(scenario: Scenario, chance: random.Random, rounds: int) -> int:
    wrong, counts = 0, Counts()
    while counts.crawls + wrong < rounds:
        try:
            give_up(scenario, chance.uniform(0, scenario.undisturbed.seconds), counts)
        except AssertionError as error:
            wrong += 1
            print(f"WRONG: {scenario}, given up in round {counts.crawls + wrong}: {error}", flush=True)
    print(f"{scenario}, killed at a random moment and given up: {counts}", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
