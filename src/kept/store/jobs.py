"""Crawl jobs and the workers' places in them: rows in, nouns out."""

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from kept.errors import LeaseLost
from kept.model.generation import Tally
from kept.model.job import CrawlJob, CrawlMode, JobStatus, JobSummary, Lease, Progress
from kept.store.database import Connection, Row, parse_optional_time, parse_time

_FIRST_ID, _LAST_ID = "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"


async def insert(
    db: Connection,
    *,
    id: str,
    source: str,
    mode: CrawlMode,
    priority: int = 0,
    payload: Mapping[str, Any] | None = None,
    owner: str | None = None,
) -> CrawlJob | None:
    """The new job; None if the source has a live one already."""
    row = await db.one(
        "insert_job", id=id, source=source, mode=mode, priority=priority, payload=json.dumps(payload or {}), user=owner
    )
    return _job(row)


async def get(db: Connection, id: str) -> CrawlJob | None:
    return _job(await db.one("job", id=id))


async def list_recent(
    db: Connection, *, status: JobStatus | None = None, limit: int = 50, before: str | None = None
) -> list[JobSummary]:
    """The latest first; from behind a job on, if it is named."""
    rows = await db.all("recent_jobs", before=before or _LAST_ID, status=status, limit=limit)
    return [read_summary(row) for row in rows]


async def find_by_id_prefix(db: Connection, prefix: str) -> list[JobSummary]:
    """The jobs whose id begins so; two at most."""
    return [read_summary(row) for row in await db.all("jobs_by_id_prefix", beginning=f"{prefix}%")]


async def last(db: Connection, source: str) -> CrawlJob | None:
    return _job(await db.one("last_job", source=source))


async def last_full_crawl(db: Connection, source: str) -> CrawlJob | None:
    """The last crawl that visited everything; its frontier is the ledger."""
    return _job(await db.one("last_full_crawl", source=source))


async def lock_live(db: Connection, source: str) -> CrawlJob | None:
    """The source's live job, locked until this transaction ends."""
    return _job(await db.one("lock_live_job", source=source))


async def lock(db: Connection, id: str) -> CrawlJob | None:
    return _job(await db.one("lock_job", id=id))


async def merge_into_pending(db: Connection, id: str, *, mode: CrawlMode, priority: int) -> CrawlJob | None:
    """The waiting job, widened; None if it is not waiting any more."""
    return _job(await db.one("merge_into_pending_job", id=id, mode=mode, priority=priority))


async def request_rerun(db: Connection, id: str, mode: CrawlMode) -> CrawlJob | None:
    """The running job, after which another follows; None if it is not running any more."""
    return _job(await db.one("request_rerun", id=id, mode=mode))


async def claim(db: Connection, *, worker: str, job: str | None = None) -> CrawlJob | None:
    """The first job that is due (or the one named), now processing; None if nothing is due."""
    return _job(await db.one("claim_job", worker=worker, job=job))


async def find_joinable(
    db: Connection, *, host: str, pid: int, entries_per_worker: int, excluded: list[str]
) -> str | None:
    """The first job that others walk, with open entries enough for another, in which this process has no place."""
    row = await db.one("joinable_job", host=host, pid=pid, enough=entries_per_worker, but=excluded)
    return row["id"] if row else None


async def acquire_lease(db: Connection, lease: Lease) -> None:
    await db.run(
        "acquire_lease",
        id=lease.id,
        job=lease.job_id,
        name=lease.worker_name,
        host=lease.host,
        pid=lease.pid,
        process_started=lease.process_started,
        attempt=lease.attempt,
    )


async def release_lease(db: Connection, lease_id: str) -> None:
    """The worker's leases lapse."""
    await db.run("release_lease", id=lease_id)


async def lock_lease(db: Connection, lease: Lease) -> None:
    """Locks this worker's place until the transaction ends. Raises LeaseLost for a worker that was replaced."""
    row = await db.one("lock_lease", worker=lease.id)
    if row is None or row["attempt"] != lease.attempt:
        raise LeaseLost(
            "This worker was taken for dead and replaced; what it was about to write is left to its successor."
        )


async def requeue_if_unleased(db: Connection, job: str) -> bool:
    """True if nobody walks the job any more, and it waits for the next worker."""
    return await db.run("requeue_if_unleased", job=job) > 0


async def leases_of_job(db: Connection, job: str) -> list[Lease]:
    return [_lease(row) for row in await db.all("leases_of_job", job=job)]


async def leases_on_host(db: Connection, host: str) -> list[Lease]:
    return [_lease(row) for row in await db.all("leases_on_host", host=host)]


async def list_leases(db: Connection, *, after: str | None, limit: int) -> list[Lease]:
    """A page of all places, after the one named."""
    return [_lease(row) for row in await db.all("leases", after=after or _FIRST_ID, limit=limit)]


async def list_stale_leases(db: Connection, stale_after: timedelta, *, after: str | None, limit: int) -> list[Lease]:
    """A page of the places that were silent for so long by the database's clock, after the one named."""
    seconds = stale_after.total_seconds()
    rows = await db.all("stale_leases", seconds=seconds, after=after or _FIRST_ID, limit=limit)
    return [_lease(row) for row in rows]


