"""Watched folders: a change leads to a refresh when the files have settled."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

from kept.crawl.rollback import roll_back
from kept.maintenance.watcher import watch_sources
from kept.model.source import SourceKind, SourceSettings
from kept.model.url import file_url
from kept.store import jobs
from kept.store.database import Database
from tests.contract.databases import async_test
from tests.crash.file_operations import crawl_folder
from tests.factories import database_at, make_source, shown


async def queued(db: Database, source: str) -> None:
    """Wait until a crawl of the source is queued."""
    while True:
        async with db.snapshot() as snapshot:
            if await jobs.lock_live(snapshot, source):
                return
        await asyncio.sleep(0.02)


@async_test
async def test_a_folder_that_asks_for_it_is_refreshed_when_its_files_change(tmp_path: Path) -> None:
    root, other = tmp_path / "docs", tmp_path / "other"
    for folder in (root, other):
        folder.mkdir()
        (folder / "one.md").write_text("one " * 30)
    async with database_at(f"sqlite:///{tmp_path}/kept.db") as db, asyncio.timeout(30):
        wants = SourceSettings(watch=True)
        source = await make_source(db, root=file_url(str(root)), kind=SourceKind.FOLDER, settings=wants)
        calm = await make_source(db, "calm", root=file_url(str(other)), kind=SourceKind.FOLDER)
        stop = asyncio.Event()
        watching = asyncio.create_task(watch_sources(db, stop, settle_seconds=0.1, poll_seconds=0.2))
        await queued(db, source.id)  # what happened before is found at once
        await crawl_folder(db, source, root)
        assert len(await shown(db, source)) == 1
        for number in range(20):
            (root / f"more{number}.md").write_text(f"more {number} " * 30)
            (other / f"more{number}.md").write_text(f"more {number} " * 30)
        await queued(db, source.id)
        await crawl_folder(db, source, root)
        stop.set()
        await watching
        async with db.snapshot() as snapshot:
            assert await jobs.last(snapshot, calm.id) is None
        assert len(await shown(db, source)) == 21


@async_test
async def test_what_was_rolled_back_stays_so_whatever_happens_to_its_files(tmp_path: Path) -> None:
    roots = [tmp_path / "back", tmp_path / "other"]
    async with database_at(f"sqlite:///{tmp_path}/kept.db") as db, asyncio.timeout(30):
        kept = []
        for root in roots:
            root.mkdir()
            wants, url = SourceSettings(watch=True), file_url(str(root))
            kept.append(await make_source(db, root.name, root=url, kind=SourceKind.FOLDER, settings=wants))
            for word in ("one ", "two "):
                (root / "page.md").write_text(word * 30)
                await crawl_folder(db, kept[-1], root)
        back, other = kept
        await roll_back(db, back.id, 1)
        stop = asyncio.Event()
        watching = asyncio.create_task(watch_sources(db, stop, settle_seconds=0.1, poll_seconds=0.2))
        for _ in range(2):
            await queued(db, other.id)
            await crawl_folder(db, other, roots[1])
            for root in roots:
                (root / "page.md").write_text("three " * 30)
        stop.set()
        await watching
        async with db.snapshot() as snapshot:
            assert await jobs.lock_live(snapshot, back.id) is None


def until(lines: IO[str], expected: str) -> None:
    output = [lines.readline()]
    while expected not in output[-1]:
        assert output[-1], "".join(output)
        output.append(lines.readline())


def test_the_command_stays_and_keeps_the_folder_live_until_it_is_interrupted(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "one.md").write_text("# One\n\nA page.\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "kept", "--database", f"sqlite:///{tmp_path}/kept.db", "add", "docs", "--watch"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "HOME": str(tmp_path)},
    )
    assert process.stderr is not None
    try:
        until(process.stderr, "watching")
        until(process.stderr, "generation 2 is active: 1 unchanged")  # from here on, events come
        (tmp_path / "docs" / "two.md").write_text("# Two\n\nAnother page.\n")
        until(process.stderr, "generation 3 is active: 1 new")
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()
