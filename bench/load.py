"""Measure search under load during a crawl, and the crawl under the load.

    python -m bench.load [--connections 100] [--rate 10] [--pages 4000] [--seconds 30] [--store sqlite|postgres]

The PostgreSQL manual of Debian is searched while a site of small pages is crawled. nginx serves both; one ``kept
serve`` with its defaults searches and crawls. Targets: 99 % of the queries are answered, p95 is at most 3 × that of the
idle server, no query takes a second, the crawl keeps 70 % of its speed, and a keystroke in the web search takes at most
5 × the time of the API. Then the server is overloaded: refusals have Retry-After, and it recovers afterwards.
"""

import argparse
import asyncio
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen

from bench.crawl.nginx import MANUALS, served
from tests.e2e.load import Answer, flood, offer
from tests.postgres import PostgresServer
from tests.sites.manual import write

KEYSTROKES = 100
CROWD = 200  # concurrent connections, more than the server accepts
STORES = ("sqlite", "postgres")
COLUMNS = (
    *("store", "answered", "idle p50", "idle p95", "crawl p50", "crawl p95", "p95 × idle", "longest"),
    *("pages/s alone", "pages/s asked", "kept", "page × API"),
)


@dataclass(frozen=True)
class Workload:
    connections: int
    rate: float
    pages: int
    seconds: float


def main() -> None:
    parser = argparse.ArgumentParser("bench.load", description=__doc__)
    parser.add_argument("--connections", type=int, default=100)
    parser.add_argument("--rate", type=float, default=10)
    parser.add_argument("--pages", type=int, default=4000)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--store", choices=STORES, action="append")
    arguments = parser.parse_args()
    workload = Workload(arguments.connections, arguments.rate, arguments.pages, arguments.seconds)
    print(
        f"{workload.connections} connections, {workload.rate:g} queries/s in total, a crawl of {workload.pages} pages\n"
    )
    print(f"| {' | '.join(COLUMNS)} |\n| --- {'| ---: ' * (len(COLUMNS) - 1)}|", flush=True)
    for store in arguments.store or STORES:
        with _databases(store) as new:
            _measure(store, new, workload)


def _measure(store: str, new: Callable[[], str], workload: Workload) -> None:
    paths = [f"/api/v1/search?q={quote(query)}" for query in _queries()]
    with served(MANUALS["postgres"]) as manual, _site(workload.pages) as site:
        with _serving(new()) as server:
            server.crawl("manual", manual)
            alone = server.crawl("site", site)
        with _serving(new()) as server:
            server.crawl("manual", manual)
            idle = asyncio.run(_answers_during(server.url, paths, workload, lambda: time.sleep(workload.seconds)))
            typed = _keystrokes(server.url, paths)
            speeds: list[float] = []
            busy = asyncio.run(
                _answers_during(server.url, paths, workload, lambda: speeds.append(server.crawl("site", site)))
            )
            _show(store, idle, busy, alone, speeds[0], typed)
            _overload(server, paths)


async def _answers_during(
    url: str, paths: Sequence[str], workload: Workload, meanwhile: Callable[[], None]
) -> list[Answer]:
    """Return the answers to queries that were sent while ``meanwhile`` ran."""
    stop = asyncio.Event()
    offered = offer(url, paths, stop, connections=workload.connections, a_second=workload.rate)
    queries = asyncio.create_task(offered)
    await asyncio.to_thread(meanwhile)
    stop.set()
    return await queries


def _keystrokes(url: str, paths: Sequence[str]) -> float:
    """Return the median ratio of the web page's time to the API's."""
    times: dict[str, list[float]] = {"/api/v1/search?": [], "/?": []}
    for path in paths[:KEYSTROKES]:
        for way, taken in times.items():
            began = time.perf_counter()
            with urlopen(Request(url + path.replace("/api/v1/search?", way), headers={"HX-Request": "true"})) as answer:
                answer.read()
            taken.append(time.perf_counter() - began)
    api, page = map(statistics.median, times.values())
    return page / api


def _show(
    store: str, idle: Sequence[Answer], busy: Sequence[Answer], alone: float, meanwhile: float, typed: float
) -> None:
    answered = 100 * sum(answer.status == 200 for answer in busy) / len(busy)
    calm, took = _times(idle), _times(busy)
    times = [f"{1000 * _at(taken, part):.0f} ms" for taken in (calm, took) for part in (0.5, 0.95)]
    cells = [store, f"{answered:.1f} % of {len(busy)}", *times, f"{_at(took, 0.95) / _at(calm, 0.95):.1f}"]
    cells += [f"{1000 * took[-1]:.0f} ms", f"{alone:.0f}/s", f"{meanwhile:.0f}/s", f"{100 * meanwhile / alone:.0f} %"]
    print(f"| {' | '.join([*cells, f'{typed:.1f}'])} |", flush=True)


