"""Compare Kept with other crawlers on the same manual, in one run.

    python -m bench.crawl [--manual postgres|javadoc|FOLDER] [--rounds 3] [--only NAME]… [--draw]

The manual is served by nginx on loopback. Every program is run with its own command and measured from start to end:
pages per second, CPU seconds per 1,000 pages, and the peak memory of all its processes together. Each round runs all
programs, so that noise of the machine affects them alike; the best round of each counts.

    kept                 complete: sections, full text, durable frontier, SQLite; defaults (8 concurrent requests)
    kept 64              the same with the peers' concurrency
    kept plain           the same as "kept", from the checkout, not compiled
    kept PostgreSQL      the same as "kept", on PostgreSQL
    crawlee              links only, nothing stored
    scrapy               links only, nothing stored
    scrapy markdown      every page to Markdown (markdownify) and into SQLite

The peers are installed into .kept/bench, from requirements/bench.txt; Kept is installed from its wheel (`make wheel`).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.crawl.chart import draw
from bench.crawl.measurement import Measured, measure
from bench.crawl.nginx import MANUALS, served
from bench.wheel import install_wheel

HERE = Path(__file__).parent
PROJECT = HERE.parent.parent
PEERS = PROJECT / ".kept" / "bench"
SCRAPY, SCRAPY_MARKDOWN = "scrapy", "scrapy markdown"


@dataclass(frozen=True)
class Contender:
    name: str
    command: Callable[[str, Path], list[str]]  # the root's URL and an empty folder of its own
    pages: Callable[[str], int]  # what it printed -> how many pages it has seen


def main() -> None:
    arguments = _arguments()
    folder = MANUALS.get(arguments.manual, Path(arguments.manual))
    if not folder.is_dir():
        sys.exit(f"There is no folder {folder}. Debian has it in a package: see bench/crawl/served.py.")
    peers = _peers_python()
    with _postgres() as postgres, served(folder) as root:
        contenders = [one for one in _contenders(peers, postgres) if not arguments.only or one.name in arguments.only]
        best: dict[str, Measured] = {}
        for number in range(1, arguments.rounds + 1):
            for contender in contenders:
                found = _run(contender, root)
                print(f"round {number}: {contender.name:16} {found.pages:6,} pages {found.seconds:7.1f} s", flush=True)
                if contender.name not in best or found.seconds < best[contender.name].seconds:
                    best[contender.name] = found
    print(_table(best))
    if arguments.draw:
        draw(PROJECT / "docs" / f"crawl-{arguments.manual}.svg", arguments.manual, best)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("bench.crawl", description="Compare Kept with other crawlers.")
    parser.add_argument("--manual", default="postgres", metavar="NAME|FOLDER", help=", ".join(MANUALS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append", metavar="NAME", help="one of the contenders; may be repeated")
    parser.add_argument("--draw", action="store_true", help="draw the result into docs/")
    return parser.parse_args()


def _contenders(peers: Path, postgres: Callable[[], str]) -> Iterator[Contender]:
    def kept(
        *more: str, database: Callable[[], str] | None = None, place: Path | None = None
    ) -> Callable[[str, Path], list[str]]:
        def command(root: str, folder: Path) -> list[str]:
            url = database() if database else f"sqlite:///{folder}/kept.db"
            python = ["env", f"PYTHONPATH={place or install_wheel()}", sys.executable]
            return [*python, "-m", "kept", "--database", url, "add", root, "--json", *more]

        return command

    def peer(program: str) -> Callable[[str, Path], list[str]]:
        return lambda root, folder: [str(peers), str(HERE / "peers" / program), root, str(folder)]

    yield Contender("kept", kept(), _kept_pages)
    yield Contender("kept 64", kept("--concurrency", "64"), _kept_pages)
    yield Contender("kept plain", kept(place=PROJECT / "src"), _kept_pages)
    yield Contender("kept PostgreSQL", kept(database=postgres), _kept_pages)
    yield Contender("crawlee", peer("crawlee_links.py"), int)
    yield Contender(SCRAPY, peer("scrapy_links.py"), int)
    yield Contender(SCRAPY_MARKDOWN, peer("scrapy_markdown.py"), int)


def _kept_pages(printed: str) -> int:
    counts = json.loads(printed)["counts"]
    return int(counts["new"])


def _run(contender: Contender, root: str) -> Measured:
    with tempfile.TemporaryDirectory(prefix="bench") as folder:
        return measure(contender.command(root, Path(folder)), contender.pages)


def _table(best: dict[str, Measured]) -> str:
    lines = [
        "",
        "| | pages/s | CPU s per 1,000 pages | peak RSS | × scrapy | × scrapy markdown |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, one in best.items():
        ratios = [f"{one.rate / best[peer].rate:.1f}" if peer in best else "" for peer in (SCRAPY, SCRAPY_MARKDOWN)]
        lines.append(
            f"| {name} | {one.rate:,.0f} | {one.cpu * 1000 / max(1, one.pages):.2f} | {one.memory >> 20} MB "
            f"| {ratios[0]} | {ratios[1]} |"
        )
    return "\n".join(lines)


def _peers_python() -> Path:
    """Return the Python of the environment of the peers, which is created if necessary."""
    pins, mark, python = PROJECT / "requirements" / "bench.txt", PEERS / "installed.txt", PEERS / "bin" / "python"
    if not mark.exists() or mark.read_bytes() != pins.read_bytes():
        print("Installing the peers.", flush=True)
        venv.create(PEERS, clear=True, with_pip=True)
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes"]
        subprocess.run([*install, "-r", pins], check=True)
        mark.write_bytes(pins.read_bytes())
    return python


@contextmanager
def _postgres() -> Iterator[Callable[[], str]]:
    """Start a server. Each call of the result creates an empty database in it."""
    from tests.postgres import PostgresServer

    server = PostgresServer(os.environ.get("KEPT_TEST_POSTGRES"))
    try:
        if not os.environ.get("KEPT_TEST_POSTGRES"):
            server.start()
        yield server.create_database
    finally:
        server.close()


if __name__ == "__main__":
    main()
