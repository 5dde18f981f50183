"""Work in a process of its own: whoever is served here need not wait while pages are read and written."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress

from kept.log import Log

log = Log(__name__)

STOP_GRACE_SECONDS = 12.0  # a worker hands back what it has sooner
RESTART_DELAY_SECONDS = 1.0  # before one that died is started again


async def supervise_process(command: Sequence[str], environment: Mapping[str, str], stop: asyncio.Event) -> None:
    """A program runs until ``stop`` is set; then it is told to end, and waited for. One that dies is started again.

    Its standard input stays open as long as we live: when it closes, nobody is left to tell it to end.
    """
    stopping = asyncio.create_task(stop.wait())
    while not stop.is_set():
        # In a session of its own, a Ctrl-C reaches us alone, and we tell it.
        program = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.PIPE, env=environment, start_new_session=True
        )
        ending = asyncio.create_task(program.wait())
        await asyncio.wait({ending, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if ending.done() and not stop.is_set():
            log.warning("worker died", code=program.returncode)
            await asyncio.wait({stopping}, timeout=RESTART_DELAY_SECONDS)
        else:
            await _terminate(program, ending)


async def _terminate(program: asyncio.subprocess.Process, ending: "asyncio.Task[int]") -> None:
    with suppress(ProcessLookupError):
        program.terminate()
    await asyncio.wait({ending}, timeout=STOP_GRACE_SECONDS)
    if not ending.done():
        program.kill()
    await ending
