"""Crawls as they go, and what became of every URL."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from kept.errors import KeptError, NoSuchThing
from kept.model.frontier import Outcome
from kept.model.job import JobStatus
from kept.serve.ticker import Ticker
from kept.serve.web import charts
from kept.serve.web.page import HEADERS, After, PageRoute, fragment, go_to, house_of, show, wants_part
from kept.service import crawls, ledger
from kept.service.crawls import JobView
from kept.service.house import House

router = APIRouter(route_class=PageRoute)
LIVE = (JobStatus.PENDING, JobStatus.PROCESSING, JobStatus.PAUSED)
LONGEST_SECONDS = 2.0  # between two looks: time passes, and the rate with it
PAGE = 100  # URLs of the ledger at once
STEERING = {"pause": crawls.pause_job, "resume": crawls.resume_job, "cancel": crawls.cancel_job}


@router.get("/jobs")
async def jobs(request: Request, status: str | None = None) -> Response:
    found = await crawls.list_jobs(house_of(request).db, status=status or None)
    live = any(view.job.status in LIVE for view in found)
    template = "jobs_part.html" if wants_part(request) else "jobs.html"
    return show(template, request, found=found, live=live, status=status, statuses=list(JobStatus))


@router.get("/jobs/{id}")
async def job(request: Request, id: str) -> Response:
    house = house_of(request)
    view = await crawls.show_job(house.db, id)
    course = await crawls.course_of(house.db, view.job)
    live, facts = view.job.status in LIVE, await _ledger(house, view)
    return show("job.html", request, live=live, course=course, line=charts.path(course), **facts)


@router.get("/jobs/{id}/ledger")
async def entries(request: Request, id: str, outcome: str | None = None, after: After = "") -> Response:
    house = house_of(request)
    view = await crawls.show_job(house.db, id)
    template = "ledger_part.html" if wants_part(request) else "ledger.html"
    return show(template, request, **await _ledger(house, view, outcome, after))


async def _ledger(house: House, view: JobView, outcome: str | None = None, after: str = "") -> dict[str, Any]:
    found = await ledger.entries(house.db, view.job.id, outcome=outcome or None, after=after, limit=PAGE + 1)
    more = found[PAGE - 1].url if len(found) > PAGE else None
    counts = view.job.progress.tally.as_json() | {"open": view.job.progress.discovered - view.job.progress.done}
    outcomes = [(one, counts[one]) for one in (*Outcome, "open") if counts[one] > 0 or one == outcome]
    facts = {"view": view, "found": found[:PAGE], "outcome": outcome, "outcomes": outcomes}
    return facts | {"after": after, "more": more}


@router.post("/jobs/{id}/{move}")
async def steer(request: Request, id: str, move: str) -> Response:
    if move not in STEERING:
        raise NoSuchThing(f"There is no '{move}' for a job: it takes {', '.join(STEERING)}.")
    view = await STEERING[move](house_of(request).db, id)
    return go_to(f"/jobs/{view.job.id}")


@router.get("/jobs/{id}/live")
async def live(request: Request, id: str) -> Response:
    """How the job goes, as events, until it ends. Whoever loses the connection comes back and is told again."""
    house = house_of(request)
    view = await crawls.show_job(house.db, id)
    return StreamingResponse(
        _told(house, request.app.state.ticker, view), media_type="text/event-stream", headers=HEADERS
    )


async def _told(house: House, ticker: Ticker, view: JobView) -> AsyncIterator[str]:
    yield "retry: 1000\n\n"
    told: tuple[Any, ...] = ()
    while not ticker.closing:
        version = ticker.version
        if told != (view.job, view.workers):
            told = (view.job, view.workers)
            yield f"event: job\ndata: {json.dumps(_facts(view))}\n\n"
        if view.job.status not in LIVE:
            return
        await ticker.wait(version, LONGEST_SECONDS)
        try:
            view = await crawls.show_job(house.db, view.job.id)
        except KeptError:  # the database is away, or the job; the page asks again
            return


def _facts(view: JobView) -> dict[str, Any]:
    job, live = view.job, view.job.status in LIVE
    begun = job.started_at or job.created_at
    return {
        "live": live,
        "done": job.progress.done,
        "seconds": ((job.completed_at or datetime.now(UTC)) - begun).total_seconds(),
        "html": fragment("job_part.html", view=view, live=live),
    }
