"""``worker``: runs crawls from the queue until a signal."""

import asyncio
import os
import signal

import typer

from kept.cli import options
from kept.cli.command import CliContext
from kept.cli.run_crawl import configure_logging

BACKGROUND_NICENESS = 5  # added to the niceness of the server that started it


async def worker(
    context: typer.Context,
    name: options.WorkerNameOption = None,
    concurrency: options.WorkerConcurrencyOption = 2,
    behind: options.BehindOption = False,
) -> None:
    """Run crawls that others ask for, several at once, until a signal.

    It also does maintenance: crawls of dead workers go on, and what is no longer needed is deleted. Interrupted, it
    finishes the batch at hand and gives its crawls back; a second time, it stops at once.

    \b
    kept --database postgresql://kept@db/kept worker --concurrency 4
    """
    cli: CliContext = context.obj
    configure_logging(verbose=cli.verbose, info=True)
    stop = stop_on_signal()
    if behind:
        _run_behind_server()
    async with cli.open_runtime(create=True) as runtime:
        done = await runtime.worker_host.run_worker(stop, name=name, concurrency=concurrency)
    if cli.as_json:
        cli.print_json({"jobs": done})


def _run_behind_server() -> None:
    """Lower the priority of this process, and end it with the server that started it."""
    os.nice(BACKGROUND_NICENESS)
    asyncio.get_running_loop().add_reader(0, os._exit, 1)


def stop_on_signal() -> asyncio.Event:
    """Return an event that the first SIGINT or SIGTERM sets. The second one ends the process."""
    stop = asyncio.Event()

    def interrupted(number: int) -> None:
        if stop.is_set():
            os._exit(128 + number)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, interrupted, number)
    return stop
