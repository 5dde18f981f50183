"""Reads blobs of a clone through one long-running ``git cat-file --batch``."""

import asyncio
from asyncio.subprocess import Process
from pathlib import Path

from kept.origins.file_tree import FileTooLarge, FileUnavailable
from kept.origins.git.program import Git
from kept.origins.subprocesses import kill_program, start_program

_CHUNK_BYTES = 1024 * 1024


class BlobReader:
    def __init__(self, folder: Path, git: Git, *, max_bytes: int, seconds: float) -> None:
        self._folder = folder
        self._git = git
        self._max_bytes = max_bytes
        self._seconds = seconds
        self._process: Process | None = None
        self._lock = asyncio.Lock()

    async def read(self, blob: str) -> bytes:
        """Return the bytes of a blob. Raises FileTooLarge or FileUnavailable."""
        async with self._lock:
            is_complete = False
            try:
                async with asyncio.timeout(self._seconds):
                    body = await self._read_blob(blob)
                is_complete = True
            except (OSError, EOFError, ValueError, TimeoutError):
                raise FileUnavailable("git could not read it") from None
            finally:
                if not is_complete:  # the rest of its output would be taken for another file
                    await self._stop()
        if body is None:
            raise FileTooLarge
        return body

    async def close(self) -> None:
        async with self._lock:
            await self._stop()

    async def _read_blob(self, blob: str) -> bytes | None:
        if self._process is None:
            self._process = await start_program(
                "git", "cat-file", "--batch", environment=self._git.environment_in(self._folder), cwd=self._folder
            )
        process = self._process
        assert process.stdin is not None, "stdin is a pipe"
        assert process.stdout is not None, "stdout is a pipe"
        process.stdin.write(f"{blob}\n".encode())
        await process.stdin.drain()
        head = (await process.stdout.readuntil(b"\n")).split()
        if len(head) != 3 or head[1] != b"blob":
            raise ValueError("not a blob")
        left = int(head[2]) + 1
        if left - 1 <= self._max_bytes:
            return (await process.stdout.readexactly(left))[:-1]
        while left:
            left -= len(await process.stdout.readexactly(min(left, _CHUNK_BYTES)))
        return None

    async def _stop(self) -> None:
        if self._process:
            process, self._process = self._process, None
            await kill_program(process)
