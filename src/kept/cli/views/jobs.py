"""Prints jobs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kept.cli.screen import Screen, StyledText
from kept.cli.views.symbols import STATE_COLOURS
from kept.service.formatting import format_ago, format_counts, format_duration, format_local_time

if TYPE_CHECKING:
    from kept.service.jobs import JobView


def print_jobs(screen: Screen, views: Sequence["JobView"]) -> None:
    if not views:
        screen.line("There are no such crawls. 'kept add' and 'kept refresh' make some.")
        return
    head = ["JOB", "SOURCE", "STATUS", "DONE", "WORKERS", "ASKED FOR", ""]
    rows: list[list[StyledText]] = [[(title, "dim") for title in head]]
    for view in views:
        job = view.job
        rows.append(
            [
                (job.short_id, "bold"),
                view.source,
                (job.status, STATE_COLOURS.get(job.status, "")),
                f"{job.progress.done:,}/{job.progress.discovered:,}",
                str(view.workers),
                format_ago(job.created_at),
                job.error or _format_rate(view),
            ]
        )
    screen.table(rows, align_right=[3, 4], optional=[4])


def print_job(screen: Screen, view: "JobView") -> None:
    job, progress = view.job, view.job.progress
    screen.line((job.id, "bold"))
    facts = [
        ("source", view.source),
        ("status", f"{job.status}{', held' if job.held else ''}"),
        ("mode", str(job.mode)),
    ]
    done = f"{progress.done:,} of {progress.discovered:,} pages ({progress.percent} %)"
    facts.append(("progress", ", ".join(part for part in (done, _format_rate(view)) if part)))
    if counts := format_counts(progress.tally):
        facts.append(("counts", counts))
    facts.append(("asked for", format_local_time(job.created_at)))
    if job.started_at:
        facts.append(("started", format_local_time(job.started_at)))
    if job.completed_at:
        facts.append(("ended", format_local_time(job.completed_at)))
    facts += [("worker", f"{lease.worker_name}, process {lease.pid}") for lease in view.leases]
    if job.retry_count:
        facts.append(("retries", f"{job.retry_count} of {job.max_retries}"))
    if job.again:
        facts.append(("then", f"asked for meanwhile: another crawl follows ({job.again})"))
    if job.error:
        facts.append(("error", job.error))
    screen.facts(facts)


def _format_rate(view: "JobView") -> str:
    """Return '12 a second, 3 min 20 s left' for a running job, else nothing."""
    if view.job.status != "processing" or not view.pace.rate:
        return ""
    left = f", {format_duration(view.pace.eta_seconds)} left" if view.pace.eta_seconds else ""
    return f"{view.pace.rate:,.0f} a second{left}"
