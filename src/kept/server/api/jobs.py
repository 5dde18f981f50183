"""Crawls: asking for one, how each stands, steering it, and what happens."""

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response

from kept.model.job import CrawlMode
from kept.server.api import models
from kept.server.api.idempotency import IdempotencyKeyHeader, build_idempotency_key
from kept.server.api.models import JobId, SourceLabel, describe_response
from kept.server.responses import PrincipalDep, ServicesDep, event_stream_response, json_response
from kept.service import events, jobs, serializers, sources
from kept.service.events import EventCursor

router = APIRouter(tags=["jobs"])

LastEventId = Annotated[
    str | None, Header(alias="Last-Event-ID", max_length=20_000, description="Go on behind this one.")
]
EVENT_STREAM_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Server-sent events: `page` for each URL that was visited, `progress`, `job` for each change of "
        "state. The id of an event, said as `Last-Event-ID`, goes on behind it.",
        "content": {"text/event-stream": {}},
    },
    204: {"description": "Nothing more can come."},
}


@router.post("/sources/{name}/crawls", status_code=202, responses=describe_response(models.Job, 202, "The job."))
async def request_crawl(
    name: SourceLabel,
    services: ServicesDep,
    principal: PrincipalDep,
    body: models.NewCrawl | None = None,
    key: IdempotencyKeyHeader = None,
) -> Response:
    """Asks for the next generation. A request that meets a waiting crawl joins it."""
    said = body or models.NewCrawl()
    job = await sources.refresh_source(
        services,
        principal,
        name,
        mode=CrawlMode(said.mode),
        priority=said.priority,
        idempotency_key=build_idempotency_key(key, f"POST /sources/{name}/crawls", said),
    )
    view = await jobs.show_job(services.db, job.id)
    return json_response(serializers.job(view) | {"job": job.id}, 202, headers={"Location": f"/api/v1/jobs/{job.id}"})


@router.get("/jobs", responses=describe_response(models.Jobs))
async def list_jobs(
    request: Request,
    services: ServicesDep,
    status: Annotated[models.ShortText | None, Query()] = None,
    limit: models.PageLimit = 50,
    cursor: Annotated[str | None, Query(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")] = None,
) -> Response:
    """Jobs, the latest first."""
    found = await jobs.list_jobs(services.db, status=status, limit=limit, before=cursor)
    more = found[-1].job.id if len(found) == limit else None
    return json_response({"jobs": [serializers.job(view) for view in found], "next": more}, request=request)


@router.get("/jobs/{id}", responses=describe_response(models.Job))
async def show_job(id: JobId, request: Request, services: ServicesDep) -> Response:
    """One job, by its id or how that begins."""
    return json_response(serializers.job(await jobs.show_job(services.db, id)), request=request)


@router.post("/jobs/{id}/pause", responses=describe_response(models.Job))
async def pause_job(id: JobId, services: ServicesDep) -> Response:
    """Its workers stop after the batch at hand."""
    return json_response(serializers.job(await jobs.pause_job(services.db, id)))


@router.post("/jobs/{id}/resume", responses=describe_response(models.Job))
async def resume_job(id: JobId, services: ServicesDep) -> Response:
    """It goes on from what is open."""
    return json_response(serializers.job(await jobs.resume_job(services.db, id)))


@router.post("/jobs/{id}/cancel", responses=describe_response(models.Job))
async def cancel_job(id: JobId, services: ServicesDep) -> Response:
    """It ends; what is live stays live."""
    return json_response(serializers.job(await jobs.cancel_job(services.db, id)))


@router.get("/jobs/{id}/events", responses=EVENT_STREAM_RESPONSES)
async def job_events(id: JobId, request: Request, services: ServicesDep, last: LastEventId = None) -> Response:
    """What happens in one job, from its beginning to its end."""
    begin = await events.cursor_for_job(services.db, id)
    if last is None:
        return event_stream_response(request, services, begin)
    told = EventCursor.decode(last)
    [job] = begin.jobs
    return event_stream_response(
        request,
        services,
        EventCursor(since=begin.since, only_listed_jobs=True, jobs={job: told.jobs.get(job, begin.jobs[job])}),
    )


@router.get("/events", responses=EVENT_STREAM_RESPONSES)
async def all_events(request: Request, services: ServicesDep, last: LastEventId = None) -> Response:
    """What happens in all jobs, from now on."""
    told = EventCursor.decode(last) if last is not None else await events.cursor_from_now(services.db)
    return event_stream_response(request, services, EventCursor(since=told.since, jobs=told.jobs))
