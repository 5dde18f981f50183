"""Reading in processes of their own: a page that hangs its reader, or kills it, costs that page and nothing else.

Each process reads one page after the other; the next one waits in its pipe, so that it never runs dry. A process
that takes too long over a page ends itself: by its own processor time, so that a busy machine costs no page. The
pages that waited behind go to another.
"""

import asyncio
import pickle
import signal
import sys
from collections import deque
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field

from kept.extract.process import LENGTH, READY, Page, allowed, give_back
from kept.extract.sections import Unreadable
from kept.model.document import Reading
from kept.model.source import AS_READ, Region

AHEAD = 3  # pages in a process's pipe, the one it reads included
SECONDS = 2.0  # of processor time
PATIENCE = 20  # times as long by the clock, for a reader that waits instead of working
TO_START = 120.0
LARGE = 500_000
MEMORY = 1024 * 1024 * 1024

_START = """
import sys
sys.path[:] = sys.argv[3:]
from kept.extract.process import serve
serve(int(sys.argv[1]), float(sys.argv[2]))
"""


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
            reader.process.stdin.writelines([LENGTH.pack(len(frame)), frame])
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
                await reader.process.stdout.readexactly(len(READY))
            reader.is_ready = True
            while True:
                size = await reader.process.stdout.readexactly(LENGTH.size)
                frame = await reader.process.stdout.readexactly(LENGTH.unpack(size)[0])
                found = pickle.loads(frame)
                _, answer = reader.waiting.popleft()
                self._set_alarm(reader)
                if not answer.done():
                    answer.set_result(found)
                if len(frame) > LARGE:
                    asyncio.get_running_loop().call_later(1.0, give_back)
        except TimeoutError:
            reason = "its reader came to a standstill"
        except (asyncio.IncompleteReadError, ConnectionError):
            ended = await reader.process.wait()
            reason = "reading it took too long" if ended == -signal.SIGPROF else "its reader crashed"
            reason = "its reader came to a standstill" if reader.is_stuck else reason
        except Exception as error:  # nobody would ever hear of the page again
            reason = f"its reader's answer makes no sense: {type(error).__name__}: {error}"
        await self._replace(reader, reason)

    def _set_alarm(self, reader: _Reader) -> None:
        """A reader that has nothing to do may be silent for ever, one that reads a page may not."""
        if reader.alarm:
            reader.alarm.cancel()
        reader.alarm = None
        if reader.waiting:
            patience = PATIENCE * (1 + allowed(self._seconds, reader.waiting[0][0][0]))
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