def _overload(server: "_Served", paths: Sequence[str]) -> None:
    crowd = asyncio.run(flood(server.url, paths, connections=CROWD, each=20))
    print(f"\n{CROWD} at once, as fast as answers come: {_describe(crowd)}")
    key = {"Authorization": f"Bearer {server.key()}"}
    greedy = asyncio.run(flood(server.url, ["/api/v1/sources"], connections=10, each=150, **key))
    print(f"1500 requests of one key, as fast as answers come: {_describe(greedy)}")
    print(f"Afterwards: {_describe(asyncio.run(flood(server.url, paths, connections=1, each=20)))}\n", flush=True)


def _describe(answers: Sequence[Answer]) -> str:
    counted = Counter((answer.status, answer.retry_after) for answer in answers)
    counts = [
        f"{number} × {status or 'nothing'}" + (f" (Retry-After: {wait})" if wait else "")
        for (status, wait), number in counted.most_common()
    ]
    return f"{', '.join(counts)}; the longest took {max(answer.seconds for answer in answers):.1f} s"


def _times(answers: Sequence[Answer]) -> list[float]:
    return sorted(answer.seconds for answer in answers)


def _at(taken: Sequence[float], part: float) -> float:
    return taken[min(len(taken) - 1, int(part * len(taken)))]


def _queries() -> list[str]:
    """Return queries: some words of a title of the manual each."""
    chance = random.Random(1)
    titles = []
    for file in sorted(MANUALS["postgres"].glob("*.html")):
        if found := re.search(r"<title>(.*?)</title>", file.read_text("utf-8", "replace"), re.DOTALL):
            titles.append(re.findall(r"[A-Za-z_]{3,}", found[1]))
    made = [" ".join(chance.sample(title, min(len(title), chance.randint(1, 3)))) for title in titles if title]
    chance.shuffle(made)
    return made


@contextmanager
def _site(pages: int) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="bench") as folder:
        write(Path(folder), pages)
        Path(folder).chmod(0o755)  # nginx runs as another user
        with served(Path(folder)) as root:
            yield root


# The server --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Served:
    url: str
    database: str

    def crawl(self, name: str, root: str) -> float:
        """Run a first crawl to its end. Returns pages per second."""
        job = self._request("/api/v1/sources", {"root": root, "name": name})["job"]
        while (found := self._request(f"/api/v1/jobs/{job}"))["completed_at"] is None:
            time.sleep(0.5)
        assert found["status"] == "completed", found
        began, ended = (datetime.fromisoformat(found[at]) for at in ("started_at", "completed_at"))
        return float(found["progress"]["new"] / (ended - began).total_seconds())

    def key(self) -> str:
        made = ["keys", "add", "greedy", "--scope", "read"]
        command = [sys.executable, "-m", "kept", "--database", self.database, *made]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def _request(self, path: str, payload: dict[str, Any] | None = None) -> dict[str, Any]:
        body = json.dumps(payload).encode() if payload else None
        with urlopen(Request(self.url + path, body, {"Content-Type": "application/json"})) as answer:
            found: dict[str, Any] = json.load(answer)
            return found


@contextmanager
def _serving(database: str) -> Iterator[_Served]:
    with tempfile.TemporaryDirectory(prefix="bench") as folder:
        settings, log = {"KEPT_NETWORK__ALLOW_PRIVATE": "1", "XDG_DATA_HOME": folder}, Path(folder) / "log"
        command = [sys.executable, "-m", "kept", "--database", database, "serve", "--port", "0"]
        with log.open("wb") as stderr, subprocess.Popen(command, stderr=stderr, env=os.environ | settings) as server:
            try:
                while not (found := re.search(r"serves at (http://\S+?)/ ", log.read_text())):
                    assert server.poll() is None, log.read_text()
                    time.sleep(0.05)
                yield _Served(found[1], database)
                assert server.poll() is None, log.read_text()[-2000:]
            finally:
                server.terminate()


@contextmanager
def _databases(store: str) -> Iterator[Callable[[], str]]:
    """Yield a function that creates a database and returns its URL."""
    if store == "sqlite":
        with tempfile.TemporaryDirectory(prefix="bench") as folder:
            numbers = iter(range(100))
            yield lambda: f"sqlite:///{folder}/{next(numbers)}.db"
        return
    server = PostgresServer()
    server.start()
    try:
        yield server.create_database
    finally:
        server.close()


if __name__ == "__main__":
    main()
