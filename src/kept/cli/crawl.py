"""Asks for a crawl, walks it here, shows how it goes and says how it ended."""

import asyncio
import signal
import time
from typing import TYPE_CHECKING

from kept.cli.command import DONE, FAILED, UNDECIDED, Call
from kept.cli.progress import Watch
from kept.cli.words import counts, duration
from kept.model.generation import Generation
from kept.model.job import CrawlJob, CrawlMode, JobStatus
from kept.model.source import Source
from kept.runtime.looking import prepare
from kept.service import crawls, shapes, sources
from kept.service import generations as past

if TYPE_CHECKING:
    from kept.runtime.runtime import Runtime


async def crawl(
    call: Call,
    runtime: "Runtime",
    source: Source,
    *,
    mode: CrawlMode = CrawlMode.REFRESH,
    priority: int = 0,
    wait: bool = True,
) -> int:
    """Has the source crawled and answers how that ended. The exit code for it."""
    log_events(verbose=call.verbose)
    if wait:
        prepare(source.kind)
    await runtime.reap()  # a crawl that was killed goes on; it must not be taken for one that still runs
    job = await crawls.request_crawl(runtime.db, source.label, mode=mode, priority=priority)
    began = time.monotonic()
    if wait:
        job = await _walk(call, runtime, source, job)
    seconds = time.monotonic() - began  # the job's own
    if wait:
        await runtime.deliver()
    generation = await _made(runtime, source, job)
    call.err.line(_told(source.label, job, generation, seconds))
    if wait and runtime.filler:
        from kept.service.finding import vectors_missing

        if missing := await vectors_missing(runtime.db, [source.label]):
            lacking = f"Sections without a vector so far: {missing[source.label]:,}"
            call.err.line(f"{lacking}. Only their words find them, until a worker or the next refresh goes on.")
    if job.held:
        call.err.line(f"  kept activate {source.label}   makes it live all the same")
        call.err.line(f"  kept discard {source.label}    gives it up")
    if call.as_json:
        call.answer(shapes.crawl(source.label, job, generation, seconds))
    if job.held or job.status is JobStatus.PAUSED:
        return UNDECIDED
    return FAILED if job.status in (JobStatus.FAILED, JobStatus.CANCELLED) else DONE


async def stay(call: Call, runtime: "Runtime", source: Source) -> int:
    """Refreshes a folder whenever its files have changed, until a signal."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    call.err.line(f"{source.label}: watching {source.root}; Ctrl-C ends it.")
    call.as_json = False  # one value was answered
    async for _ in runtime.changes(source, stop):
        await crawl(call, runtime, source)
    return DONE


async def _walk(call: Call, runtime: "Runtime", source: Source, job: CrawlJob) -> CrawlJob:
    """The job at its end; if it ran already when it was asked for, the one that follows it."""
    follow = job.again is not None
    try:
        with Watch(call.err, source.label, source.root, live=not call.verbose) as watch:
            job = await runtime.run_job(job, watch)
            if follow:
                last = (await sources.show_source(runtime.db, source.label)).last_job
                if last and last.id != job.id:
                    job = await runtime.run_job(last, watch)
    except asyncio.CancelledError:
        call.err.line(f"{source.label}: stopped. 'kept refresh {source.label}' goes on where it was.")
        raise
    return job


async def _made(runtime: "Runtime", source: Source, job: CrawlJob) -> Generation | None:
    """The generation that a finished job made."""
    if job.status is not JobStatus.COMPLETED:
        return None
    _, found = await past.list_generations(runtime.db, source.label)
    return next((one for one in found if one.number == job.generation), None)


def _told(label: str, job: CrawlJob, generation: Generation | None, seconds: float) -> str:
    """The end of a crawl in a sentence or two."""
    match job.status:
        case JobStatus.COMPLETED if generation and job.held:
            base = f"Generation {generation.base} stays live" if generation.base else "Nothing is live"
            return f"{label}: generation {generation.number} is held: {generation.reason}. {base} until you decide:"
        case JobStatus.COMPLETED if generation:
            told = counts(job.progress.tally) or "no documents were found"
            partial = {
                None: "",
                "limit": " It is partial: a limit was reached.",
                "errors": " It is partial: what could not be read is shown as it was.",
            }[generation.partial]
            return f"{label}: generation {generation.number} is live: {told} in {duration(seconds)}.{partial}"
        case JobStatus.FAILED:
            return f"{label}: the crawl failed: {job.error}"
        case JobStatus.PAUSED:
            return f"{label}: the crawl is paused (job {job.id})."
        case JobStatus.CANCELLED:
            return f"{label}: the crawl was cancelled (job {job.id})."
        case _:
            return f"{label}: a crawl is waiting for a worker (job {job.id}); 'kept refresh {label}' runs it here."


def log_events(*, verbose: bool, info: bool = False) -> None:
    """Events go to standard error: warnings always, everything if it was asked for."""
    import logging

    from kept.log import show_events

    show_events(logging.DEBUG if verbose else logging.INFO if info else logging.WARNING)
