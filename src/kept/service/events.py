"""Events of jobs: visited URLs and changes of status, read from the ledger. Nothing is written for them alone.

Batches are numbered when they are committed, one after the other: a reader that has seen all entries of a job up to one
of a batch has missed none, and continues after it. A status that a job had only between two reads is not reported.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypeAlias

from kept.errors import InvalidInput
from kept.model.frontier import FinishedEntry
from kept.model.job import JobStatus, JobSummary
from kept.model.source import format_label
from kept.service import jobs as jobs_service
from kept.service import serializers
from kept.service.cursor import decode_cursor, encode_cursor
from kept.service.jobs import view_job
from kept.service.lookup import is_id
from kept.store import frontier, jobs
from kept.store.database import Connection, Database, current_time

EVENTS_PER_READ = 500
TRANSACTION_MARGIN = timedelta(seconds=10)  # the time of a transaction is that of its beginning
ENDED_STATUSES = [status.value for status in JobStatus if status.has_ended]
_MAX_ENTRY = 2**62

EventKind: TypeAlias = Literal["page", "progress", "job"]


@dataclass(frozen=True, slots=True)
class JobPosition:
    """How much of a job has been reported."""

    batch: int = 0
    entry: int = 0
    state: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventCursor:
    """How much has been reported: positions in jobs, and the time since when other jobs are new."""

    since: datetime
    jobs: Mapping[str, JobPosition] = field(default_factory=dict)
    only_listed_jobs: bool = False  # no others

    def encode(self) -> str:
        positions = {id: [at.batch, at.entry, at.state] for id, at in self.jobs.items()}
        return encode_cursor([self.since.timestamp(), self.only_listed_jobs, positions])

    @classmethod
    def decode(cls, text: str) -> "EventCursor":
        """Return the cursor that ``encode`` wrote. Raises InvalidInput for any other text."""
        try:
            since, only, positions = decode_cursor(text)
            at = {
                str(id): JobPosition(int(batch), int(entry), str(state))
                for id, (batch, entry, state) in positions.items()
            }
            if any(not (0 <= one.batch < _MAX_ENTRY and 0 <= one.entry <= _MAX_ENTRY) for one in at.values()):
                raise ValueError
            if not all(map(is_id, at)):
                raise ValueError
            return cls(since=datetime.fromtimestamp(since, UTC), only_listed_jobs=bool(only), jobs=at)
        except (ValueError, TypeError, AttributeError, OverflowError, OSError, RecursionError):
            raise InvalidInput("This is no id of an event. Say the last one that was received, or none.") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEvent:
    """An event, and the cursor after it."""

    kind: EventKind
    data: Mapping[str, Any]
    cursor: EventCursor


async def cursor_from_now(db: Database) -> EventCursor:
    """Return a cursor for future visits, and for the present status of live jobs."""
    async with db.snapshot() as snapshot:
        now = await current_time(snapshot)
        live = [row.job for row in await jobs.list_live_or_recent(snapshot, since=now) if row.job.status.is_live]
    return EventCursor(since=now, jobs={job.id: JobPosition(job.batch, _MAX_ENTRY) for job in live})


async def cursor_for_job(db: Database, what: str) -> EventCursor:
    """Return a cursor for one job, from its beginning."""
    job = (await jobs_service.show_job(db, what)).job
    return EventCursor(since=job.created_at, only_listed_jobs=True, jobs={job.id: JobPosition()})


async def read_events(db: Database, cursor: EventCursor) -> list[JobEvent]:
    """Return the events after a cursor, at most about EVENTS_PER_READ. Empty: there are none yet."""
    found: list[JobEvent] = []
    async with db.snapshot() as snapshot:
        now = await current_time(snapshot)
        for row in await _followed_jobs(snapshot, cursor):
            for kind, data, at in await _events_of_job(snapshot, row, cursor.jobs.get(row.job.id, JobPosition())):
                cursor = replace(cursor, jobs={**cursor.jobs, row.job.id: at})
                found.append(JobEvent(kind=kind, data=data, cursor=cursor))
            if len(found) >= EVENTS_PER_READ:
                return found
        if found and not cursor.only_listed_jobs:  # jobs that ended long ago are dropped from the cursor
            ended = await _ended_before(snapshot, cursor, now - TRANSACTION_MARGIN)
            left = {id: at for id, at in cursor.jobs.items() if id not in ended}
            found[-1] = replace(
                found[-1], cursor=EventCursor(since=max(cursor.since, now - TRANSACTION_MARGIN), jobs=left)
            )
    return found


async def change_token(db: Database) -> str:
    """Return a text that changes with every event."""
    async with db.snapshot() as snapshot:
        rows = await jobs.list_live_or_recent(snapshot, since=await current_time(snapshot) - TRANSACTION_MARGIN)
    return " ".join(f"{row.job.id}:{row.job.status}:{row.job.batch}" for row in rows)


def is_finished(cursor: EventCursor) -> bool:
    """Return whether no more events can follow."""
    return cursor.only_listed_jobs and all(at.state in ENDED_STATUSES for at in cursor.jobs.values())


async def _followed_jobs(db: Connection, cursor: EventCursor) -> list[JobSummary]:
    rows = (
        {}
        if cursor.only_listed_jobs
        else {row.job.id: row for row in await jobs.list_live_or_recent(db, since=cursor.since)}
    )
    for id in cursor.jobs:
        if id not in rows and cursor.jobs[id].state not in ENDED_STATUSES:
            rows |= {row.job.id: row for row in await jobs.find_by_part_of_id(db, id) if row.job.id == id}
    return [rows[id] for id in sorted(rows)]


async def _ended_before(db: Connection, cursor: EventCursor, then: datetime) -> set[str]:
    over = [id for id, at in cursor.jobs.items() if at.state in ENDED_STATUSES]
    found = [await jobs.get(db, id) for id in over]
    return {id for id, job in zip(over, found, strict=True) if job is None or (job.completed_at or then) < then}


async def _events_of_job(
    db: Connection, row: JobSummary, position: JobPosition
) -> list[tuple[EventKind, Mapping[str, Any], JobPosition]]:
    job, source = row.job, format_label(row.source_name, row.source_version)
    if position.state in ENDED_STATUSES:
        return []
    found: list[tuple[EventKind, Mapping[str, Any], JobPosition]] = []
    entries = await frontier.entries_since(
        db, job.id, batch=position.batch, entry=position.entry, limit=EVENTS_PER_READ
    )
    for entry in entries:
        position = replace(position, batch=entry.batch, entry=entry.id)
        found.append(("page", _page_event(entry, job.id, source), position))
    view = await view_job(db, row)
    if entries:
        found.append(("progress", serializers.job(view), position))
    if len(entries) < EVENTS_PER_READ and job.status != position.state:
        found.append(("job", serializers.job(view), replace(position, state=str(job.status))))
    return found


def _page_event(entry: FinishedEntry, job: str, source: str) -> dict[str, Any]:
    return {
        "job": job,
        "source": source,
        "url": entry.url,
        "outcome": entry.outcome,
        "deleted": entry.removed or entry.outcome == "gone",
        "reason": entry.reason,
        "http_status": entry.http_status,
        "depth": entry.depth,
        "document": entry.document_id,
        "moved_to": entry.redirect_to,
        "visited_at": entry.visited_at.isoformat(),
    }
