"""Crawl jobs, the workers' leases of them, and the shares that leases have of a host."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from kept.errors import LeaseLost
from kept.model.generation import Tally
from kept.model.job import CrawlJob, CrawlMode, HostShare, JobStatus, JobSummary, Lease, Progress
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
    """Insert a job. Returns None if the source has a live one already."""
    row = await db.one(
        "insert_job", id=id, source=source, mode=mode, priority=priority, payload=json.dumps(payload or {}), user=owner
    )
    return _job(row)


async def get(db: Connection, id: str) -> CrawlJob | None:
    return _job(await db.one("job", id=id))


async def list_recent(
    db: Connection, *, status: JobStatus | None = None, limit: int = 50, before: str | None = None
) -> list[JobSummary]:
    """Return a page of jobs, the latest first, after the job ``before``."""
    rows = await db.all("recent_jobs", before=before or _LAST_ID, status=status, limit=limit)
    return [read_summary(row) for row in rows]


async def find_by_part_of_id(db: Connection, part: str) -> list[JobSummary]:
    """Return the jobs whose id begins or ends so; two at most."""
    return [read_summary(row) for row in await db.all("jobs_by_part_of_id", beginning=f"{part}%", ending=f"%{part}")]


async def last(db: Connection, source: str) -> CrawlJob | None:
    return _job(await db.one("last_job", source=source))


async def last_full_crawl(db: Connection, source: str) -> CrawlJob | None:
    """Return the last crawl that visited everything; its frontier is the ledger."""
    return _job(await db.one("last_full_crawl", source=source))


async def lock_live(db: Connection, source: str) -> CrawlJob | None:
    """Lock the live job of a source until this transaction ends."""
    return _job(await db.one("lock_live_job", source=source))


async def lock(db: Connection, id: str) -> CrawlJob | None:
    return _job(await db.one("lock_job", id=id))


async def merge_into_pending(db: Connection, id: str, *, mode: CrawlMode, priority: int) -> CrawlJob | None:
    """Widen a pending job. Returns None if it is no longer pending."""
    return _job(await db.one("merge_into_pending_job", id=id, mode=mode, priority=priority))


async def request_rerun(
    db: Connection, id: str, mode: CrawlMode, *, priority: int = 0, owner: str | None = None
) -> CrawlJob | None:
    """Let another crawl follow a running job, for the first who asks. Returns None if it is no longer running."""
    return _job(await db.one("request_rerun", id=id, mode=mode, priority=priority, user=owner))


async def insert_follow_up(db: Connection, *, id: str, job: str) -> None:
    """Insert the job that was requested while another ran, if one was."""
    await db.run("insert_follow_up", id=id, job=job)


async def list_collectable(
    db: Connection, source: str, *, keep: int, limit: int, superseded: Sequence[str] = ()
) -> list[str]:
    """Return ended jobs of a source beyond the last ``keep``: not its ledger, and none that has a frontier.

    A frontier that is ``superseded`` does not count.
    """
    values = {"keep": keep, "limit": limit, "superseded": list(superseded)}
    return [row["id"] for row in await db.all("collectable_jobs", source=source, **values)]


async def delete(db: Connection, ids: Sequence[str]) -> int:
    """Delete ended jobs. Returns how many."""
    return await db.run("delete_jobs", ids=list(ids))


async def claim(db: Connection, *, worker: str, job: str | None = None) -> CrawlJob | None:
    """Claim the first pending job, or the one named. Returns None if none is pending."""
    return _job(await db.one("claim_job", worker=worker, job=job))


async def find_joinable(
    db: Connection, *, host: str, pid: int, entries_per_worker: int, excluded: list[str]
) -> str | None:
    """Return the first running job with enough open entries for this process to join it, unless it has already."""
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
    """Delete a lease; the entries that it holds are open again."""
    await db.run("release_lease", id=lease_id)


async def lock_lease(db: Connection, lease: Lease) -> None:
    """Lock a lease until the transaction ends. Raises LeaseLost if its worker was replaced."""
    row = await db.one("lock_lease", worker=lease.id)
    if row is None or row["attempt"] != lease.attempt:
        raise LeaseLost(
            "This worker was replaced, because its heartbeats stopped. Nothing was written; its successor does it."
        )


async def requeue_if_unleased(db: Connection, job: str) -> bool:
    """Make a job without workers pending again. Returns False if it has workers or is not running."""
    return await db.run("requeue_if_unleased", job=job) > 0


async def leases_of_job(db: Connection, job: str) -> list[Lease]:
    return [_lease(row) for row in await db.all("leases_of_job", job=job)]


async def leases_on_host(db: Connection, host: str) -> list[Lease]:
    return [_lease(row) for row in await db.all("leases_on_host", host=host)]


async def list_leases(db: Connection, *, after: str | None, limit: int) -> list[Lease]:
    """Return a page of all leases, after the one named."""
    return [_lease(row) for row in await db.all("leases", after=after or _FIRST_ID, limit=limit)]


async def list_stale_leases(db: Connection, stale_after: timedelta, *, after: str | None, limit: int) -> list[Lease]:
    """Return a page of the leases without a heartbeat for so long by the database's clock, after the one named."""
    seconds = stale_after.total_seconds()
    rows = await db.all("stale_leases", seconds=seconds, after=after or _FIRST_ID, limit=limit)
    return [_lease(row) for row in rows]


async def revoke_lease(db: Connection, lease: Lease) -> bool:
    """Delete a stale lease. Returns False if its worker had a heartbeat meanwhile."""
    return await db.run("revoke_lease", id=lease.id, attempt=lease.attempt, beats=lease.heartbeat_count) > 0


