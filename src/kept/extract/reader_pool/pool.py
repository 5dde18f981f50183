"""A pool of reader processes: a page that hangs or crashes its reader costs that page and nothing else.

Each process reads one page after the other; more pages wait in its pipe, so that it is never idle. A process that takes
too long for a page ends itself, measured in CPU time, so that no page fails because the machine is busy. The pages that
waited behind it go to another process.
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

from kept.errors import SourceUnavailable
from kept.extract.reader_pool.protocol import FRAME_LENGTH, READY_SIGNAL, ReadTask, release_memory, time_limit
from kept.model.companions import NO_COMPANIONS, Companions
from kept.model.document import ParsedPage, Unreadable
from kept.model.source import DEFAULT_REGION, Region

INITIAL_PROCESSES = 2  # more are started when these are overloaded
MAX_QUEUED_PER_PROCESS = 12  # including the page it reads: enough while the crawl is busy with something else
SCALE_UP_QUEUE_LENGTH = 3  # queued pages at which another process would help
WARM_UP_PAGES = 30  # pages that a process reads before its queue length counts
CPU_SECONDS_PER_PAGE = 2.0
WALL_CLOCK_FACTOR = 20  # wall-clock limit in units of the CPU limit, for a reader that hangs without working
START_TIMEOUT = 120.0
MAX_FAILED_STARTS = 3
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
    """Reader processes, started when they are needed."""

    def __init__(self, processes: int, *, seconds: float = CPU_SECONDS_PER_PAGE, memory: int = MEMORY_LIMIT) -> None:
        self._queue_slots = asyncio.Semaphore(processes * MAX_QUEUED_PER_PROCESS)
        self._large_page_lock = asyncio.Lock()  # one at a time: reading takes thirty times its size
        self._max_processes = processes
        self._seconds = seconds
        self._memory = memory
        self._readers: list[_ReaderProcess] = []
        self._start_lock = asyncio.Lock()
        self._failed_starts = 0  # one after the other
        self._requeue_tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Start the first processes, so that they are ready when the first pages come."""
        while len(self._readers) < min(self._max_processes, INITIAL_PROCESSES):
            await self._start_process()

    async def read(
        self,
        body: bytes,
        content_type: str,
        url: str,
        *,
        region: Region = DEFAULT_REGION,
        companions: Companions = NO_COMPANIONS,
    ) -> ParsedPage | Unreadable:
        """Return the parsed page, or why it cannot be read."""
        alone = self._large_page_lock if len(body) > LARGE_PAGE_BYTES else nullcontext()
        async with alone, self._queue_slots:
            future: ReadFuture = asyncio.get_running_loop().create_future()
            await self._dispatch((body, content_type, url, region, companions), future)
            return await future

    async def close(self) -> None:
        for task in self._requeue_tasks:
            task.cancel()
        readers, self._readers = self._readers, []
        for reader in readers:
            reader.kill()
        await asyncio.gather(
            *(reader.exited.wait() for reader in readers), *self._requeue_tasks, return_exceptions=True
        )

    async def _dispatch(self, task: ReadTask, future: ReadFuture) -> None:
        reader = min(self._readers, key=lambda reader: len(reader.pending), default=None)
        if reader is None or (reader.is_overloaded and len(self._readers) < self._max_processes):
            reader = await self._start_process()
        reader.send(task, future)

    async def _start_process(self) -> "_ReaderProcess":
        async with self._start_lock:
            if len(self._readers) >= self._max_processes:
                return min(self._readers, key=lambda reader: len(reader.pending))
            _, reader = await asyncio.get_running_loop().subprocess_exec(
                lambda: _ReaderProcess(self._seconds, self._replace_process),
                *(sys.executable, "-c", _START, str(self._memory), str(self._seconds), *sys.path),
                stderr=None,
                process_group=0,  # Ctrl-C goes to the parent only
            )
            self._readers.append(reader)
            return reader

    def _replace_process(self, reader: "_ReaderProcess", reason: str) -> None:
        """Give up the page that the process was reading, and send those behind it to another process."""
        is_closing = reader not in self._readers
        if not is_closing:
            self._readers.remove(reader)
            self._failed_starts = self._failed_starts + 1 if reader.has_failed_to_start else 0
        if self._failed_starts >= MAX_FAILED_STARTS:
            # It is not the page: all of them would be called unreadable, one after the other.
            for _, future in reader.pending:
                if not future.done():
                    future.set_exception(
                        SourceUnavailable("The process that reads pages does not start. Has it enough memory?")
                    )
        elif reader.pending:
            queued = list(reader.pending)
            if is_closing or not reader.has_failed_to_start:
                _, future = queued.pop(0)
                if not future.done():
                    future.set_result(Unreadable(reason=reason, is_reader_failure=True))
            requeue = asyncio.create_task(
                self._requeue([(task, future) for task, future in queued if not future.done()])
            )
            self._requeue_tasks.add(requeue)
            requeue.add_done_callback(self._requeue_tasks.discard)

    async def _requeue(self, tasks: list[tuple[ReadTask, ReadFuture]]) -> None:
        for task, future in tasks:
            await self._dispatch(task, future)


