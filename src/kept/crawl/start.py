"""The start of a crawl: its generation, its mode, and the entries that its frontier begins with."""

from dataclasses import replace
from datetime import datetime

from kept.crawl.abandon import abandon_generation, clear_abandoned
from kept.crawl.activate import complete_without_generation
from kept.crawl.change_rate import is_due
from kept.crawl.locks import lock_leased_job
from kept.model.frontier import LIMIT_REASON
from kept.model.job import CrawlJob, CrawlMode, JobStatus, Lease
from kept.model.source import Source
from kept.store import frontier, generations, jobs, sources
from kept.store.database import Connection, Database, current_time


async def start_generation(
    db: Database, lease: Lease, *, lists_everything: bool, now: datetime | None = None
) -> CrawlJob:
    """Return the job with a generation to fill: a new one, or the one that was started before.

    A new one abandons the generation that is held or was left unfinished by another job, or by this one if its
    frontier was lost since: what is left of it does not show which pages are missing.
    A repair that finds nothing to repair is completed here, without a generation.
    """
    async with db.transaction() as tx:
        source, job = await lock_leased_job(tx, lease)
        if job.generation is not None and await _is_frontier_lost(tx, job):
            await jobs.restart(tx, lease)
            source, job = await lock_leased_job(tx, lease)
        if (
            job.generation is None
            and job.status is JobStatus.PROCESSING
            and await _has_nothing_to_repair(tx, job, source)
        ):
            return await complete_without_generation(tx, job)
        if job.generation is None:
            await abandon_generation(tx, source, "a newer crawl was begun")
            number = await sources.allocate_generation_number(tx, source.id)
            mode = effective_mode(job, source, lists_everything)
            await generations.insert(tx, source.id, number, job=job.id, mode=mode)
            seeded = await seed_frontier(
                tx, replace(job, mode=mode), source, lists_everything, now or await current_time(tx)
            )
            await jobs.set_generation(tx, job.id, number, discovered=seeded, mode=mode)
            if mode.is_exhaustive and not lists_everything:
                await _skip_over_limit(tx, job, source, seeded)
            source, job = await lock_leased_job(tx, lease)
    await clear_abandoned(db, job.source_id)
    return job


def effective_mode(job: CrawlJob, source: Source, lists_everything: bool) -> CrawlMode:
    """Return the mode to crawl in: REFRESH for a first crawl, and not QUICK where the origin lists everything."""
    is_first = source.active_generation is None
    is_widened = (job.mode is CrawlMode.QUICK and lists_everything) or (is_first and not job.mode.is_exhaustive)
    return CrawlMode.REFRESH if is_widened else job.mode


async def seed_frontier(tx: Connection, job: CrawlJob, source: Source, lists_everything: bool, now: datetime) -> int:
    """Insert the entries that are known before anything is listed or visited. Returns how many."""
    if source.active_generation is None:
        return 0
    if not job.mode.is_exhaustive:
        ledger = await jobs.last_full_crawl(tx, source.id)
        seeded = await frontier.seed_failed_entries(tx, job.id, source=source.id, ledger_job=ledger.id) if ledger else 0
        return seeded + (await _seed_due(tx, job, source, now) if job.mode is CrawlMode.QUICK else 0)
    if lists_everything:
        return 0  # the list is compared with the base instead
    return await frontier.seed_known(tx, job.id, source=source.id, base=source.active_generation)


async def _has_nothing_to_repair(tx: Connection, job: CrawlJob, source: Source) -> bool:
    if job.mode is not CrawlMode.FAILED or source.active_generation is None:
        return False
    ledger = await jobs.last_full_crawl(tx, source.id)
    return ledger is None or not await frontier.has_unrepaired(tx, source=source.id, ledger_job=ledger.id)


async def _is_frontier_lost(tx: Connection, job: CrawlJob) -> bool:
    """Return whether the frontier of a started job has fewer entries than it was given."""
    without_entry = job.progress.tally.unchanged if job.lists_everything else 0  # these are counted without one
    return await frontier.count_entries(tx, job.id) + without_entry < job.progress.discovered


async def _skip_over_limit(tx: Connection, job: CrawlJob, source: Source, document_count: int) -> None:
    """Skip the known documents beyond a limit that was lowered."""
    max_pages = source.settings.limits.max_pages
    if max_pages is None or document_count <= max_pages:
        return
    await frontier.skip_known_over_limit(
        tx, job.id, root=source.root, max_pages=max_pages, reason=LIMIT_REASON, batch=job.batch + 1
    )
    await jobs.advance_batch(tx, job.id, limited=True)


async def _seed_due(tx: Connection, job: CrawlJob, source: Source, now: datetime) -> int:
    """Insert documents in error, and pages that have probably changed since their last visit."""
    seeded = await frontier.seed_error_documents(tx, job.id, source=source.id)
    verified_at = await generations.last_verified(tx, source.id)
    due = []
    for page in await frontier.list_changed_pages(tx, source.id):
        visited_at = max(page.fetched_at, verified_at or page.fetched_at)
        if is_due(changes=page.changes, known_since=page.known_since, visited_at=visited_at, now=now):
            due.append(page.entry)
    return seeded + await frontier.insert_listed(tx, job.id, due, batch=0)
