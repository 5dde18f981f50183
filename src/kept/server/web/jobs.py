"""Crawls as they go, and what became of every URL."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from kept.errors import KeptError, NotFound
from kept.model.frontier import Outcome
from kept.model.job import JobStatus
from kept.server.change_poller import ChangePoller
from kept.server.web import charts
from kept.server.web.page import (
    PAGE_HEADERS,
    AfterUrl,
    PageRoute,
    get_services,
    redirect_to,
    render_fragment,
    render_page,
    wants_fragment,
)
from kept.service import jobs as jobs_service
from kept.service import ledger
from kept.service.context import Services
from kept.service.jobs import JobView

router = APIRouter(route_class=PageRoute)

MAX_UPDATE_SECONDS = 2.0  # between two looks: time passes, and the rate with it
LEDGER_PAGE_SIZE = 100  # URLs of the ledger at once
JOB_ACTIONS = {"pause": jobs_service.pause_job, "resume": jobs_service.resume_job, "cancel": jobs_service.cancel_job}


@router.get("/jobs")
async def show_jobs(request: Request, status: str | None = None) -> Response:
    found = await jobs_service.list_jobs(get_services(request).db, status=status or None)
    live = any(view.job.status.is_live for view in found)
    template = "jobs_part.html" if wants_fragment(request) else "jobs.html"
    return render_page(template, request, found=found, live=live, status=status, statuses=list(JobStatus))


@router.get("/jobs/{id}")
async def show_job(request: Request, id: str) -> Response:
    house = get_services(request)
    view = await jobs_service.show_job(house.db, id)
    course = await jobs_service.progress_over_time(house.db, view.job)
    live, facts = view.job.status.is_live, await _ledger_context(house, view)
    return render_page("job.html", request, live=live, course=course, line=charts.polyline_points(course), **facts)


@router.get("/jobs/{id}/ledger")
async def show_ledger(request: Request, id: str, outcome: str | None = None, after: AfterUrl = "") -> Response:
    house = get_services(request)
    view = await jobs_service.show_job(house.db, id)
    template = "ledger_part.html" if wants_fragment(request) else "ledger.html"
    return render_page(template, request, **await _ledger_context(house, view, outcome, after))


async def _ledger_context(
    services: Services, view: JobView, outcome: str | None = None, after: str = ""
) -> dict[str, Any]:
    found = await ledger.list_entries(
        services.db, view.job.id, outcome=outcome or None, after=after, limit=LEDGER_PAGE_SIZE + 1
    )
    more = found[LEDGER_PAGE_SIZE - 1].url if len(found) > LEDGER_PAGE_SIZE else None
    counts = view.job.progress.tally.as_json() | {"open": view.job.progress.discovered - view.job.progress.done}
    outcomes = [(one, counts[one]) for one in (*Outcome, "open") if counts[one] > 0 or one == outcome]
    facts = {"view": view, "found": found[:LEDGER_PAGE_SIZE], "outcome": outcome, "outcomes": outcomes}
    return facts | {"after": after, "more": more}


@router.post("/jobs/{id}/{move}")
async def run_job_action(request: Request, id: str, move: str) -> Response:
    if move not in JOB_ACTIONS:
        raise NotFound(f"There is no '{move}' for a job: it takes {', '.join(JOB_ACTIONS)}.")
    view = await JOB_ACTIONS[move](get_services(request).db, id)
    return redirect_to(f"/jobs/{view.job.id}")


@router.get("/jobs/{id}/live")
async def stream_job(request: Request, id: str) -> Response:
    """How the job goes, as events, until it ends. Whoever loses the connection comes back and is told again."""
    house = get_services(request)
    view = await jobs_service.show_job(house.db, id)
    return StreamingResponse(
        _job_events(house, request.app.state.change_poller, view), media_type="text/event-stream", headers=PAGE_HEADERS
    )


async def _job_events(services: Services, poller: ChangePoller, view: JobView) -> AsyncIterator[str]:
    yield "retry: 1000\n\n"
    told: tuple[Any, ...] = ()
    while not poller.is_shutting_down:
        version = poller.sequence
        if told != (view.job, view.workers):
            told = (view.job, view.workers)
            yield f"event: job\ndata: {json.dumps(_job_event_data(view))}\n\n"
        if view.job.status.has_ended:
            return
        await poller.wait_for_change(version, MAX_UPDATE_SECONDS)
        try:
            view = await jobs_service.show_job(services.db, view.job.id)
        except KeptError:  # the database is away, or the job; the page asks again
            return


def _job_event_data(view: JobView) -> dict[str, Any]:
    job, live = view.job, view.job.status.is_live
    begun = job.started_at or job.created_at
    return {
        "live": live,
        "done": job.progress.done,
        "seconds": ((job.completed_at or datetime.now(UTC)) - begun).total_seconds(),
        "html": render_fragment("job_part.html", view=view, live=live),
    }