async def list_stalled(db: Connection, limit: int) -> list[str]:
    """Return jobs in processing whose workers are all gone."""
    return [row["id"] for row in await db.all("stalled_jobs", limit=limit)]


async def status_if_leased(db: Connection, lease: Lease) -> JobStatus | None:
    """Return the status of the leased job; None if the lease is lost."""
    row = await db.one("status_if_leased", worker=lease.id, job=lease.job_id)
    return JobStatus(row["status"]) if row and row["attempt"] == lease.attempt else None


async def reap(db: Connection, job: str, error: str, *, delay_seconds: float = 0.0) -> CrawlJob | None:
    """Make a job without workers pending again, or failed when its retries are spent; None while it has workers.

    For ``delay_seconds`` no worker claims it, unless it is named.
    """
    return _job(await db.one("reap_job", job=job, error=error, delay=delay_seconds))


async def heartbeat(db: Connection, lease: Lease) -> bool:
    """Record that a worker is alive. Returns False if its lease is lost.

    Its own row first: locks are taken in one order everywhere.
    """
    here = await db.run("lease_heartbeat", worker=lease.id) > 0
    await db.run("job_heartbeat", job=lease.job_id)
    return here


async def set_generation(db: Connection, id: str, generation: int, *, discovered: int, mode: CrawlMode) -> None:
    await db.run("set_job_generation", id=id, generation=generation, discovered=discovered, mode=mode)


async def restart(db: Connection, lease: Lease) -> None:
    """Let a leased job start again, without a generation, a frontier and other workers: theirs are of the old one."""
    await db.run("revoke_other_leases", job=lease.job_id, worker=lease.id)
    await db.run("delete_frontier", job=lease.job_id)
    await db.run("restart_job", id=lease.job_id)


async def mark_listed(db: Connection, id: str, *, lists_everything: bool, unlisted: bool) -> bool:
    """Record that the frontier has its first entries. Returns False if it had them already."""
    return await db.run("mark_listed", id=id, lists_everything=lists_everything, unlisted=unlisted) > 0


async def advance_batch(
    db: Connection,
    id: str,
    *,
    discovered: int = 0,
    unchanged_without_entry: int = 0,
    bytes: int = 0,
    limited: bool = False,
    is_progress: bool = True,
) -> CrawlJob:
    """Count one more batch, without its outcomes. Raises LeaseLost if the job was ended meanwhile.

    Progress sets the retries back: a job whose runs only repeat what was done before must end one day.
    """
    row = await db.one(
        "advance_batch",
        job=id,
        discovered=discovered,
        without_entry=unchanged_without_entry,
        bytes=bytes,
        limited=limited,
        is_progress=is_progress,
    )
    if row is None:
        raise LeaseLost("The job was ended meanwhile.")
    return _read(row)


async def update_progress(db: Connection, id: str, *, min_interval: float = 0.0) -> CrawlJob | None:
    """Count the outcomes since the last time. Returns None if there are none, or that was within so many seconds.

    It has to be locked.
    """
    return _job(await db.one("update_progress", job=id, seconds=min_interval))


async def count_new_since_progress(db: Connection, id: str) -> int:
    """Count new documents that the progress of a locked job does not include yet."""
    row = await db.one("count_new_since_progress", job=id)
    return int(row["entries"]) if row else 0


async def complete(db: Connection, id: str, *, held: bool, tally: Tally) -> bool:
    return await db.run("complete_job", id=id, held=held, **tally.as_json()) > 0


async def fail(db: Connection, id: str, error: str) -> bool:
    return await db.run("fail_job", id=id, error=error) > 0


async def set_warning(db: Connection, id: str, warning: str | None) -> None:
    """Set or clear what a running job says about its trouble."""
    await db.run("set_job_warning", id=id, warning=warning)


async def cancel(db: Connection, id: str) -> bool:
    return await db.run("cancel_job", id=id) > 0


async def pause(db: Connection, id: str) -> bool:
    return await db.run("pause_job", id=id) > 0


async def resume(db: Connection, id: str) -> bool:
    return await db.run("resume_job", id=id) > 0


async def list_live_or_recent(db: Connection, *, since: datetime) -> list[JobSummary]:
    """Return the jobs that are live or ended since then, the oldest first."""
    return [read_summary(row) for row in await db.all("live_or_recent_jobs", since=since)]


async def count_by_status(db: Connection) -> dict[str, int]:
    return {row["status"]: row["jobs"] for row in await db.all("jobs_by_status")}


# Shares of hosts -----------------------------------------------------------------------------------------------


async def lock_host(db: Connection, host: str) -> None:
    """Lock the shares of a host until the transaction ends."""
    await db.one("lock_host", host=host)


async def host_shares(db: Connection, host: str, *, expires_after: float) -> list[HostShare]:
    """Return the shares that were renewed within so many seconds, the oldest first."""
    rows = await db.all("host_shares", host=host, seconds=expires_after)
    return [HostShare(lease_id=row["lease_id"], concurrency=row["concurrency"], slots=row["slots"]) for row in rows]


async def upsert_host_share(db: Connection, host: str, share: HostShare) -> bool:
    """Insert or renew the share of a lease. Returns False if the lease is lost."""
    values = {"lease": share.lease_id, "concurrency": share.concurrency, "slots": share.slots}
    return await db.run("upsert_host_share", host=host, **values) > 0


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
            discovered=row["discovered"],
            tally=tally,
            bytes=row["bytes"],
            current_depth=row["current_depth"],
            percent=row["progress_percentage"],
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
