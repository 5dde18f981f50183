"""Crawls: asking for one, how each stands, steering it, and what happens."""

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response

from kept.model.job import CrawlMode
from kept.serve.answers import TheAsker, TheHouse, answer, stream
from kept.serve.api import models
from kept.serve.api.models import Id, Label, told
from kept.serve.api.once import OnceKey, once
from kept.service import asking, crawls, events, shapes
from kept.service.events import Cursor

router = APIRouter(tags=["jobs"])

LastSeen = Annotated[str | None, Header(alias="Last-Event-ID", max_length=20_000, description="Go on behind this one.")]
STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Server-sent events: `page` for each URL that was visited, `progress`, `job` for each change of "
        "state. The id of an event, said as `Last-Event-ID`, goes on behind it.",
        "content": {"text/event-stream": {}},
    },
    204: {"description": "Nothing more can come."},
}


@router.post("/sources/{name}/crawls", status_code=202, responses=told(models.Job, 202, "The job."))
async def request_crawl(
    name: Label, house: TheHouse, asker: TheAsker, body: models.NewCrawl | None = None, key: OnceKey = None
) -> Response:
    """Asks for the next generation. A request that meets a waiting crawl joins it."""
    said = body or models.NewCrawl()
    job = await asking.crawl(
        house,
        asker,
        name,
        mode=CrawlMode(said.mode),
        priority=said.priority,
        once=once(key, f"POST /sources/{name}/crawls", said),
    )
    view = await crawls.show_job(house.db, job.id)
    return answer(shapes.job(view) | {"job": job.id}, 202, headers={"Location": f"/api/v1/jobs/{job.id}"})


@router.get("/jobs", responses=told(models.Jobs))
async def list_jobs(
    request: Request,
    house: TheHouse,
    status: Annotated[models.Words | None, Query()] = None,
    limit: models.Limit = 50,
    cursor: Annotated[str | None, Query(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")] = None,
) -> Response:
    """Jobs, the latest first."""
    found = await crawls.list_jobs(house.db, status=status, limit=limit, before=cursor)
    more = found[-1].job.id if len(found) == limit else None
    return answer({"jobs": [shapes.job(view) for view in found], "next": more}, request=request)


@router.get("/jobs/{id}", responses=told(models.Job))
async def show_job(id: Id, request: Request, house: TheHouse) -> Response:
    """One job, by its id or how that begins."""
    return answer(shapes.job(await crawls.show_job(house.db, id)), request=request)


@router.post("/jobs/{id}/pause", responses=told(models.Job))
async def pause_job(id: Id, house: TheHouse) -> Response:
    """Its workers stop after the batch at hand."""
    return answer(shapes.job(await crawls.pause_job(house.db, id)))


@router.post("/jobs/{id}/resume", responses=told(models.Job))
async def resume_job(id: Id, house: TheHouse) -> Response:
    """It goes on from what is open."""
    return answer(shapes.job(await crawls.resume_job(house.db, id)))


@router.post("/jobs/{id}/cancel", responses=told(models.Job))
async def cancel_job(id: Id, house: TheHouse) -> Response:
    """It ends; what is live stays live."""
    return answer(shapes.job(await crawls.cancel_job(house.db, id)))


@router.get("/jobs/{id}/events", responses=STREAM)
async def job_events(id: Id, request: Request, house: TheHouse, last: LastSeen = None) -> Response:
    """What happens in one job, from its beginning to its end."""
    begin = await events.of_job(house.db, id)
    if last is None:
        return stream(request, house, begin)
    told = Cursor.parse(last)
    [job] = begin.jobs
    return stream(request, house, Cursor(since=begin.since, only=True, jobs={job: told.jobs.get(job, begin.jobs[job])}))


@router.get("/events", responses=STREAM)
async def all_events(request: Request, house: TheHouse, last: LastSeen = None) -> Response:
    """What happens in all jobs, from now on."""
    told = Cursor.parse(last) if last is not None else await events.from_now(house.db)
    return stream(request, house, Cursor(since=told.since, jobs=told.jobs))
