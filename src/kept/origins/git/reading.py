"""The bytes of files in a copy: one ``git cat-file`` that answers as long as it is asked."""

import asyncio
from asyncio.subprocess import Process
from pathlib import Path

from kept.origins.git.program import Git
from kept.origins.programs import end, start
from kept.origins.tree import NotHad, TooLarge

_PIECE = 1024 * 1024


class BlobReader:
    def __init__(self, folder: Path, git: Git, *, most: int, seconds: float) -> None:
        self._folder = folder
        self._git = git
        self._most = most
        self._seconds = seconds
        self._process: Process | None = None
        self._turn = asyncio.Lock()

    async def read(self, blob: str) -> bytes:
        """The bytes of a blob. Raises TooLarge or NotHad."""
        async with self._turn:
            answered = False
            try:
                async with asyncio.timeout(self._seconds):
                    body = await self._ask(blob)
                answered = True
            except (OSError, EOFError, ValueError, TimeoutError):
                raise NotHad("git could not read it") from None
            finally:
                if not answered:  # what it says next would be taken for another file
                    await self._end()
        if body is None:
            raise TooLarge
        return body

    async def close(self) -> None:
        async with self._turn:
            await self._end()

    async def _ask(self, blob: str) -> bytes | None:
        if self._process is None:
            self._process = await start(
                "git", "cat-file", "--batch", environment=self._git.within(self._folder), folder=self._folder
            )
        process = self._process
        assert process.stdin is not None, "it is a pipe"
        assert process.stdout is not None, "and so is this"
        process.stdin.write(f"{blob}\n".encode())
        await process.stdin.drain()
        head = (await process.stdout.readuntil(b"\n")).split()
        if len(head) != 3 or head[1] != b"blob":
            raise ValueError("no blob")
        left = int(head[2]) + 1
        if left - 1 <= self._most:
            return (await process.stdout.readexactly(left))[:-1]
        while left:
            left -= len(await process.stdout.readexactly(min(left, _PIECE)))
        return None

    async def _end(self) -> None:
        if self._process:
            process, self._process = self._process, None
            await end(process)
