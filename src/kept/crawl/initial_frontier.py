"""What a crawl begins with: its mode, and the entries of its frontier before anything is visited."""

from datetime import datetime

from kept.crawl.change_rate import is_due
from kept.model.job import CrawlJob, CrawlMode
from kept.model.source import Source
from kept.store import frontier, generations, jobs
from kept.store.database import Connection, parse_time


def effective_mode(job: CrawlJob, source: Source, lists_everything: bool) -> CrawlMode:
    """Where nothing is kept yet there is nothing to repair; and what lists everything is quick already."""
    first = source.active_generation is None
    narrow = (job.mode is CrawlMode.QUICK and lists_everything) or (first and not job.mode.is_exhaustive)
    return CrawlMode.REFRESH if narrow else job.mode


async def seed_frontier(tx: Connection, job: CrawlJob, source: Source, lists_everything: bool, now: datetime) -> int:
    """How many entries the frontier starts with."""
    if source.active_generation is None:
        return 0
    if not job.mode.is_exhaustive:
        ledger = await jobs.last_full_crawl(tx, source.id)
        seeded = await frontier.seed_failed_entries(tx, job.id, source=source.id, ledger_job=ledger.id) if ledger else 0
        return seeded + (await _seed_due(tx, job, source, now) if job.mode is CrawlMode.QUICK else 0)
    if lists_everything:
        return 0  # what is known and not listed is found by comparing
    return await frontier.seed_known(tx, job.id, source=source.id, base=source.active_generation)


async def _seed_due(tx: Connection, job: CrawlJob, source: Source, now: datetime) -> int:
    """What could not be read, and what has probably changed since it was last visited."""
    seeded = await frontier.seed_error_documents(tx, job.id, source=source.id)
    last = await generations.last_verified(tx, source.id)
    due = []
    for entry, row in await frontier.list_change_counts(tx, source.id):
        visited = max(parse_time(row["fetched_at"]), last or parse_time(row["fetched_at"]))
        if is_due(changes=row["changes"], known_since=parse_time(row["known_since"]), visited_at=visited, now=now):
            due.append(entry)
    return seeded + await frontier.insert_listed(tx, job.id, due, batch=0)
