"""``jobs``, ``job``, ``pause``, ``resume`` and ``cancel``."""

from collections.abc import Awaitable, Callable

import typer

from kept.cli import options
from kept.cli.command import CliContext
from kept.cli.views import jobs as show
from kept.service import jobs as jobs_service
from kept.service import serializers
from kept.service.jobs import JobView


async def jobs(context: typer.Context, status: options.JobStatusOption = None) -> None:
    """List crawls, the latest first.

    \b
    kept jobs
    kept jobs --status processing
    """
    cli: CliContext = context.obj
    async with cli.open_runtime() as runtime:
        found = await jobs_service.list_jobs(runtime.db, status=status)
    if cli.as_json:
        cli.print_json({"jobs": [serializers.job(view) for view in found]})
    else:
        show.print_jobs(cli.out, found)


async def job(context: typer.Context, id: options.JobIdArgument) -> None:
    """Show one crawl: how far it is, who is at it, what went wrong.

    \b
    kept job 5f0c41d7
    """
    cli: CliContext = context.obj
    async with cli.open_runtime() as runtime:
        view = await jobs_service.show_job(runtime.db, id)
    if cli.as_json:
        cli.print_json(serializers.job(view))
    else:
        show.print_job(cli.out, view)


async def pause(context: typer.Context, id: options.JobIdArgument) -> None:
    """Stop a crawl for now. What it did stays done.

    \b
    kept pause 5f0c41d7
    """
    await _change_job(context, id, jobs_service.pause_job, "is paused. 'kept resume' lets it go on.")


async def resume(context: typer.Context, id: options.JobIdArgument) -> None:
    """Let a paused crawl go on, as soon as a worker is free.

    \b
    kept resume 5f0c41d7
    """
    await _change_job(context, id, jobs_service.resume_job, "waits for a worker.")


async def cancel(context: typer.Context, id: options.JobIdArgument) -> None:
    """Give a crawl up. What was active stays active.

    \b
    kept cancel 5f0c41d7
    """
    await _change_job(context, id, jobs_service.cancel_job, "is cancelled.")


async def _change_job(context: typer.Context, id: str, verb: Callable[..., Awaitable[JobView]], message: str) -> None:
    cli: CliContext = context.obj
    async with cli.open_runtime() as runtime:
        view = await verb(runtime.db, id)
    if cli.as_json:
        cli.print_json(serializers.job(view))
    else:
        cli.out.line(f"The crawl of {view.source} {message}")
