"""Programs of the user's that do a part of the work: git, npm, pip. They never outlive the call that started them."""

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from kept.errors import SourceUnavailable

_MAX_MESSAGE_BYTES = 16 * 1024  # of what a program complains, its end


class ProgramFailed(Exception):
    """It ended with an error; ``said`` is what it complained, ``code`` None where it took too long."""

    def __init__(self, message: str, exit_code: int | None) -> None:
        super().__init__("a program failed")  # what it said may be meant for nobody
        self.message = message
        self.exit_code = exit_code


async def run_program(
    *command: str, environment: Mapping[str, str], cwd: Path, seconds: float, stdin_data: bytes = b""
) -> bytes:
    """What the program answers on its standard output. Raises ProgramFailed."""
    process = await start_program(*command, environment=environment, cwd=cwd, capture_stderr=True)
    assert process.stdin is not None, "it is a pipe"
    assert process.stdout is not None, "and so is this"
    assert process.stderr is not None, "and this"
    ended = False
    try:
        async with asyncio.timeout(seconds):
            answer, said, _ = await asyncio.gather(
                process.stdout.read(), _read_tail(process.stderr), _write_stdin(process.stdin, stdin_data)
            )
            await process.wait()
        ended = True
    except TimeoutError:
        raise ProgramFailed(f"it took longer than {seconds:g} s", None) from None
    finally:
        if not ended:
            await kill_program(process)
    if process.returncode:
        raise ProgramFailed(said.decode(errors="replace"), process.returncode)
    return answer


async def start_program(
    *command: str, environment: Mapping[str, str], cwd: Path, capture_stderr: bool = False
) -> Process:
    """A program with its streams as pipes, and a process group of its own."""
    try:
        return await asyncio.create_subprocess_exec(
            *command,
            env=dict(environment),
            cwd=cwd,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE if capture_stderr else DEVNULL,
            start_new_session=True,
        )
    except FileNotFoundError:
        raise SourceUnavailable(f"This needs the program '{command[0]}', which is not installed here.") from None


async def kill_program(process: Process) -> None:
    """Ends it at once, with everything that it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


async def _read_tail(stream: asyncio.StreamReader) -> bytes:
    """The end of what is said, however much that is."""
    said = b""
    while data := await stream.read(_MAX_MESSAGE_BYTES):
        said = (said + data)[-_MAX_MESSAGE_BYTES:]
    return said


async def _write_stdin(stream: asyncio.StreamWriter, data: bytes) -> None:
    with suppress(OSError):
        stream.write(data)
        await stream.drain()
    stream.close()
