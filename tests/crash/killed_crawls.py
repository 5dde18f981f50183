"""Crawls that are killed and resumed, and compared with one that was left alone.

    python -m tests.crash.killed_crawls --rounds 100 --store both

kills crawls at every crash point (every named statement and every commit: its first, middle and last occurrence;
before, half-way through its rows, and after), then `--rounds` crawls at random moments, again and again until they
are through. It prints the seed (name it with `--seed` to go the same way again) and what it counted.

The oracle is an undisturbed run of the same crawl. After every kill what is shown has to be the complete old set or
the complete new one, and no page that was committed is visited again.
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
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_args
from uuid import uuid4

import psycopg

from kept.service import finding
from kept.store.database import open_database
from kept.work import queue
from tests.crash import files
from tests.crash.crawler import Crawlers, Order, Point, Run, Side, Write
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

ScenarioName = Literal["a first crawl", "a refresh", "a refresh that is held"]

Crash = Point | Write | float  # a float: seconds after the start

SCENARIOS: tuple[ScenarioName, ...] = get_args(ScenarioName)
SIDES: tuple[Side, ...] = ("before", "within", "after")
MOST_SILENT_KILLS = 2  # killed once more without any progress, a job would be given up: that is what retries are for


@dataclass
class Counts:
    kills: int = 0
    crawls: int = 0
    not_reached: list[str] = field(default_factory=list)
    in_flight: int = 0  # pages, at most, at one kill
    visited_again: int = 0
    answers: int = 0  # of searches while it happened

    def __str__(self) -> str:
        return (
            f"{self.crawls} crawls, {self.kills} kills, {len(self.not_reached)} crash points not reached; "
            f"at most {self.in_flight} pages in flight, {self.visited_again} visited again; "
            f"{self.answers} searches answered meanwhile"
        )


class Store:
    """Makes databases, empty or as copies of a prepared one."""

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
        """The database as a killed process left it, to look at without recovering it."""
        wait_until_left_alone(url)
        if self._server:
            yield url
            return
        with self.database(url) as copy:
            yield copy


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A crawl to be disturbed, and how it ends when it is not."""

    name: ScenarioName
    store: Store
    crawlers: Crawlers
    folder: Path
    base: str | None  # the database it starts with
    last_job: str | None
    before: list[tuple[Any, ...]]
    after: list[tuple[Any, ...]]
    expected: State
    undisturbed: Run

    def __str__(self) -> str:
        return f"{self.name} on {self.store.name}"

    def points(self) -> list[Point]:
        """The crash points of this crawl: the first, a middle and the last occurrence of everything, in order."""
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
        """Where in the undisturbed crawl a crash point lies."""
        places = [place for place, name in enumerate(self.undisturbed.executed) if name == point.name]
        return places[point.k - 1]

    def in_a_row(self, points: Sequence[Point], length: int) -> list[list[tuple[Point, Point]]]:
        """The points in rows, so that one crawl is killed at several of them, one after the other.

        A process that goes on does not begin from the start: there the k-th execution is an earlier one. So each
        point comes with what it is in its row.
        """
        points = sorted(points, key=self.position)
        apart = -(-len(points) // length)
        rows = [points[first::apart] for first in range(apart)]
        return [[(row[0], row[0]), *((two, self._after(one, two)) for one, two in pairwise(row))] for row in rows]

    def _after(self, before: Point, point: Point) -> Point:
        executed = self.undisturbed.executed[self.position(before) : self.position(point) + 1]
        return Point(point.name, point.side, executed.count(point.name))

    def crawl(self, url: str, visits: Path, crash: Crash | None = None, **faults: Any) -> Run:
        """The crawl, or what is left of it."""
        match crash:
            case Point():
                faults["crash"] = crash
            case Write():
                faults["write"] = crash
            case float():
                faults["kill_after"] = crash
        order = Order(url=url, folder=str(self.folder), visits=str(visits), last_job=self.last_job, **faults)
        return self.crawlers.crawl(order)


def prepare(name: ScenarioName, store: Store, crawlers: Crawlers, folder: Path, size: int = files.FILES) -> Scenario:
    """A folder and a database as they are before the crawl, and the outcome of an undisturbed one."""
    folder.mkdir(parents=True)
    visits = folder.with_name(f"{folder.name} visits")
    base = None if name == "a first crawl" else store.new()
    last_job = None

    def crawl(crash: Point | None = None) -> None:
        crawlers.warm(folder)
        run = crawlers.crawl(
            Order(url=base or "", folder=str(folder), visits=str(visits), last_job=last_job, crash=crash)
        )
        assert run.killed == (crash is not None), run.error
        assert not run.error, run.error

    files.plant(folder, size)
    files.repeat(folder)
    if base:
        crawl()
        last_job = _last_job(base)
    if base and name == "a refresh":
        files.tend(folder)
        crawl()
        last_job = _last_job(base)
        files.graft(folder)
        crawl(Point("complete_job", "before", 1))
        last_job = _last_job(base)
        asyncio.run(_cancel(base, last_job))
        files.harvest(folder)
    if base and name == "a refresh that is held":
        files.clear_cut(folder)

    crawlers.warm(folder)
    with store.database(base) as url:
        before = interim(url, last_job).shown if base else []
        counting = Write(-1) if store.name == "sqlite" else None
        order = Order(url=url, folder=str(folder), visits=str(visits), last_job=last_job, write=counting)
        run = crawlers.crawl(order)
        assert not run.error, run.error
        wait_until_left_alone(url)
        return Scenario(
            name=name,
            store=store,
            crawlers=crawlers,
            folder=folder,
            base=base,
            last_job=last_job,
            before=before,
            after=interim(url, last_job).shown,
            expected=everything(url),
            undisturbed=run,
        )


def disturb(scenario: Scenario, crashes: Iterable[Crash], counts: Counts, *, watched: bool = False) -> int:
    """Runs the crawl to its end, killed at each of the crashes in turn; how many of them it came to.

    Raises AssertionError if the end is another one than that of an undisturbed crawl.
    """
    store, crashes = scenario.store, iter(crashes)
    with store.database(scenario.base) as url, tempfile.TemporaryDirectory() as place:
        visits = Path(place) / "visits"
        committed, may_kill, kills = set[str](), True, 0
        with watch(url, scenario, counts) if watched and scenario.base else nullcontext():
            while True:
                run = scenario.crawl(url, visits, next(crashes, None) if may_kill else None)
                visited = _taken(visits)
                assert not run.error, run.error
                assert len(visited) == len(set(visited)), "a page was visited twice by one process"
                assert not committed & set(visited), f"committed and visited again: {committed & set(visited)}"
                if not run.killed:
                    break
                kills += 1
                with store.at_rest(url) as left:
                    said = check_interim(left, scenario, searching=kills == 1)
                lost = set(visited) - said.done
                assert lost <= said.leased, f"pages are lost that nobody had leased: {lost - said.leased}"
                counts.in_flight = max(counts.in_flight, len(lost))
                counts.visited_again += len(lost)
                committed, may_kill = said.done, said.retries < MOST_SILENT_KILLS
        counts.kills += kills
        counts.crawls += 1
        wait_until_left_alone(url)
        different = difference(everything(url), scenario.expected)
        assert not different, different
    return kills


def check_interim(url: str, scenario: Scenario, *, searching: bool = True) -> Interim:
    """Before activation's commit everything old is shown, after it everything new; and a search finds it."""
    said = interim(url, scenario.last_job)
    assert said.shown in (scenario.before, scenario.after), "neither the old set nor the new one is shown"
    if said.shown and searching:
        found = asyncio.run(_search_everywhere(url))
        assert found == {row[0] for row in said.shown}, "a search finds something else than what is shown"
    return said


@contextmanager
def watch(url: str, scenario: Scenario, counts: Counts) -> Iterator[None]:
    """Somebody who searches all the time, through every kill."""
    old, new = ({row[0] for row in rows} for rows in (scenario.before, scenario.after))
    ended = threading.Event()
    wrong: list[str] = []

    async def search() -> None:
        name = "" if url.startswith("sqlite") else f"&application_name={WATCHER}"
        db = await open_database(f"{url}{name}", create=False)
        try:
            while not ended.is_set():
                found = {hit.url.partition("#")[0] for hit in await finding.search(db, "everywhere", limit=500)}
                counts.answers += 1
                await asyncio.sleep(0.01)  # it shall not take all the time that the crawl needs
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


def random_moments(chance: random.Random, seconds: float) -> Iterator[float]:
    """Kills without end; how far a crawl comes is chance."""
    while True:
        yield chance.uniform(0, seconds)


async def _search_everywhere(url: str) -> set[str]:
    db = await open_database(url, create=False)
    try:
        return {hit.url.partition("#")[0] for hit in await finding.search(db, "everywhere", limit=500)}
    finally:
        await db.close()


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


def _taken(visits: Path) -> list[str]:
    """The URLs that were visited since this was last asked."""
    if not visits.exists():
        return []
    lines = visits.read_text().splitlines()
    visits.unlink()
    return lines


def _path(url: str) -> str:
    return url.removeprefix("sqlite:///")


def _name(url: str) -> str:
    return url.partition("?")[0].rpartition("/")[2]


# The long form ----------------------------------------------------------------------------------------------------


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash.killed_crawls")
    parser.add_argument("--rounds", type=int, default=100, help="crawls that are killed at random moments, per store")
    parser.add_argument("--store", choices=["sqlite", "postgres", "both"], default="both")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**32))
    parser.add_argument("--no-points", action="store_true", help="random moments only")
    asked = parser.parse_args()
    print(f"seed {asked.seed}", flush=True)
    wrong = 0
    for name in ["sqlite", "postgres"] if asked.store == "both" else [asked.store]:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            crawlers = stack.enter_context(Crawlers())
            server = PostgresServer() if name == "postgres" else None
            if server:
                stack.callback(server.close)
                server.start()
            store = Store(folder, server)
            scenarios = [prepare(scenario, store, crawlers, folder / scenario) for scenario in SCENARIOS]
            if not asked.no_points:
                wrong += _kill_everywhere(scenarios)
            wrong += _kill_anywhere(scenarios, random.Random(f"{asked.seed} {name}"), asked.rounds)
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


def _kill_anywhere(scenarios: Sequence[Scenario], chance: random.Random, rounds: int) -> int:
    wrong, counts = 0, Counts()
    for number in range(rounds):
        scenario = chance.choice(scenarios)
        try:
            disturb(scenario, random_moments(chance, scenario.undisturbed.seconds), counts, watched=True)
        except AssertionError as error:
            wrong += 1
            print(f"WRONG: {scenario}, random round {number}: {error}", flush=True)
    print(f"{scenarios[0].store.name}, {rounds} crawls killed at random moments: {counts}", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
