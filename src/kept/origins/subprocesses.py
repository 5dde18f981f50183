"""Runs the user's programs (git, npm, pip). No process outlives the call that started it."""

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from pathlib import Path

from kept.errors import SourceUnavailable

# What a program needs to run at all, and nothing that leads it to the user's configuration, keys or proxies.
_NEUTRAL_VARIABLES = frozenset({
    "PATH", "LANG", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "LD_LIBRARY_PATH", "GIT_EXEC_PATH",
    "GIT_SSL_CAINFO", "GIT_SSL_CAPATH",
})  # fmt: skip
_NO_FOLDER = "/dev/null"  # as a folder: it has no files, and none can be made in it

_MAX_STDERR_BYTES = 16 * 1024  # the last part of it
_CHUNK_BYTES = 64 * 1024


class ProgramFailed(Exception):
    """A program ended with an error; ``message`` is its stderr. ``exit_code`` is None where it took too long."""

    def __init__(self, message: str, exit_code: int | None) -> None:
        super().__init__("a program failed")  # without the message, which may hold secrets
        self.message = message
        self.exit_code = exit_code


def make_neutral_environment(user_environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without the user's home, and so without their configuration and credentials."""
    environment = {name: value for name, value in user_environment.items() if name in _NEUTRAL_VARIABLES}
    folders = dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"), _NO_FOLDER)
    return environment | folders | {"KRB5CCNAME": f"FILE:{_NO_FOLDER}"}


async def run_program(
    *command: str, environment: Mapping[str, str], cwd: Path, seconds: float, stdin_data: bytes = b""
) -> bytes:
    """Run a program and return its standard output. Raises ProgramFailed."""
    process = await start_program(*command, environment=environment, cwd=cwd, capture_stderr=True)
    assert process.stdin is not None, "stdin is a pipe"
    assert process.stdout is not None, "stdout is a pipe"
    assert process.stderr is not None, "stderr is a pipe"
    ended = False
    try:
        async with asyncio.timeout(seconds):
            output, message, _ = await asyncio.gather(
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
        raise ProgramFailed(message.decode(errors="replace"), process.returncode)
    return output


async def stream_program(
    *command: str, environment: Mapping[str, str], cwd: Path, seconds: float
) -> AsyncGenerator[bytes, None]:
    """Run a program and yield its output as it comes. Raises ProgramFailed. Close it to stop the program early."""
    process = await start_program(*command, environment=environment, cwd=cwd, capture_stderr=True)
    assert process.stdin is not None, "stdin is a pipe"
    assert process.stdout is not None, "stdout is a pipe"
    assert process.stderr is not None, "stderr is a pipe"
    process.stdin.close()
    message, ended = asyncio.create_task(_read_tail(process.stderr)), False
    deadline = asyncio.get_running_loop().time() + seconds
    try:
        while data := await asyncio.wait_for(process.stdout.read(_CHUNK_BYTES), _left(deadline)):
            yield data
            await asyncio.sleep(0)  # a read that need not wait would let nothing else run
        await asyncio.wait_for(process.wait(), _left(deadline))
        ended = True
    except TimeoutError:
        raise ProgramFailed(f"it took longer than {seconds:g} s", None) from None
    finally:
        if not ended:
            message.cancel()
            await asyncio.gather(message, return_exceptions=True)
            await kill_program(process)
    if process.returncode:
        raise ProgramFailed((await message).decode(errors="replace"), process.returncode)


def _left(deadline: float) -> float:
    return max(0.0, deadline - asyncio.get_running_loop().time())


async def start_program(
    *command: str, environment: Mapping[str, str], cwd: Path, capture_stderr: bool = False
) -> Process:
    """Start a program with pipes for its streams, in a process group of its own."""
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
    """Kill a program and every process that it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for stream in (
        process.stdout,
        process.stderr,
    ):  # asyncio waits for the end of pipes, which a full one never reports
        while stream and await stream.read(_CHUNK_BYTES):
            pass
    await process.wait()


async def _read_tail(stream: asyncio.StreamReader) -> bytes:
    """Read a stream to its end and return the last part."""
    tail = b""
    while data := await stream.read(_MAX_STDERR_BYTES):
        tail = (tail + data)[-_MAX_STDERR_BYTES:]
    return tail


async def _write_stdin(stream: asyncio.StreamWriter, data: bytes) -> None:
    with suppress(OSError):
        stream.write(data)
        await stream.drain()
    stream.close()
