"""Crawls in progress, and the outcome of every URL."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter, Request, Response

from kept.errors import NotFound
from kept.model.frontier import Outcome
from kept.model.job import JobStatus
from kept.server.responses import get_services
from kept.server.sse import SseBatch, SseEvent, event_stream_response
from kept.server.web import charts
from kept.server.web.page import (
    PAGE_HEADERS,
    AfterUrl,
    PageRoute,
    redirect_to,
    render_fragment,
    render_page,
    wants_fragment,
)
from kept.service import jobs as jobs_service
from kept.service import ledger
from kept.service.context import Services, SharedSnapshot, share_snapshot
from kept.service.jobs import JobView

router = APIRouter(route_class=PageRoute)
MAX_UPDATE_SECONDS = 2.0  # the number of workers changes without a change of the job
LEDGER_PAGE_SIZE = 100  # URLs
JOB_ACTIONS = {"pause": jobs_service.pause_job, "resume": jobs_service.resume_job, "cancel": jobs_service.cancel_job}


@router.get("/jobs")
async def show_jobs(request: Request, status: str | None = None) -> Response:
    views = await jobs_service.list_jobs(get_services(request).db, status=status or None)
    live = any(view.job.status.is_live for view in views)
    template = "jobs_part.html" if wants_fragment(request) else "jobs.html"
    return render_page(template, request, views=views, live=live, status=status, statuses=list(JobStatus))


@router.get("/jobs/{id}")
async def show_job(request: Request, id: str) -> Response:
    async with share_snapshot(get_services(request).db) as snapshot:
        view = await jobs_service.show_job(snapshot, id)
        progress = await jobs_service.progress_over_time(snapshot, view.job)
        values = await _ledger_values(snapshot, view)
    points, live = charts.polyline_points(progress), view.job.status.is_live
    return render_page("job.html", request, live=live, progress_over_time=progress, points=points, **values)


@router.get("/jobs/{id}/ledger")
async def show_ledger(request: Request, id: str, outcome: str | None = None, after: AfterUrl = "") -> Response:
    async with share_snapshot(get_services(request).db) as snapshot:
        view = await jobs_service.show_job(snapshot, id)
        values = await _ledger_values(snapshot, view, outcome, after)
    template = "ledger_part.html" if wants_fragment(request) else "ledger.html"
    return render_page(template, request, **values)


async def _ledger_values(
    snapshot: SharedSnapshot, view: JobView, outcome: str | None = None, after: str = ""
) -> dict[str, Any]:
    """Return the values of ``ledger_part.html``."""
    entries = await ledger.list_entries(
        snapshot, view.job.id, outcome=outcome or None, after=after, limit=LEDGER_PAGE_SIZE + 1
    )
    progress = view.job.progress
    tally = progress.tally.as_json()
    counts = {name.value: tally[name.tally_field] for name in Outcome}
    counts["open"] = progress.discovered - progress.done
    return {
        "view": view,
        "entries": entries[:LEDGER_PAGE_SIZE],
        "outcome": outcome,
        "outcomes": [(name, counts[name]) for name in (*Outcome, "open") if counts[name] > 0 or name == outcome],
        "after": after,
        "next_after": entries[LEDGER_PAGE_SIZE - 1].url if len(entries) > LEDGER_PAGE_SIZE else None,
    }


@router.post("/jobs/{id}/{action}")
async def run_job_action(request: Request, id: str, action: str) -> Response:
    if action not in JOB_ACTIONS:
        raise NotFound(f"There is no action '{action}' for a job. There are {', '.join(JOB_ACTIONS)}.")
    view = await JOB_ACTIONS[action](get_services(request).db, id)
    return redirect_to(f"/jobs/{view.job.id}")


@router.get("/jobs/{id}/live")
async def stream_job(request: Request, id: str) -> Response:
    """Stream the job as rendered parts of its page, until it ends. The first event has the present state, so a client
    that reconnects misses nothing."""
    services = get_services(request)
    view = await jobs_service.show_job(services.db, id)
    batches = _job_batches(services, view)
    return event_stream_response(request, batches, wait_seconds=MAX_UPDATE_SECONDS, headers=PAGE_HEADERS)


async def _job_batches(services: Services, view: JobView) -> AsyncIterator[SseBatch]:
    yield SseBatch(events=[_job_event(view)], wait=False)
    while view.job.status.is_live:
        before, view = view, await jobs_service.show_job(services.db, view.job.id)
        changed = (view.job, view.workers) != (before.job, before.workers)
        yield SseBatch(events=[_job_event(view)] if changed else [], wait=view.job.status.is_live)


def _job_event(view: JobView) -> SseEvent:
    job, live = view.job, view.job.status.is_live
    started = job.started_at or job.created_at
    data = {
        "live": live,
        "done": job.progress.done,
        "seconds": ((job.completed_at or datetime.now(UTC)) - started).total_seconds(),
        "html": render_fragment("job_part.html", view=view, live=live),
    }
    return SseEvent(kind="job", data=data)
