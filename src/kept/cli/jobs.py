"""Crawls that wait, run or ran: ``jobs``, ``job``, ``pause``, ``resume``, ``cancel``."""

from collections.abc import Awaitable, Callable

import typer

from kept.cli import options
from kept.cli.command import Call
from kept.cli.show import jobs as show
from kept.service import crawls, shapes
from kept.service.crawls import JobView


async def jobs(context: typer.Context, status: options.Status = None) -> None:
    """List crawls, the latest first.

    \b
    kept jobs
    kept jobs --status processing
    """
    call: Call = context.obj
    async with call.open() as runtime:
        found = await crawls.list_jobs(runtime.db, status=status)
    if call.as_json:
        call.answer({"jobs": [shapes.job(view) for view in found]})
    else:
        show.jobs(call.out, found)


async def job(context: typer.Context, id: options.Job) -> None:
    """Show one crawl: how far it is, who is at it, what went wrong.

    \b
    kept job 01a1e247
    """
    call: Call = context.obj
    async with call.open() as runtime:
        view = await crawls.show_job(runtime.db, id)
    if call.as_json:
        call.answer(shapes.job(view))
    else:
        show.job(call.out, view)


async def pause(context: typer.Context, id: options.Job) -> None:
    """Stop a crawl for now. What it did stays done.

    \b
    kept pause 01a1e247
    """
    await _steer(context, id, crawls.pause_job, "is paused. 'kept resume' lets it go on.")


async def resume(context: typer.Context, id: options.Job) -> None:
    """Let a paused crawl go on, as soon as a worker is free.

    \b
    kept resume 01a1e247
    """
    await _steer(context, id, crawls.resume_job, "waits for a worker.")


async def cancel(context: typer.Context, id: options.Job) -> None:
    """Give a crawl up. What was live stays live.

    \b
    kept cancel 01a1e247
    """
    await _steer(context, id, crawls.cancel_job, "is cancelled.")


async def _steer(context: typer.Context, id: str, verb: Callable[..., Awaitable[JobView]], told: str) -> None:
    call: Call = context.obj
    async with call.open() as runtime:
        view = await verb(runtime.db, id)
    if call.as_json:
        call.answer(shapes.job(view))
    else:
        call.out.line(f"The crawl of {view.source} {told}")
