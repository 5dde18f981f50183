"""The supervisor of a worker process, so that a server stays responsive while pages are read and written."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress

from kept.log import Log

log = Log(__name__)

STOP_GRACE_SECONDS = 12.0  # longer than a worker takes to release its jobs
RESTART_DELAY_SECONDS = 1.0  # before a process that died is started again


async def supervise_process(command: Sequence[str], environment: Mapping[str, str], stop: asyncio.Event) -> None:
    """Run a process until ``stop`` is set, then terminate it. One that dies is started again.

    Its standard input stays open as long as this process lives: when it closes, the child has to end by itself.
    """
    stopping = asyncio.create_task(stop.wait())
    while not stop.is_set():
        # In a session of its own, so that a Ctrl-C reaches only this process, which terminates the child in order.
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.PIPE, env=environment, start_new_session=True
        )
        ending = asyncio.create_task(process.wait())
        await asyncio.wait({ending, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if ending.done() and not stop.is_set():
            log.warning("worker died", code=process.returncode)
            await asyncio.wait({stopping}, timeout=RESTART_DELAY_SECONDS)
        else:
            await _terminate(process, ending)


async def _terminate(process: asyncio.subprocess.Process, ending: "asyncio.Task[int]") -> None:
    with suppress(ProcessLookupError):
        process.terminate()
    await asyncio.wait({ending}, timeout=STOP_GRACE_SECONDS)
    if not ending.done():
        process.kill()
    await ending
