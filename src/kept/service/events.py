"""What happens, as it happens: URLs are visited, jobs come to another state. Nothing is written for this alone.

Batches get their numbers at their commits, one after the other. So whoever has seen everything of a job up to an entry
of a batch has missed nothing, and goes on behind it. What state a job was in while nobody looked is not known; what it
is in now is told once.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypeAlias

from kept.errors import WrongCall
from kept.model.job import JobStatus
from kept.model.nouns import dataclass
from kept.model.source import label_of
from kept.service import crawls, shapes
from kept.service.crawls import JobView
from kept.service.naming import is_id
from kept.store import events, jobs
from kept.store.database import Connection, Database, Row, moment, when
from kept.store.jobs import JobRow

AT_ONCE = 500
MARGIN = timedelta(seconds=10)  # a transaction's time is when it began
ENDED = (JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED)
_LAST = 2**62

Kind: TypeAlias = Literal["page", "progress", "job"]


@dataclass(frozen=True, slots=True)
class Position:
    """How much of a job was told."""

    batch: int = 0
    entry: int = 0
    state: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """How much was told: of which jobs, and since when others are new."""

    since: datetime
    jobs: Mapping[str, Position] = field(default_factory=dict)
    only: bool = False  # of these jobs, and no others

    def spell(self) -> str:
        told = {id: [at.batch, at.entry, at.state] for id, at in self.jobs.items()}
        text = json.dumps([self.since.timestamp(), self.only, told], separators=(",", ":"))
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    @classmethod
    def parse(cls, text: str) -> "Cursor":
        """What spell() gave; WrongCall for anything else."""
        try:
            since, only, told = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
            at = {str(id): Position(int(batch), int(entry), str(state)) for id, (batch, entry, state) in told.items()}
            if any(not (0 <= one.batch < _LAST and 0 <= one.entry <= _LAST) for one in at.values()):
                raise ValueError
            if not all(map(is_id, at)):
                raise ValueError
            return cls(since=datetime.fromtimestamp(since, UTC), only=bool(only), jobs=at)
        except (ValueError, TypeError, AttributeError, OverflowError, OSError, RecursionError):
            raise WrongCall("This is no id of an event. Say the last one that was received, or none.") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened, and the cursor behind it."""

    kind: Kind
    data: Mapping[str, Any]
    cursor: Cursor


async def from_now(db: Database) -> Cursor:
    """What is visited from now on; of jobs that are live, what state they are in."""
    async with db.snapshot() as snapshot:
        now = await moment(snapshot)
        live = [row.job for row in await events.watched(snapshot, since=now) if row.job.status not in ENDED]
    return Cursor(since=now, jobs={job.id: Position(job.batch, _LAST) for job in live})


async def of_job(db: Database, what: str) -> Cursor:
    """One job, from its beginning."""
    job = (await crawls.show_job(db, what)).job
    return Cursor(since=job.created_at, only=True, jobs={job.id: Position()})


async def read(db: Database, told: Cursor) -> list[Event]:
    """What has happened behind a cursor, as far as it goes at once; nothing: nothing has, yet."""
    found: list[Event] = []
    async with db.snapshot() as snapshot:
        now = await moment(snapshot)
        for row in await _watched(snapshot, told):
            for kind, data, at in await _of_job(snapshot, row, told.jobs.get(row.job.id, Position()), now):
                told = replace(told, jobs={**told.jobs, row.job.id: at})
                found.append(Event(kind=kind, data=data, cursor=told))
            if len(found) >= AT_ONCE:
                return found
        if found and not told.only:  # the next cursor need not name what ended long ago
            ended = await _ended_before(snapshot, told, now - MARGIN)
            left = {id: at for id, at in told.jobs.items() if id not in ended}
            found[-1] = replace(found[-1], cursor=Cursor(since=max(told.since, now - MARGIN), jobs=left))
    return found


async def signature(db: Database) -> str:
    """A text that is another one whenever something has happened."""
    async with db.snapshot() as snapshot:
        rows = await events.watched(snapshot, since=await moment(snapshot) - MARGIN)
    return " ".join(f"{row.job.id}:{row.job.status}:{row.job.batch}" for row in rows)


def is_over(told: Cursor) -> bool:
    """Whether nothing more can come."""
    return told.only and all(at.state in list(ENDED) for at in told.jobs.values())


async def _watched(db: Connection, told: Cursor) -> list[JobRow]:
    rows = {} if told.only else {row.job.id: row for row in await events.watched(db, since=told.since)}
    for id in told.jobs:
        if id not in rows and told.jobs[id].state not in list(ENDED):
            rows |= {row.job.id: row for row in await jobs.beginning(db, id) if row.job.id == id}
    return [rows[id] for id in sorted(rows)]


async def _ended_before(db: Connection, told: Cursor, then: datetime) -> set[str]:
    over = [id for id, at in told.jobs.items() if at.state in list(ENDED)]
    found = [await jobs.get(db, id) for id in over]
    return {id for id, job in zip(over, found, strict=True) if job is None or (job.completed_at or then) < then}


async def _of_job(
    db: Connection, row: JobRow, at: Position, now: datetime
) -> list[tuple[Kind, Mapping[str, Any], Position]]:
    job, source = row.job, label_of(row.source_name, row.source_version)
    if at.state in list(ENDED):
        return []
    found: list[tuple[Kind, Mapping[str, Any], Position]] = []
    entries = await events.entries(db, job.id, batch=at.batch, entry=at.entry, limit=AT_ONCE)
    for entry in entries:
        at = replace(at, batch=entry["batch"], entry=entry["id"])
        found.append(("page", _visited(entry, job.id, source), at))
    view = JobView(job=job, source=source, workers=row.workers, pace=job.pace(now))
    if entries:
        found.append(("progress", shapes.job(view), at))
    if len(entries) < AT_ONCE and job.status != at.state:
        found.append(("job", shapes.job(view), replace(at, state=str(job.status))))
    return found


def _visited(entry: Row, job: str, source: str) -> dict[str, Any]:
    return {
        "job": job,
        "source": source,
        "url": entry["url"],
        "outcome": entry["outcome"],
        "deleted": entry["outcome"] == "gone",
        "reason": entry["reason"],
        "http_status": entry["http_status"],
        "depth": entry["depth"],
        "document": entry["document_id"],
        "moved_to": entry["redirect_to"],
        "visited_at": when(entry["visited_at"]).isoformat(),
    }
