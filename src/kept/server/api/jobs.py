"""Crawls: request, list, pause, resume, cancel; their events."""

from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response

from kept.model.job import CrawlMode
from kept.server.api import models
from kept.server.api.idempotency import IdempotencyKeyHeader, build_idempotency_key
from kept.server.api.models import JobId, SourceLabel, describe_response
from kept.server.responses import PrincipalDep, ServicesDep, json_response
from kept.server.sse import SseBatch, SseEvent, event_stream_response
from kept.service import events, jobs, serializers, sources
from kept.service.context import Services
from kept.service.events import EventCursor

router = APIRouter(tags=["jobs"])

KEEPALIVE_SECONDS = 15

LastEventId = Annotated[
    str | None, Header(alias="Last-Event-ID", max_length=20_000, description="Continue after this event.")
]
EVENT_STREAM_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Server-sent events: `page` for each URL that was visited, `progress`, `job` for each change of "
        "status. A client that reconnects with the id of an event as `Last-Event-ID` continues after it.",
        "content": {"text/event-stream": {}},
    },
    204: {"description": "The job has ended and all its events were sent."},
}


@router.post("/sources/{name}/crawls", status_code=202, responses=describe_response(models.JobModel, 202, "The job."))
async def request_crawl(
    name: SourceLabel,
    services: ServicesDep,
    principal: PrincipalDep,
    body: models.NewCrawlModel | None = None,
    key: IdempotencyKeyHeader = None,
) -> Response:
    """Request a crawl. If one is waiting already, the request joins it."""
    options = body or models.NewCrawlModel()
    job = await sources.refresh_source(
        services,
        principal,
        name,
        mode=CrawlMode(options.mode),
        priority=options.priority,
        idempotency_key=build_idempotency_key(key, f"POST /sources/{name}/crawls", options),
    )
    view = await jobs.show_job(services.db, job.id)
    return json_response(serializers.job(view) | {"job": job.id}, 202, headers={"Location": f"/api/v1/jobs/{job.id}"})


@router.get("/jobs", responses=describe_response(models.JobsModel))
async def list_jobs(
    request: Request,
    services: ServicesDep,
    status: Annotated[models.ShortText | None, Query()] = None,
    limit: models.PageLimit = 50,
    cursor: Annotated[str | None, Query(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")] = None,
) -> Response:
    """List jobs, the newest first."""
    found = await jobs.list_jobs(services.db, status=status, limit=limit, before=cursor)
    more = found[-1].job.id if len(found) == limit else None
    return json_response({"jobs": [serializers.job(view) for view in found], "next": more}, request=request)


@router.get("/jobs/{id}", responses=describe_response(models.JobModel))
async def show_job(id: JobId, request: Request, services: ServicesDep) -> Response:
    """Show a job, by its id or the beginning of it."""
    return json_response(serializers.job(await jobs.show_job(services.db, id)), request=request)


@router.post("/jobs/{id}/pause", responses=describe_response(models.JobModel))
async def pause_job(id: JobId, services: ServicesDep) -> Response:
    """Pause a job: its workers stop after their current batch."""
    return json_response(serializers.job(await jobs.pause_job(services.db, id)))


@router.post("/jobs/{id}/resume", responses=describe_response(models.JobModel))
async def resume_job(id: JobId, services: ServicesDep) -> Response:
    """Resume a paused job with its open URLs."""
    return json_response(serializers.job(await jobs.resume_job(services.db, id)))


@router.post("/jobs/{id}/cancel", responses=describe_response(models.JobModel))
async def cancel_job(id: JobId, services: ServicesDep) -> Response:
    """Cancel a job. The active generation stays active."""
    return json_response(serializers.job(await jobs.cancel_job(services.db, id)))


@router.get("/jobs/{id}/events", responses=EVENT_STREAM_RESPONSES)
async def job_events(id: JobId, request: Request, services: ServicesDep, last: LastEventId = None) -> Response:
    """Stream the events of one job, from its beginning to its end."""
    cursor = await events.cursor_for_job(services.db, id)
    if last is not None:
        [job] = cursor.jobs
        position = EventCursor.decode(last).jobs.get(job, cursor.jobs[job])
        cursor = EventCursor(since=cursor.since, only_listed_jobs=True, jobs={job: position})
    return _event_stream(request, services, cursor)


@router.get("/events", responses=EVENT_STREAM_RESPONSES)
async def all_events(request: Request, services: ServicesDep, last: LastEventId = None) -> Response:
    """Stream the events of all jobs, from now on."""
    cursor = EventCursor.decode(last) if last is not None else await events.cursor_from_now(services.db)
    return _event_stream(request, services, EventCursor(since=cursor.since, jobs=cursor.jobs))


def _event_stream(request: Request, services: Services, cursor: EventCursor) -> Response:
    if events.is_finished(cursor):
        return Response(status_code=204)  # an EventSource does not reconnect after this
    return event_stream_response(request, _event_batches(services, cursor), wait_seconds=KEEPALIVE_SECONDS)


async def _event_batches(services: Services, cursor: EventCursor) -> AsyncIterator[SseBatch]:
    while not events.is_finished(cursor):
        found = await events.read_events(services.db, cursor)
        cursor = found[-1].cursor if found else cursor
        yield SseBatch(
            events=[SseEvent(kind=event.kind, data=event.data, id=event.cursor.encode()) for event in found],
            wait=not found,
        )
