"""Runs a crawl in this process, shows its progress and its result."""

import asyncio
import signal
import time
from typing import TYPE_CHECKING

from kept.cli.command import EXIT_FAILED, EXIT_NEEDS_DECISION, EXIT_OK, CliContext
from kept.cli.progress import CrawlProgressBar
from kept.model.generation import Generation
from kept.model.job import CrawlJob, JobStatus
from kept.model.source import Source
from kept.service import generations as past
from kept.service import sources
from kept.service.access import OWNER
from kept.service.formatting import format_counts, format_duration, pluralize

if TYPE_CHECKING:
    from kept.runtime.runtime import Runtime


async def follow_crawl(cli: CliContext, runtime: "Runtime", source: Source, job: CrawlJob, *, wait: bool = True) -> int:
    """Run a crawl here, show its progress and its result. Returns the exit code. Without ``wait`` a worker runs it."""
    began = time.monotonic()
    if wait:
        job = await _run_job(cli, runtime, source, job)
    seconds = time.monotonic() - began  # the job's own
    if wait:
        await runtime.worker_host.deliver_webhooks()
    generation, removed = await past.get_crawl_result(runtime.db, job)
    cli.err.line(_summarize_crawl(source.label, job, generation, seconds))
    for one in removed:
        cli.err.line(f"  removed {pluralize(one.count, 'document')}: {one.reason}")
    if wait and runtime.services.models.embedding_backlog:
        from kept.service.search import count_missing_vectors

        if missing := await count_missing_vectors(runtime.db, [source.label]):
            lacking = f"Sections without a vector so far: {missing[source.label]:,}"
            cli.err.line(f"{lacking}. Only their words find them, until a worker or the next refresh goes on.")
    if job.held:
        cli.err.line(f"  kept activate {source.label}   makes it live all the same")
        cli.err.line(f"  kept discard {source.label}    gives it up")
    if job.status is JobStatus.FAILED and source.active_generation is None:
        cli.err.line(f"  kept refresh {source.label}   tries again")
        cli.err.line(f"  kept remove {source.label}    forgets it; nothing was kept")
    if cli.as_json:
        from kept.service import serializers

        cli.print_json(serializers.crawl(source.label, job, generation, seconds, removed))
    if job.held or job.status is JobStatus.PAUSED:
        return EXIT_NEEDS_DECISION
    return EXIT_FAILED if job.status in (JobStatus.FAILED, JobStatus.CANCELLED) else EXIT_OK


async def watch_folder(cli: CliContext, runtime: "Runtime", source: Source) -> int:
    """Refresh a folder whenever its files have changed, until a signal."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    cli.err.line(f"{source.label}: watching {source.root}; Ctrl-C ends it.")
    cli.as_json = False  # one value has been printed
    async for _ in runtime.worker_host.watch_files(source, stop):
        job = await sources.refresh_source(runtime.services, OWNER, source.label)
        await follow_crawl(cli, runtime, source, job)
    return EXIT_OK


async def _run_job(cli: CliContext, runtime: "Runtime", source: Source, job: CrawlJob) -> CrawlJob:
    """Run a job to its end; where it was running already when it was requested, also the one that follows it."""
    follow = job.again is not None
    try:
        with CrawlProgressBar(cli.err, source.label, source.root, live=not cli.verbose) as watch:
            job = await runtime.worker_host.run_job(job, watch)
            if follow:
                last = (await sources.show_source(runtime.db, source.label)).last_job
                if last and last.id != job.id:
                    job = await runtime.worker_host.run_job(last, watch)
    except asyncio.CancelledError:
        cli.err.line(f"{source.label}: stopped. 'kept refresh {source.label}' goes on where it was.")
        raise
    return job


def _summarize_crawl(label: str, job: CrawlJob, generation: Generation | None, seconds: float) -> str:
    """Describe the result of a crawl in a sentence or two."""
    match job.status:
        case JobStatus.COMPLETED if generation and job.held:
            base = f"Generation {generation.base} stays active" if generation.base else "Nothing is active"
            return f"{label}: generation {generation.number} is held: {generation.reason}. {base} until you decide:"
        case JobStatus.COMPLETED if generation:
            counts = format_counts(job.progress.tally) or "no documents were found"
            partial = {
                None: "",
                "limit": " It is partial: a limit was reached.",
                "trap": f" It is partial: traps were not followed; 'kept why {label}' lists them; "
                "--not-a-trap lifts the guard for a path, --no-traps for all.",
                "errors": " It is partial: what could not be read is shown as it was.",
            }[generation.partial]
            return (
                f"{label}: generation {generation.number} is active: {counts} in {format_duration(seconds)}.{partial}"
            )
        case JobStatus.COMPLETED:
            return f"{label}: nothing had failed, so there was nothing to repair. The active generation stays."
        case JobStatus.FAILED:
            return f"{label}: the crawl failed: {job.error}"
        case JobStatus.PAUSED:
            return f"{label}: the crawl is paused (job {job.short_id})."
        case JobStatus.CANCELLED:
            return f"{label}: the crawl was cancelled (job {job.short_id})."
        case _:
            waiting = f"{label}: a crawl is waiting for a worker (job {job.short_id})"
            return f"{waiting}; 'kept refresh {label}' runs it here."


def configure_logging(*, verbose: bool, info: bool = False) -> None:
    """Log to standard error: warnings, with ``info`` or ``verbose`` more."""
    import logging

    from kept.log import log_to_stderr

    log_to_stderr(logging.DEBUG if verbose else logging.INFO if info else logging.WARNING)
