"""``worker``: takes crawls as they come, until it is told to stop."""

import asyncio
import os
import signal

import typer

from kept.cli import options
from kept.cli.command import Call
from kept.cli.crawl import log_events

BEHIND = 5  # so much nicer than the server that it stands behind


async def worker(
    context: typer.Context,
    name: options.WorkerName = None,
    concurrency: options.WorkerConcurrency = 2,
    behind: options.Behind = False,
) -> None:
    """Run crawls that others ask for, several at once, until a signal.

    It keeps house meanwhile: crawls of dead workers go on, and what is no longer needed is deleted. Interrupted, it
    finishes the batch at hand and gives its crawls back; a second time, it stops at once.

    \b
    kept --database postgresql://kept@db/kept worker --concurrency 4
    """
    call: Call = context.obj
    log_events(verbose=call.verbose, info=True)
    stop = stop_on_signal()
    if behind:
        _stand_behind()
    async with call.open(create=True) as runtime:
        done = await runtime.work(stop, name=name, concurrency=concurrency)
    if call.as_json:
        call.answer({"jobs": done})


def _stand_behind() -> None:
    """Whoever is served comes first. A server that was killed takes this worker with it: the next one goes on."""
    os.nice(BEHIND)
    asyncio.get_running_loop().add_reader(0, os._exit, 1)


def stop_on_signal() -> asyncio.Event:
    """Set at the first SIGINT or SIGTERM; at the second the process ends at once."""
    stop = asyncio.Event()

    def interrupted(number: int) -> None:
        if stop.is_set():
            os._exit(128 + number)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, interrupted, number)
    return stop
