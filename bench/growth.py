"""Measure how everything that Kept does grows with the number of documents.

    python -m bench.growth --sizes 50000,200000,800000 --store sqlite
    python -m bench.growth --sizes 50000,200000 --store postgres --origin web

For each size a folder of small documents (or, with ``--origin web``, a site that a process of this program serves) is
crawled into a new database with the commands that a user types: added, refreshed unchanged, refreshed after half of it
has changed, and rolled back. It is listed page by page to its end, shown as a web page, and searched; then it is
checked, backed up (PostgreSQL: by pg_dump), and collected. The table has the seconds of each step and the exponent
through all sizes: 1 is linear. Targets: at most 1.1; the p95 of searches grows at most threefold, peak memory by 1.3.
"""

import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from itertools import accumulate
from pathlib import Path
from urllib.parse import quote, urlsplit

import psycopg

from bench.crawl.measurement import measure
from bench.scaling import exponent
from bench.site import served
from tests.postgres import PostgresServer

QUERIES = 200
PAGE_VIEWS = 5
LIST_LIMIT = 100
COMMONNESS = list(accumulate(1 / rank for rank in range(1, 5001)))  # of each word, as in a language
Edit = Callable[[], None]


@dataclass
class Growth:
    """What was measured at one size."""

    documents: int
    seconds: dict[str, float] = field(default_factory=dict)
    memory: dict[str, int] = field(default_factory=dict)  # bytes
    stored: int = 0  # bytes, after the first crawl


