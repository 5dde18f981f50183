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

from kept.extract.reader_pool.protocol import FRAME_LENGTH, READY_SIGNAL, ReadTask, release_memory, time_limit
from kept.model.document import ParsedPage, Unreadable
from kept.model.source import DEFAULT_REGION, Region

INITIAL_PROCESSES = 2  # processes; more are started when these are behind
MAX_QUEUED_PER_PROCESS = (
    12  # pages in a process's pipe, the one it reads included: enough while the crawl is busy with something else
)
SCALE_UP_QUEUE_LENGTH = 3  # of them: another process would help
WARM_UP_PAGES = 30  # pages
CPU_SECONDS_PER_PAGE = 2.0  # of processor time
WALL_CLOCK_FACTOR = 20  # times as long by the clock, for a reader that waits instead of working
START_TIMEOUT = 120.0
LARGE_PAGE_BYTES = 500_000
MEMORY_LIMIT = 1024 * 1024 * 1024

_START = """
import sys
sys.path[:] = sys.argv[3:]
from kept.extract.reader_pool.process import serve
serve(int(sys.argv[1]), float(sys.argv[2]))
"""

ReadFuture: TypeAlias = "asyncio.Future[ParsedPage | Unreadable]"


class ReaderPool:
    """Some reader processes, started when they are needed."""

    def __init__(self, processes: int, *, seconds: float = CPU_SECONDS_PER_PAGE, memory: int = MEMORY_LIMIT) -> None:
        self._queue_slots = asyncio.Semaphore(processes * MAX_QUEUED_PER_PROCESS)
        self._large_page_lock = asyncio.Lock()  # one at a time: reading it takes thirty times its size
        self._max_processes = processes
        self._seconds = seconds
        self._memory = memory
        self._readers: list[_ReaderProcess] = []
        self._start_lock = asyncio.Lock()
        self._requeue_tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Has some processes load their readers meanwhile, so that they are ready when the first pages come."""
        while len(self._readers) < min(self._max_processes, INITIAL_PROCESSES):
            await self._start_process()

    async def read(
        self, body: bytes, content_type: str, url: str, *, region: Region = DEFAULT_REGION
    ) -> ParsedPage | Unreadable:
        """What the reader for this type makes of it, or why it could not."""
        alone = self._large_page_lock if len(body) > LARGE_PAGE_BYTES else nullcontext()
        async with alone, self._queue_slots:
            answer: ReadFuture = asyncio.get_running_loop().create_future()
            await self._dispatch((body, content_type, url, region), answer)
            return await answer

    async def close(self) -> None:
        for task in self._requeue_tasks:
            task.cancel()
        readers, self._readers = self._readers, []
        for reader in readers:
            reader.kill()
        await asyncio.gather(
            *(reader.exited.wait() for reader in readers), *self._requeue_tasks, return_exceptions=True
        )

    async def _dispatch(self, page: ReadTask, answer: ReadFuture) -> None:
        reader = min(self._readers, key=lambda one: len(one.pending), default=None)
        if reader is None or (reader.is_overloaded and len(self._readers) < self._max_processes):
            reader = await self._start_process()
        reader.send(page, answer)

    async def _start_process(self) -> "_ReaderProcess":
        async with self._start_lock:
            if len(self._readers) >= self._max_processes:
                return min(self._readers, key=lambda one: len(one.pending))
            _, reader = await asyncio.get_running_loop().subprocess_exec(
                lambda: _ReaderProcess(self._seconds, self._replace_process),
                *(sys.executable, "-c", _START, str(self._memory), str(self._seconds), *sys.path),
                stderr=None,
                process_group=0,  # Ctrl-C is for whoever started it
            )
            self._readers.append(reader)
            return reader

    def _replace_process(self, reader: "_ReaderProcess", reason: str) -> None:
        """The page it read is given up, the others go to another."""
        if reader in self._readers:
            self._readers.remove(reader)
        if reader.pending:
            (_, answer), *others = reader.pending
            if not answer.done():
                answer.set_result(Unreadable(reason=reason, is_reader_failure=True))
            task = asyncio.create_task(self._requeue([one for one in others if not one[1].done()]))
            self._requeue_tasks.add(task)
            task.add_done_callback(self._requeue_tasks.discard)

    async def _requeue(self, pages: list[tuple[ReadTask, ReadFuture]]) -> None:
        for page, answer in pages:
            await self._dispatch(page, answer)


class _ReaderProcess(asyncio.SubprocessProtocol):
    """A process, and the pages it was given, in order. ``lost`` is told when it has ended, and why."""

    def __init__(self, seconds: float, on_exit: "Callable[[_ReaderProcess, str], None]") -> None:
        self.pending: deque[tuple[ReadTask, ReadFuture]] = deque()
        self.is_ready = False
        self._pages_read = 0  # pages
        self.exited = asyncio.Event()
        self._seconds = seconds
        self._on_exit = on_exit
        self._received = bytearray()
        self._kill_reason = ""
        self._busy_since = 0.0  # when it began to load, or to read the page at hand
        self._timeout_timer: asyncio.TimerHandle | None = None  # one for many pages: most are read long before it

    @property
    def pid(self) -> int:
        return self._transport.get_pid() or 0

    @property
    def is_overloaded(self) -> bool:
        """Whether another would help. What waited while it was loaded says nothing: that is soon read."""
        return self._pages_read >= WARM_UP_PAGES and len(self.pending) >= SCALE_UP_QUEUE_LENGTH

    def send(self, page: ReadTask, answer: ReadFuture) -> None:
        """Its pipe takes what it has not read yet: so few pages that nobody has to wait for that."""
        self.pending.append((page, answer))
        if len(self.pending) == 1:
            self._restart_timeout()
        frame = pickle.dumps(page, 5)
        self._pipe.write(
            FRAME_LENGTH.pack(len(frame)) + frame
        )  # if it died, whoever it is lost to gives them to another

    def kill(self, reason: str = "") -> None:
        """Ends it, for this reason."""
        self._kill_reason = self._kill_reason or reason
        with suppress(ProcessLookupError):
            self._transport.kill()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.SubprocessTransport, transport)
        self._pipe = cast(asyncio.WriteTransport, self._transport.get_pipe_transport(0))
        self._restart_timeout()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Hands each answer to whoever waits for it."""
        came = self._received
        came += data
        if not self.is_ready and len(came) >= len(READY_SIGNAL):
            del came[: len(READY_SIGNAL)]
            self.is_ready = True
            self._restart_timeout()
        try:
            while self.is_ready and len(came) >= FRAME_LENGTH.size:
                end = FRAME_LENGTH.size + FRAME_LENGTH.unpack_from(came)[0]
                if len(came) < end:
                    break
                with memoryview(came) as view, view[FRAME_LENGTH.size : end] as frame:
                    self._handle_result(pickle.loads(frame))
                del came[:end]
                if end > LARGE_PAGE_BYTES:
                    asyncio.get_running_loop().call_later(1.0, release_memory)
        except Exception as error:  # nobody would ever hear of the page again
            self.kill(f"its reader's answer makes no sense: {type(error).__name__}: {error}")

    def connection_lost(self, exc: Exception | None) -> None:
        """The process has ended, and all that it said was heard."""
        if self._timeout_timer:
            self._timeout_timer.cancel()
        too_long = self._transport.get_returncode() == -signal.SIGPROF
        self._on_exit(self, self._kill_reason or ("reading it took too long" if too_long else "its reader crashed"))
        self.exited.set()

    def _handle_result(self, found: ParsedPage | Unreadable) -> None:
        _, answer = self.pending.popleft()
        self._pages_read += 1
        self._restart_timeout()
        if not answer.done():
            answer.set_result(found)

    def _restart_timeout(self) -> None:
        """What it does now has a time of its own."""
        self._busy_since = monotonic()
        if self._timeout_timer is not None and not self.is_ready:
            self._timeout_timer.cancel()  # it may be more patient than who waits for a page
            self._timeout_timer = None
        if self._timeout_timer is None:
            self._check_timeout()

    def _check_timeout(self) -> None:
        """A reader that has nothing to do may be silent for ever, one that loads or reads a page may not."""
        self._timeout_timer = None
        if self.pending:
            patience = WALL_CLOCK_FACTOR * (1 + time_limit(self._seconds, self.pending[0][0][0]))
        elif not self.is_ready:
            patience = START_TIMEOUT
        else:
            return
        left = self._busy_since + patience - monotonic()
        if left <= 0:
            self.kill("its reader came to a standstill")
        else:
            self._timeout_timer = asyncio.get_running_loop().call_later(left, self._check_timeout)
