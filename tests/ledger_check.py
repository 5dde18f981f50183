"""A check for every completed crawl: nothing is silent.

Every URL in scope that a kept page links to is a document or has a line in the ledger, with a reason if it was not
kept; and the counts of the summary are those of the ledger.

``tests/conftest.py`` applies it to every crawl of ``contract/`` (``watch_crawls``), and after the tests of modules that
use ``checked_databases`` to what other processes have written (``check_files``, ``check_database``).
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import apsw

from kept.crawl.activate import ActivationResult
from kept.crawl.engine import CrawlRun
from kept.errors import KeptError
from kept.model.frontier import Outcome
from kept.model.job import CrawlJob, JobStatus
from kept.model.source import SourceKind
from kept.origins.web.scope import WebScope
from kept.store import jobs, sources
from kept.store.compression import decompress_links
from kept.store.database import Connection, Database, open_database
from kept.store.sqlite import SqliteConnection

READ = {Outcome.NEW, Outcome.CHANGED, Outcome.UNCHANGED, Outcome.MOVED, Outcome.FAILED}
KEPT = READ - {Outcome.FAILED}


async def check_ledger(db: Database, job: CrawlJob, admits: Callable[[str], bool]) -> None:
    """Check the ledger of a crawl that visited everything and whose generation is active."""
    if job.status is not JobStatus.COMPLETED or job.held or not job.mode.is_exhaustive:
        return
    async with db.snapshot() as snapshot:
        rows = await _rows(snapshot, f"SELECT * FROM frontier WHERE job_id = '{job.id}'")
        entries = {row["url"]: row for row in rows}
        source = await sources.get(snapshot, job.source_id)
        if source is None or source.active_generation != job.generation or not entries:
            return  # another crawl has replaced it meanwhile
        number = source.active_generation
        versions = await _rows(
            snapshot,
            f"SELECT url, links FROM versions WHERE source_id = '{source.id}' AND born <= {number}"
            f" AND (died IS NULL OR died > {number})",
        )
    open_entries = [url for url, entry in entries.items() if not entry["outcome"]]
    assert not open_entries, f"still open: {open_entries[:5]}"
    unexplained = [
        url for url, entry in entries.items() if entry["outcome"] not in KEPT and not (entry["reason"] or "").strip()
    ]
    assert not unexplained, f"not kept, without a reason: {unexplained[:5]}"
    if not job.lists_everything:
        silent = [
            (version["url"], link)
            for version in versions
            if (entry := entries.get(version["url"])) and entry["reached"] and entry["outcome"] in READ
            for link in decompress_links(version["links"])
            if link not in entries and admits(link)
        ]
        assert not silent, f"{len(silent)} links of kept pages have no line in the ledger: {silent[:5]}"
    _check_counts(job, list(entries.values()))


def _check_counts(job: CrawlJob, entries: list[Any]) -> None:
    counted = Counter(Outcome(entry["outcome"]).tally_field for entry in entries)
    moved = [entry for entry in entries if entry["outcome"] == Outcome.MOVED]
    counted["moved"] = len({entry["document_id"] for entry in moved})  # a move has a line at both of its ends
    summary = Counter(job.progress.tally.as_json())
    if job.lists_everything:  # unchanged pages that need no visit have no line
        assert counted["unchanged"] <= summary["unchanged"]
        counted["unchanged"] = summary["unchanged"]
    assert +counted == +summary, "the summary counts something else than the ledger"


def watch_crawls() -> list[AssertionError]:
    """Check every crawl of this process when its generation is activated. Returns the list that gets the faults."""
    faults: list[AssertionError] = []
    activate = CrawlRun._activate

    async def activate_and_check(run: CrawlRun) -> ActivationResult | None:
        result, context = await activate(run), run._context
        async with context.db.snapshot() as snapshot:
            job = await jobs.get(snapshot, context.job.id)
        try:
            if job:
                await check_ledger(context.db, job, context.origin.admits)
        except AssertionError as fault:  # raised here, it would only fail the job
            faults.append(fault)
        return result

    CrawlRun._activate = activate_and_check  # type: ignore[method-assign]
    return faults


async def check_sources(db: Database) -> None:
    """Check the last full crawl of every source in a database."""
    async with db.snapshot() as snapshot:
        found = [(source, await jobs.last_full_crawl(snapshot, source.id)) for source in await sources.all(snapshot)]
    for source, job in found:
        if job:
            is_web = source.kind is SourceKind.WEB
            scope = WebScope(source.root, source.settings.scope, source.settings.limits) if is_web else None
            await check_ledger(db, job, scope.admits if scope else lambda url: False)


def check_database(url: str) -> None:
    """Check the last full crawl of every source in a database."""

    async def run() -> None:
        db = await open_database(url)
        try:
            await check_sources(db)
        finally:
            await db.close()

    asyncio.run(run())


def check_files(folder: Path) -> None:
    """Check every SQLite database in a folder that can be read: some tests damage theirs."""
    for file in [*folder.glob("*.db"), *folder.glob("*/*.db")]:
        with suppress(apsw.Error, KeptError):
            with closing(apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)) as database:
                ended = list(database.execute("SELECT 1 FROM crawl_jobs WHERE status = 'completed' LIMIT 1"))
            if ended:
                check_database(f"sqlite:///{file}")


async def _rows(connection: Connection, sql: str) -> list[Any]:
    if isinstance(connection, SqliteConnection):

        def run(sqlite: Any) -> list[dict[str, Any]]:
            cursor, rows = sqlite.cursor(), []
            for row in cursor.execute(sql):
                rows.append(dict(zip((name for name, *_ in cursor.description), row, strict=True)))
            return rows

        return await connection.thread.run(run)
    cursor = await connection._connection.execute(sql)  # type: ignore[attr-defined]
    return list(await cursor.fetchall())
