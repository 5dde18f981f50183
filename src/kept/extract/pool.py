"""Reading in processes of their own: a page that hangs its reader, or kills it, costs that page and nothing else.

Each process reads one page after the other; the next one waits in its pipe, so that it never runs dry. A process
that takes too long over a page ends itself: by its own processor time, so that a busy machine costs no page. The
pages that waited behind go to another.
"""

import asyncio
import gc
import os
import pickle
import signal
import struct
import sys
from collections import deque
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any, BinaryIO, TypeAlias

from kept.extract.sections import Unreadable
from kept.model.document import Reading
from kept.model.source import AS_READ, Region

AHEAD = 3  # pages in a process's pipe, the one it reads included
SECONDS = 2.0  # of processor time
SECONDS_PER_MEGABYTE = 2.0
PATIENCE = 20  # times as long by the clock, for a reader that waits instead of working
TO_START = 120.0
LARGE = 500_000
MANY = 4_000_000  # bytes of pages, after which memory is given back
MEMORY = 1024 * 1024 * 1024

_START = """
import sys
sys.path[:] = sys.argv[3:]
from kept.extract.pool import serve
serve(int(sys.argv[1]), float(sys.argv[2]))
"""

_READY = b"ready"
_LENGTH = struct.Struct("!I")

Page: TypeAlias = tuple[bytes, str, str, Region]  # body, content type, URL, which part of it


@dataclass(slots=True)
class _Reader:
    """A process, and the pages it was given, in order."""

    process: asyncio.subprocess.Process
    waiting: deque[tuple[Page, asyncio.Future[Reading | Unreadable]]] = field(default_factory=deque)
    listening: asyncio.Task[None] | None = None
    alarm: asyncio.TimerHandle | None = None  # set for the page it reads
    is_ready: bool = False
    is_stuck: bool = False


class ReaderPool:
    """Some reader processes, started when they are needed."""

    def __init__(self, processes: int, *, seconds: float = SECONDS, memory: int = MEMORY) -> None:
        self._room = asyncio.Semaphore(processes * AHEAD)
        self._large = asyncio.Lock()  # one at a time: reading it takes thirty times its size
        self._processes = processes
        self._seconds = seconds
        self._memory = memory
        self._readers: list[_Reader] = []
        self._starting = asyncio.Lock()

    async def start(self) -> None:
        """Has one process load its readers meanwhile, so that it is ready when the first page comes."""
        if not self._readers:
            await self._start()

    async def read(self, body: bytes, content_type: str, url: str, *, region: Region = AS_READ) -> Reading | Unreadable:
        """What the reader for this type makes of it, or why it could not."""
        alone = self._large if len(body) > LARGE else nullcontext()
        async with alone, self._room:
            answer: asyncio.Future[Reading | Unreadable] = asyncio.get_running_loop().create_future()
            await self._give((body, content_type, url, region), answer)
            return await answer

    async def close(self) -> None:
        readers, self._readers = self._readers, []
        for reader in readers:
            await self._end(reader)

    async def _give(self, page: Page, answer: asyncio.Future[Reading | Unreadable]) -> None:
        reader = min(self._readers, key=lambda one: len(one.waiting), default=None)
        if reader is None or (self._is_behind(reader) and len(self._readers) < self._processes):
            reader = await self._start()
        reader.waiting.append((page, answer))
        if len(reader.waiting) == 1:
            self._set_alarm(reader)
        frame = pickle.dumps(page, 5)
        assert reader.process.stdin is not None, "it was made with a pipe"
        with suppress(ConnectionError):  # it died: whoever listens to it sees that, and gives its pages to another
            reader.process.stdin.writelines([_LENGTH.pack(len(frame)), frame])
            await reader.process.stdin.drain()

    @staticmethod
    def _is_behind(reader: _Reader) -> bool:
        """Whether another would help. One that still loads says nothing: everything waits for it, for a moment."""
        return reader.is_ready and len(reader.waiting) >= AHEAD

    async def _start(self) -> _Reader:
        async with self._starting:
            if len(self._readers) >= self._processes:
                return min(self._readers, key=lambda one: len(one.waiting))
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", _START, str(self._memory), str(self._seconds), *sys.path),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=64 * 1024 * 1024,
            )
            reader = _Reader(process)
            reader.listening = asyncio.create_task(self._listen(reader))
            self._readers.append(reader)
            return reader

    async def _listen(self, reader: _Reader) -> None:
        """Hands each answer to whoever waits for it, and ends the process when it takes too long or is gone."""
        assert reader.process.stdout is not None, "it was made with a pipe"
        reason = ""
        try:
            async with asyncio.timeout(TO_START):
                await reader.process.stdout.readexactly(len(_READY))
            reader.is_ready = True
            while True:
                size = await reader.process.stdout.readexactly(_LENGTH.size)
                frame = await reader.process.stdout.readexactly(_LENGTH.unpack(size)[0])
                _, answer = reader.waiting.popleft()
                self._set_alarm(reader)
                if not answer.done():
                    answer.set_result(pickle.loads(frame))
                if len(frame) > LARGE:
                    asyncio.get_running_loop().call_later(1.0, give_back)
        except TimeoutError:
            reason = "its reader came to a standstill"
        except (asyncio.IncompleteReadError, ConnectionError):
            ended = await reader.process.wait()
            reason = "reading it took too long" if ended == -signal.SIGPROF else "its reader crashed"
            reason = "its reader came to a standstill" if reader.is_stuck else reason
        await self._replace(reader, reason)

    def _set_alarm(self, reader: _Reader) -> None:
        """A reader that has nothing to do may be silent for ever, one that reads a page may not."""
        if reader.alarm:
            reader.alarm.cancel()
        reader.alarm = None
        if reader.waiting:
            patience = PATIENCE * (1 + _allowed(self._seconds, reader.waiting[0][0][0]))
            reader.alarm = asyncio.get_running_loop().call_later(patience, self._give_up_on, reader)

    def _give_up_on(self, reader: _Reader) -> None:
        reader.is_stuck = True
        with suppress(ProcessLookupError):
            reader.process.kill()

    async def _replace(self, reader: _Reader, reason: str) -> None:
        if reader in self._readers:
            self._readers.remove(reader)
        left = list(reader.waiting)
        reader.waiting.clear()
        await self._end(reader)
        if left:
            (_, answer), *others = left
            if not answer.done():
                answer.set_result(Unreadable(reason=reason, broke=True))
            for page, waiting in others:
                if not waiting.done():
                    await self._give(page, waiting)

    async def _end(self, reader: _Reader) -> None:
        if reader.listening and reader.listening is not asyncio.current_task():
            reader.listening.cancel()
        if reader.alarm:
            reader.alarm.cancel()
        with suppress(ProcessLookupError):
            reader.process.kill()
        await reader.process.wait()