def main() -> None:
    parser = argparse.ArgumentParser("bench.growth", description=__doc__)
    parser.add_argument("--sizes", default="50000,200000,800000")
    parser.add_argument("--store", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--origin", choices=["folder", "web"], default="folder")
    arguments = parser.parse_args()
    found: list[Growth] = []
    for size in sorted(int(size) for size in arguments.sizes.split(",")):
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench")))
            database = _Postgres(stack) if arguments.store == "postgres" else _Sqlite(folder)
            make = _make_folder if arguments.origin == "folder" else served
            root, edit = stack.enter_context(make(folder / "docs", size))
            found.append(_measure(size, database, folder, root, edit))
    _show(found)


def _measure(size: int, database: "_Sqlite | _Postgres", folder: Path, root: str, edit: Edit) -> Growth:
    growth = Growth(size)

    def kept(step: str, *arguments: str, counts: Mapping[str, int] | None = None) -> None:
        def check(printed: str) -> int:
            answer = json.loads(printed)
            if counts is not None:
                assert counts.items() <= answer["counts"].items(), f"{step}: {answer}"
            return size

        command = [sys.executable, "-m", "kept", "--database", database.url, *arguments, "--json"]
        done = measure(command, check)
        note(step, done.seconds, f", {done.cpu:.1f} s of CPU")
        growth.memory[step] = done.memory

    def note(step: str, seconds: float, more: str = "") -> None:
        growth.seconds[step] = seconds
        print(f"{size:9,} {step:20} {seconds:9.2f} s{more}", flush=True)

    limits = ["--max-pages", str(size + 1000)]
    kept("add", "add", root, "--name", "docs", *limits, counts={"new": size, "failed": 0})
    growth.stored = database.size()
    kept("unchanged refresh", "refresh", "docs", counts={"unchanged": size})
    edit()
    kept("half changed", "refresh", "docs", counts={"changed": size // 2, "unchanged": size - size // 2})
    kept("rollback", "rollback", "docs", "1")
    with _serving(database.url, folder) as server:
        note("pagination, old", _list_all(server, size, "&generation=2"))
        note("pagination", _list_all(server, size))
        note("source page", statistics.median(server.get("/sources/docs")[0] for _ in range(PAGE_VIEWS)))
        times = sorted(server.get(f"/api/v1/search?q={quote(query)}")[0] for query in _queries())
        note("search p50", times[len(times) // 2])
        note("search p95", times[len(times) * 95 // 100])
        growth.memory["server"] = server.peak_memory()
    kept("check", "check")
    began = time.monotonic()
    database.back_up(folder / "backup")
    note("backup", time.monotonic() - began)
    kept("gc", "gc", "--keep", "1", "--older-than", "0d")
    kept("check after gc", "check")
    return growth


def _show(found: Sequence[Growth]) -> None:
    first, last = found[0], found[-1]
    print(f"\n| step | {' | '.join(f'{one.documents:,}' for one in found)} | exponent |")
    print(f"| --- | {'---: | ' * len(found)}---: |")
    for step in last.seconds:
        points = [(one.documents, one.seconds[step]) for one in found]
        grown = f"{exponent(points):.2f}" if len(points) > 1 else ""
        if step.startswith("search"):
            grown = f"{last.seconds[step] / first.seconds[step]:.1f} ×"
        cells = [f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.1f} s" for _, seconds in points]
        print(f"| {step} | {' | '.join(cells)} | {grown} |")
    for step in last.memory:
        cells = [f"{one.memory[step] >> 20} MB" for one in found]
        print(f"| peak RSS: {step} | {' | '.join(cells)} | {last.memory[step] / first.memory[step]:.2f} × |")
    sizes = [f"{one.stored / one.documents / 1000:.1f} kB" for one in found]
    print(f"| stored for a page | {' | '.join(sizes)} | |")


# Documents ----------------------------------------------------------------------------------------------------------


@contextmanager
def _make_folder(folder: Path, size: int) -> Iterator[tuple[str, Edit]]:
    """Write a folder of small documents. Yields its path, and a function that changes half of them."""

    def write(number: int, edition: int) -> None:
        file = folder / f"part{number // 200:05}" / f"page{number:07}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(make_text(number, edition))
        os.utime(file, (1_600_000_000 + edition,) * 2)  # what was written just now is read twice

    def edit() -> None:
        for number in range(0, size // 2 * 2, 2):
            write(number, 2)

    for number in range(size):
        write(number, 1)
    yield str(folder), edit


def make_text(number: int, edition: int) -> str:
    """Return a document of some hundred words in three sections."""
    chance = random.Random(number * 10 + edition)
    words = [
        f"{'w' if rank % 2 else 'th'}o{rank:x}rd" for rank in chance.choices(range(5000), cum_weights=COMMONNESS, k=100)
    ]
    parts = [" ".join(words[start : start + 30]) for start in (0, 35, 70)]
    headings = [" ".join(words[start : start + 3]) for start in (30, 65)]
    sections = "".join(f"## {heading}\n\n{part}.\n\n" for heading, part in zip(headings, parts[1:], strict=True))
    return f"# Page {number}\n\n{parts[0]}, number{number}.\n\n{sections}"


def _queries() -> list[str]:
    chance = random.Random(1)
    return [
        " ".join(chance.sample(make_text(number, 1).split()[3:33], chance.randint(1, 3))) for number in range(QUERIES)
    ]


# The database and the server ----------------------------------------------------------------------------------------


class _Sqlite:
    def __init__(self, folder: Path) -> None:
        self.url = f"sqlite:///{folder}/kept.db"
        self._file = folder / "kept.db"

    def size(self) -> int:
        return self._file.stat().st_size

    def back_up(self, file: Path) -> None:
        subprocess.run(
            [sys.executable, "-m", "kept", "--database", self.url, "backup", str(file)], check=True, capture_output=True
        )


class _Postgres:
    def __init__(self, stack: ExitStack) -> None:
        self._server = PostgresServer()
        stack.callback(self._server.close)
        self._server.start()
        self.url = self._server.create_database()

    def size(self) -> int:
        with psycopg.connect(self.url) as session:
            row = session.execute("SELECT pg_database_size(current_database())").fetchone()
            assert row
            return int(row[0])

    def back_up(self, file: Path) -> None:
        self._server.dump(self.url, file)


@dataclass(frozen=True)
class _Server:
    connection: HTTPConnection
    pid: int

    def get(self, path: str) -> tuple[float, bytes]:
        """Return how long an answer takes, and its body."""
        began = time.perf_counter()
        self.connection.request("GET", path)
        answer = self.connection.getresponse()
        body = answer.read()
        assert answer.status == 200, f"{path}: {answer.status} {body[:300]!r}"
        return time.perf_counter() - began, body

    def peak_memory(self) -> int:
        status = Path(f"/proc/{self.pid}/status").read_text()
        return 1024 * int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))


def _list_all(server: _Server, size: int, more: str = "") -> float:
    began, listed, cursor = time.monotonic(), 0, ""
    while True:
        _, body = server.get(f"/api/v1/sources/docs/documents?limit={LIST_LIMIT}{cursor or more}")
        answer = json.loads(body)
        listed += len(answer["documents"])
        if not answer["next"]:
            break
        cursor = f"&cursor={quote(answer['next'])}"
    assert listed == size
    return time.monotonic() - began


@contextmanager
def _serving(database: str, folder: Path) -> Iterator[_Server]:
    log = folder / "server.log"
    command = [sys.executable, "-m", "kept", "--database", database, "serve", "--port", "0", "--workers", "0"]
    environment = os.environ | {"KEPT_SERVE__REQUESTS_PER_MINUTE": "0"}
    with log.open("wb") as stderr, subprocess.Popen(command, stderr=stderr, env=environment) as server:
        try:
            while not (found := re.search(r"serves at (http://\S+?)/ ", log.read_text())):
                assert server.poll() is None, log.read_text()
                time.sleep(0.05)
            connection = HTTPConnection(urlsplit(found[1]).netloc, timeout=600)
            yield _Server(connection, server.pid)
            connection.close()
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
