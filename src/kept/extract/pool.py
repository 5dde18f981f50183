"""Reading in processes of their own: a page that hangs its reader, or kills it, costs that page and nothing else.

Each process reads one page after the other; others wait in its pipe, so that it never runs dry. A process
that takes too long over a page ends itself: by its own processor time, so that a busy machine costs no page. The
pages that waited behind go to another.
"""

import asyncio
import pickle
import signal
import sys
from collections import deque
from collections.abc import Callable
from contextlib import nullcontext, suppress
from time import monotonic
from typing import TypeAlias, cast

from kept.extract.frames import LENGTH, READY, Page, allowed, give_back
from kept.model.document import Reading, Unreadable
from kept.model.source import AS_READ, Region

AT_FIRST = 2  # processes; more are started when these are behind
AHEAD = 12  # pages in a process's pipe, the one it reads included: enough while the crawl is busy with something else
BEHIND = 3  # of them: another process would help
SOME = 30  # pages
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

Answer: TypeAlias = "asyncio.Future[Reading | Unreadable]"


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
        self._mending: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Has some processes load their readers meanwhile, so that they are ready when the first pages come."""
        while len(self._readers) < min(self._processes, AT_FIRST):
            await self._start()

    async def read(self, body: bytes, content_type: str, url: str, *, region: Region = AS_READ) -> Reading | Unreadable:
        """What the reader for this type makes of it, or why it could not."""
        alone = self._large if len(body) > LARGE else nullcontext()
        async with alone, self._room:
            answer: Answer = asyncio.get_running_loop().create_future()
            await self._give((body, content_type, url, region), answer)
            return await answer

    async def close(self) -> None:
        for task in self._mending:
            task.cancel()
        readers, self._readers = self._readers, []
        for reader in readers:
            reader.give_up()
        await asyncio.gather(*(reader.gone.wait() for reader in readers), *self._mending, return_exceptions=True)

    async def _give(self, page: Page, answer: Answer) -> None:
        reader = min(self._readers, key=lambda one: len(one.waiting), default=None)
        if reader is None or (reader.is_behind and len(self._readers) < self._processes):
            reader = await self._start()
        reader.give(page, answer)

    async def _start(self) -> "_Reader":
        async with self._starting:
            if len(self._readers) >= self._processes:
                return min(self._readers, key=lambda one: len(one.waiting))
            _, reader = await asyncio.get_running_loop().subprocess_exec(
                lambda: _Reader(self._seconds, self._replace),
                *(sys.executable, "-c", _START, str(self._memory), str(self._seconds), *sys.path),
                stderr=None,
                process_group=0,  # Ctrl-C is for whoever started it
            )
            self._readers.append(reader)
            return reader

    def _replace(self, reader: "_Reader", reason: str) -> None:
        """The page it read is given up, the others go to another."""
        if reader in self._readers:
            self._readers.remove(reader)
        if reader.waiting:
            (_, answer), *others = reader.waiting
            if not answer.done():
                answer.set_result(Unreadable(reason=reason, broke=True))
            task = asyncio.create_task(self._give_again([one for one in others if not one[1].done()]))
            self._mending.add(task)
            task.add_done_callback(self._mending.discard)

    async def _give_again(self, pages: list[tuple[Page, Answer]]) -> None:
        for page, answer in pages:
            await self._give(page, answer)


class _Reader(asyncio.SubprocessProtocol):
    """A process, and the pages it was given, in order. ``lost`` is told when it has ended, and why."""

    def __init__(self, seconds: float, lost: "Callable[[_Reader, str], None]") -> None:
        self.waiting: deque[tuple[Page, Answer]] = deque()
        self.is_ready = False
        self._read = 0  # pages
        self.gone = asyncio.Event()
        self._seconds = seconds
        self._lost = lost
        self._came = bytearray()
        self._reason = ""
        self._since = 0.0  # when it began to load, or to read the page at hand
        self._alarm: asyncio.TimerHandle | None = None  # one for many pages: most are read long before it

    @property
    def pid(self) -> int:
        return self._transport.get_pid() or 0

    @property
    def is_behind(self) -> bool:
        """Whether another would help. What waited while it was loaded says nothing: that is soon read."""
        return self._read >= SOME and len(self.waiting) >= BEHIND

    def give(self, page: Page, answer: Answer) -> None:
        """Its pipe takes what it has not read yet: so few pages that nobody has to wait for that."""
        self.waiting.append((page, answer))
        if len(self.waiting) == 1:
            self._begin()
        frame = pickle.dumps(page, 5)
        self._pipe.write(LENGTH.pack(len(frame)) + frame)  # if it died, whoever it is lost to gives them to another

    def give_up(self, reason: str = "") -> None:
        """Ends it, for this reason."""
        self._reason = self._reason or reason
        with suppress(ProcessLookupError):
            self._transport.kill()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.SubprocessTransport, transport)
        self._pipe = cast(asyncio.WriteTransport, self._transport.get_pipe_transport(0))
        self._begin()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Hands each answer to whoever waits for it."""
        came = self._came
        came += data
        if not self.is_ready and len(came) >= len(READY):
            del came[: len(READY)]
            self.is_ready = True
            self._begin()
        try:
            while self.is_ready and len(came) >= LENGTH.size:
                end = LENGTH.size + LENGTH.unpack_from(came)[0]
                if len(came) < end:
                    break
                with memoryview(came) as view, view[LENGTH.size : end] as frame:
                    self._answered(pickle.loads(frame))
                del came[:end]
                if end > LARGE:
                    asyncio.get_running_loop().call_later(1.0, give_back)
        except Exception as error:  # nobody would ever hear of the page again
            self.give_up(f"its reader's answer makes no sense: {type(error).__name__}: {error}")

    def connection_lost(self, exc: Exception | None) -> None:
        """The process has ended, and all that it said was heard."""
        if self._alarm:
            self._alarm.cancel()
        too_long = self._transport.get_returncode() == -signal.SIGPROF
        self._lost(self, self._reason or ("reading it took too long" if too_long else "its reader crashed"))
        self.gone.set()

    def _answered(self, found: Reading | Unreadable) -> None:
        _, answer = self.waiting.popleft()
        self._read += 1
        self._begin()
        if not answer.done():
            answer.set_result(found)

    def _begin(self) -> None:
        """What it does now has a time of its own."""
        self._since = monotonic()
        if self._alarm is not None and not self.is_ready:
            self._alarm.cancel()  # it may be more patient than who waits for a page
            self._alarm = None
        if self._alarm is None:
            self._watch()

    def _watch(self) -> None:
        """A reader that has nothing to do may be silent for ever, one that loads or reads a page may not."""
        self._alarm = None
        if self.waiting:
            patience = PATIENCE * (1 + allowed(self._seconds, self.waiting[0][0][0]))
        elif not self.is_ready:
            patience = TO_START
        else:
            return
        left = self._since + patience - monotonic()
        if left <= 0:
            self.give_up("its reader came to a standstill")
        else:
            self._alarm = asyncio.get_running_loop().call_later(left, self._watch)