class _ReaderProcess(asyncio.SubprocessProtocol):
    """A process and its queued pages, in order. ``on_exit`` is called with the reason when it has ended."""

    def __init__(self, seconds: float, on_exit: "Callable[[_ReaderProcess, str], None]") -> None:
        self.pending: deque[tuple[ReadTask, ReadFuture]] = deque()
        self.is_ready = False
        self._pages_read = 0
        self.exited = asyncio.Event()
        self._seconds = seconds
        self._on_exit = on_exit
        self._received = bytearray()
        self._kill_reason = ""
        self._busy_since = 0.0  # when it began to start, or to read the current page
        self._timeout_timer: asyncio.TimerHandle | None = (
            None  # not restarted for each page: most are read long before it
        )

    @property
    def pid(self) -> int:
        return self._transport.get_pid() or 0

    @property
    def has_failed_to_start(self) -> bool:
        """Whether it ended by itself before it was ready."""
        return not self.is_ready and not self._kill_reason

    @property
    def is_overloaded(self) -> bool:
        """Return whether another process would help. The queue at its start does not count: it is soon read."""
        return self._pages_read >= WARM_UP_PAGES and len(self.pending) >= SCALE_UP_QUEUE_LENGTH

    def send(self, task: ReadTask, future: ReadFuture) -> None:
        """Queue a page in its pipe. So few are queued that writing does not block."""
        self.pending.append((task, future))
        if len(self.pending) == 1:
            self._restart_timeout()
        frame = pickle.dumps(task, 5)
        self._pipe.write(FRAME_LENGTH.pack(len(frame)) + frame)  # if it has died, on_exit requeues the page

    def kill(self, reason: str = "") -> None:
        """End the process. The reason becomes that of the page it reads."""
        self._kill_reason = self._kill_reason or reason
        with suppress(ProcessLookupError):
            self._transport.kill()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.SubprocessTransport, transport)
        self._pipe = cast(asyncio.WriteTransport, self._transport.get_pipe_transport(0))
        self._restart_timeout()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Resolve the future of each result that is complete."""
        received = self._received
        received += data
        if not self.is_ready and len(received) >= len(READY_SIGNAL):
            del received[: len(READY_SIGNAL)]
            self.is_ready = True
            self._restart_timeout()
        try:
            while self.is_ready and len(received) >= FRAME_LENGTH.size:
                end = FRAME_LENGTH.size + FRAME_LENGTH.unpack_from(received)[0]
                if len(received) < end:
                    break
                with memoryview(received) as view, view[FRAME_LENGTH.size : end] as frame:
                    self._handle_result(pickle.loads(frame))
                del received[:end]
                if end > LARGE_PAGE_BYTES:
                    asyncio.get_running_loop().call_later(1.0, release_memory)
        except Exception as error:  # else the page would wait for ever
            self.kill(f"its reader sent an invalid result: {type(error).__name__}: {error}")

    def connection_lost(self, exc: Exception | None) -> None:
        """Report the exit. Called after the process has ended and all of its output was received."""
        if self._timeout_timer:
            self._timeout_timer.cancel()
        timed_out = self._transport.get_returncode() == -signal.SIGPROF
        self._on_exit(self, self._kill_reason or ("reading it took too long" if timed_out else "its reader crashed"))
        self.exited.set()

    def _handle_result(self, result: ParsedPage | Unreadable) -> None:
        _, future = self.pending.popleft()
        self._pages_read += 1
        self._restart_timeout()
        if not future.done():
            future.set_result(result)

    def _restart_timeout(self) -> None:
        """Begin the time limit of a new task: starting, or the next page."""
        self._busy_since = monotonic()
        if self._timeout_timer is not None and not self.is_ready:
            self._timeout_timer.cancel()  # it was set for the start, which may take longer than a page
            self._timeout_timer = None
        if self._timeout_timer is None:
            self._check_timeout()

    def _check_timeout(self) -> None:
        """Kill the process if it exceeds the time limit of its task; an idle one has none."""
        self._timeout_timer = None
        if self.pending:
            limit = WALL_CLOCK_FACTOR * (1 + time_limit(self._seconds, self.pending[0][0]))
        elif not self.is_ready:
            limit = START_TIMEOUT
        else:
            return
        left = self._busy_since + limit - monotonic()
        if left <= 0:
            self.kill("its reader hung")
        else:
            self._timeout_timer = asyncio.get_running_loop().call_later(left, self._check_timeout)