async def revoke_lease(db: Connection, lease: Lease) -> bool:
    """True if the place is gone; False if its worker was heard of since."""
    return await db.run("revoke_lease", id=lease.id, attempt=lease.attempt, beats=lease.heartbeat_count) > 0


async def list_stalled(db: Connection, limit: int) -> list[str]:
    """Jobs that say somebody walks them, and nobody does."""
    return [row["id"] for row in await db.all("stalled_jobs", limit=limit)]


async def status_if_leased(db: Connection, lease: Lease) -> JobStatus | None:
    """What the place's job has come to; None if the worker was replaced."""
    row = await db.one("status_if_leased", worker=lease.id, job=lease.job_id)
    return JobStatus(row["status"]) if row and row["attempt"] == lease.attempt else None


async def reap(db: Connection, job: str, error: str) -> CrawlJob | None:
    """The job, pending again or failed with this error; None while somebody walks it."""
    return _job(await db.one("reap_job", job=job, error=error))


async def heartbeat(db: Connection, lease: Lease) -> bool:
    """True while this worker has its place. Its own row first: locks are taken in one order everywhere."""
    here = await db.run("lease_heartbeat", worker=lease.id) > 0
    await db.run("job_heartbeat", job=lease.job_id)
    return here


async def set_generation(db: Connection, id: str, generation: int, *, discovered: int, mode: CrawlMode) -> None:
    await db.run("set_job_generation", id=id, generation=generation, discovered=discovered, mode=mode)


async def mark_listed(db: Connection, id: str, *, lists_everything: bool, unlisted: bool) -> bool:
    """True if nobody had listed it before."""
    return await db.run("mark_listed", id=id, lists_everything=lists_everything, unlisted=unlisted) > 0


async def advance_batch(
    db: Connection,
    id: str,
    *,
    discovered: int = 0,
    unchanged_without_entry: int = 0,
    bytes: int = 0,
    limited: bool = False,
) -> CrawlJob:
    """The job after one more batch; the counts are not. Raises LeaseLost if it was ended meanwhile."""
    row = await db.one(
        "advance_batch",
        job=id,
        discovered=discovered,
        without_entry=unchanged_without_entry,
        bytes=bytes,
        limited=limited,
    )
    if row is None:
        raise LeaseLost("The job was ended meanwhile.")
    return _read(row)


async def update_progress(db: Connection, id: str, *, min_interval: float = 0.0) -> CrawlJob | None:
    """The job, its progress up to date; None if there is nothing to count, or it was counted within so many seconds.

    It has to be locked.
    """
    return _job(await db.one("update_progress", job=id, seconds=min_interval))


async def count_new_since_progress(db: Connection, id: str) -> int:
    """New documents that the progress of a locked job does not have yet."""
    row = await db.one("count_new_since_progress", job=id)
    return int(row["entries"]) if row else 0


async def complete(db: Connection, id: str, *, held: bool, tally: Tally) -> bool:
    return await db.run("complete_job", id=id, held=held, **tally.as_json()) > 0


async def fail(db: Connection, id: str, error: str) -> bool:
    return await db.run("fail_job", id=id, error=error) > 0


async def cancel(db: Connection, id: str) -> bool:
    return await db.run("cancel_job", id=id) > 0


async def pause(db: Connection, id: str) -> bool:
    return await db.run("pause_job", id=id) > 0


async def resume(db: Connection, id: str) -> bool:
    return await db.run("resume_job", id=id) > 0


def _job(row: Row | None) -> CrawlJob | None:
    return None if row is None else _read(row)


def _read(row: Row) -> CrawlJob:
    tally = Tally(**{outcome: row[f"n_{outcome}"] for outcome in Tally.__dataclass_fields__})
    return CrawlJob(
        id=row["id"],
        source_id=row["source_id"],
        mode=CrawlMode(row["mode"]),
        status=JobStatus(row["status"]),
        priority=row["priority"],
        again=CrawlMode(row["again"]) if row["again"] else None,
        attempt=row["attempt"],
        retry_count=row["retry_count"],
        max_retries=row["max_retries"],
        generation=row["generation"],
        batch=row["batch"],
        listed=bool(row["listed"]),
        lists_everything=bool(row["lists_everything"]),
        limited=bool(row["limited"]),
        unlisted=bool(row["unlisted"]),
        held=bool(row["held"]),
        progress=Progress(
            discovered=row["discovered"], tally=tally, bytes=row["bytes"], current_depth=row["current_depth"]
        ),
        created_at=parse_time(row["created_at"]),
        started_at=parse_optional_time(row["started_at"]),
        completed_at=parse_optional_time(row["completed_at"]),
        last_heartbeat=parse_optional_time(row["last_heartbeat"]),
        error=row["error_message"],
        claimed_at=parse_optional_time(row["claimed_at"]),
        done_before=row["done_before"],
        owner=row["user_id"],
    )


def read_summary(row: Row) -> JobSummary:
    return JobSummary(
        job=_read(row), source_name=row["source_name"], source_version=row["source_version"], workers=row["workers"]
    )


def _lease(row: Row) -> Lease:
    return Lease(
        id=row["id"],
        job_id=row["job_id"],
        worker_name=row["name"],
        host=row["host"],
        pid=row["pid"],
        process_started=row["process_started"],
        attempt=row["attempt"],
        heartbeat_count=row["beats"],
    )
