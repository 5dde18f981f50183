"""Run garbage collection beside readers, crawls and activations, and kill it at random.

Every retained generation stays as it was at its activation; after two passes no garbage is left.
``python -m tests.crash.killed_gc --seconds 60`` runs longer, on both databases.
"""

import argparse
import asyncio
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from kept.extract.sections import compute_content_hash
from kept.maintenance.check import check_integrity
from kept.maintenance.gc import Retention, collect, find_garbage
from kept.model.ids import new_id
from kept.model.source import Source
from kept.service import sources
from kept.store import documents, export, generations
from kept.store.database import Database
from tests.contract.databases import run_sql
from tests.factories import ROOT, Page, Site, crawl, database_at, make_source, shown
from tests.postgres import PostgresServer

RETENTION = Retention(generations=3, younger_than=timedelta(0))
PAGES = 40
READS_A_SECOND = 50  # of all readers: they share an event loop with the crawl, which would not get its turn

Shown = Mapping[str, tuple[str, str]]


@dataclass
class Race:
    """The counts and records of a run."""

    crawls: int = 0
    reads: int = 0
    kills: int = 0
    is_over: bool = False
    records: dict[int, Shown] = field(default_factory=dict)  # the documents of each generation at its activation


async def race(url: str, seconds: float, chance: random.Random, *, readers: int = 20) -> Race:
    """Run everything at once for ``seconds``, then check the end state."""
    happened, until = Race(), time.monotonic() + seconds
    async with database_at(url) as db, database_at(url) as other:
        source, removed = await make_source(db), await make_source(db, "removed", root="https://removed.test/")
        await crawl(db, removed, Site({removed.root: Page("what was here")}, root=removed.root))
        killer = asyncio.create_task(asyncio.to_thread(kill_collectors, url, until, chance.random(), happened))
        pause = readers / READS_A_SECOND
        reading = [asyncio.create_task(read_on(other, source, chance, happened, pause)) for _ in range(readers)]
        try:
            while time.monotonic() < until or happened.crawls < 5:
                pages = some_pages(chance)
                await crawl(db, source, Site(pages, lists_everything=chance.random() < 0.5))
                active = (await sources.show_source(db, source.label)).source.active_generation
                if active:
                    happened.records[active] = await shown(db, source, active)
                happened.crawls += 1
                if happened.crawls == 3:
                    await sources.remove_source(db, "removed")
        finally:
            happened.is_over = True
            ended = await asyncio.gather(*reading, return_exceptions=True)
            await killer
        problems = [one for one in ended if isinstance(one, Exception)]
        assert problems == [], problems
        await check_end_state(db, source, happened)
    return happened


def some_pages(chance: random.Random) -> dict[str, Page]:
    """Return a site whose pages have one of a few texts, so that contents go out of use and come back."""
    urls = [f"{ROOT}{number}" for number in range(PAGES)]
    says = {url: Page(f"{url if chance.random() < 0.7 else ''} says {chance.randrange(4)} " * 8) for url in urls}
    for url in chance.sample(urls, 3):
        says[url] = Page(gone=True) if chance.random() < 0.5 else Page(error="for a while")
    return {ROOT: Page(f"root {chance.randrange(3)}", links=tuple(urls)), **says}


async def read_on(db: Database, source: Source, chance: random.Random, happened: Race, pause: float) -> None:
    """Read generations while they exist: the list of one, and one of its documents."""
    while not happened.is_over:
        await asyncio.sleep(pause)
        if not happened.records:
            continue
        number, record = chance.choice(list(happened.records.items()))  # chosen before it may be gone
        async with db.snapshot() as snapshot:
            if await generations.get(snapshot, source.id, number) is None:
                happened.records.pop(number, None)
                continue
            rows = await documents.of_generation(snapshot, source.id, number)
            assert {one.url: (one.id, one.content_hash) for one in rows} == record
            version = await documents.version_in_generation(snapshot, chance.choice(rows).id, number)
            assert version is not None
            content = await export.load_content(snapshot, version.content_id)
            assert compute_content_hash(content) == version.content_hash
        happened.reads += 1