# The other side of the pipe.


def _allowed(seconds: float, body: bytes) -> float:
    return seconds + len(body) / 1_000_000 * SECONDS_PER_MEGABYTE


def serve(memory: int, seconds: float) -> None:
    """Reads pages from standard input until it ends."""
    import resource

    from kept.extract.reader import extractor, read

    extractor("text/html")  # what most pages are; the others are loaded when one comes
    gc.freeze()
    gc.disable()  # pages go as a whole: looking for circles in them would take a tenth of the time

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it decides when it ends
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    source, sink = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not get between the answers
    sink.write(_READY)
    sink.flush()
    unreturned = 0
    while size := source.read(_LENGTH.size):
        page: Page = pickle.loads(source.read(_LENGTH.unpack(size)[0]))
        signal.setitimer(signal.ITIMER_PROF, max(_allowed(seconds, page[0]), 0.001))  # its signal ends the process
        _write(sink, _read(read, page))
        unreturned += len(page[0])
        if unreturned > MANY:
            gc.collect()
            give_back()
            unreturned = 0


def give_back() -> None:
    """Lets the system have what memory pages took; its allocator would keep thirty times the size of a large one."""
    import ctypes

    with suppress(AttributeError, OSError):  # only glibc's has to be asked
        ctypes.CDLL(None).malloc_trim(0)


def _read(read: Any, page: Page) -> Reading | Unreadable:
    body, content_type, url, region = page
    try:
        answer: Reading | Unreadable = read(body, content_type=content_type, url=url, region=region)
        return answer
    except MemoryError:
        return Unreadable(reason="reading it takes more memory than a page may take", broke=True)
    except Exception as error:  # a page that no reader was made for must not end the crawl
        return Unreadable(reason=f"its reader failed: {type(error).__name__}: {error}", broke=True)


def _write(sink: BinaryIO, answer: Reading | Unreadable) -> None:
    frame = pickle.dumps(answer, 5)
    sink.write(_LENGTH.pack(len(frame)) + frame)
    sink.flush()