def kill_collectors(url: str, until: float, seed: float, happened: Race) -> None:
    """Run and kill collectors, one after the other. One process forks them all, because imports take long."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.crash.killed_gc", "--collect", url, "--seed", str(seed)],
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stdout is not None
    assert process.stdin is not None
    while time.monotonic() < until or happened.kills < 3:
        process.stdin.write(b"another\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"killed\n"
        happened.kills += 1
    process.stdin.close()
    assert process.wait() == 0


def make_collectors(url: str, chance: random.Random) -> None:
    for _ in sys.stdin:
        if (child := os.fork()) == 0:
            asyncio.run(collect_for_ever(url))
        time.sleep(chance.uniform(0.02, 0.4))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        print("killed", flush=True)


async def collect_for_ever(url: str) -> None:
    async with database_at(url) as db:
        while True:
            await collect(db, RETENTION)
            await asyncio.sleep(0.02)


async def check_end_state(db: Database, source: Source, happened: Race) -> None:
    """Check that after two passes no garbage is left and nothing is missing."""
    for _ in range(2):
        await collect(db, RETENTION)
    left, unsound = await find_garbage(db, RETENTION), await check_integrity(db, compute_content_hash)
    assert left == [], left
    assert unsound == [], unsound
    async with db.snapshot() as snapshot:
        kept = [one for one in await generations.all(snapshot, source.id) if one.state in ("active", "retired")]
        count = dict[str, int]()
        for what, sql in LEFT.items():
            ((count[what],),) = await run_sql(snapshot, sql)
        lives = await run_sql(
            snapshot,
            "SELECT v.born, v.died, d.lifecycle, (SELECT max(born) FROM versions w WHERE w.document_id = d.id)"
            " FROM versions v JOIN documents d ON d.id = v.document_id",
        )
    assert not any(count.values()), count
    numbers = [one.number for one in kept]
    for born, died, lifecycle, newest in lives:
        is_shown = any(born <= number and (died is None or number < died) for number in numbers)
        assert is_shown or (lifecycle == "missing" and born == newest)
    for number in set(numbers) & happened.records.keys():
        assert await shown(db, source, number) == happened.records[number]
    assert len([one for one in kept if one.number >= (numbers[-1] if numbers else 0)]) == 1


LEFT = {
    "contents": "SELECT count(*) FROM contents WHERE id NOT IN (SELECT content_id FROM versions)",
    "sections": "SELECT count(*) FROM sections WHERE content_id NOT IN (SELECT id FROM contents)",
    "documents": "SELECT count(*) FROM documents WHERE id NOT IN (SELECT document_id FROM versions)",
    "sources": "SELECT count(*) FROM sources WHERE removed_at IS NOT NULL",
    "jobs": "SELECT count(*) FROM crawl_jobs WHERE source_id NOT IN (SELECT id FROM sources)",
    "frontiers but one": "SELECT count(DISTINCT job_id) - 1 FROM frontier",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", default=new_id())
    parser.add_argument("--collect", metavar="URL", help="only collect, until it is killed")
    arguments = parser.parse_args()
    if arguments.collect:
        return make_collectors(arguments.collect, random.Random(arguments.seed))
    print(f"seed {arguments.seed}")
    server = PostgresServer(os.environ.get("KEPT_TEST_POSTGRES"))
    try:
        if not os.environ.get("KEPT_TEST_POSTGRES"):
            server.start()
        with tempfile.TemporaryDirectory() as folder:
            for url in (f"sqlite:///{Path(folder, 'kept.db')}", server.create_database()):
                happened = asyncio.run(race(url, arguments.seconds / 2, random.Random(arguments.seed)))
                store = url.partition(":")[0]
                print(f"{store}: {happened.crawls} crawls, {happened.reads} reads, {happened.kills} kills: all sound")
    finally:
        server.close()


if __name__ == "__main__":
    main()
