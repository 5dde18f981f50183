"""Run crawls in processes that are killed at chosen points.

    with Crawlers() as crawlers:
        crawlers.warm(folder)                                       # reading a page is not tested here
        run = crawlers.crawl(Order(url=…, root=…, visits=…, crash=Point("settle_entry", "before", 3)))

Every named statement is a crash point, and so is every commit: a process kills itself before the k-th execution of
NAME, after it, or (where a statement is run for many rows) half-way through its rows. So is every write of SQLite to
its disk, where a page may also be written only half. The product has no code for this: the connections of the store,
and SQLite's file system layer, are wrapped here. With strace, every system call is a crash point as well.

A crawling process is forked from one that has imported everything, so that a round takes no longer than the crawl. It
does what `kept add` does: open the database, add the source, resume its job or enqueue one.
"""

import asyncio
import gc
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, Literal, Self

from tests.sites.manual import Site, manual

Side = Literal["before", "within", "after"]

COMMIT = "commit"
MIGRATING = "a statement of a migration"
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
BATCH = 60  # pages: small, so that a crawl of a few hundred pages has several of each kind of transaction


@dataclass(frozen=True, slots=True)
class Point:
    """A crash point: the k-th execution of a statement."""

    name: str
    side: Side
    k: int

    def __str__(self) -> str:
        return f"{self.side} {self.name} no. {self.k}"


@dataclass(frozen=True, slots=True)
class Write:
    """A crash point: SQLite's n-th write, sync, truncation or deletion of a file."""

    n: int
    torn: bool = False  # only half is written

    def __str__(self) -> str:
        return f"{'half-way through' if self.torn else 'before'} write no. {self.n}"


@dataclass(frozen=True, slots=True)
class Call:
    """A crash point of strace: the n-th of certain system calls, counted by thread."""

    calls: str
    n: int

    def __str__(self) -> str:
        return f"at call no. {self.n}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A crawl to run in a process of its own."""

    url: str
    root: str | None  # as typed by a user; None: only open the database
    visits: str = os.devnull  # the file to which every visited URL of a folder is appended
    last_job: str | None = None  # the previous job; the crawl is done when a later one has ended
    crash: Point | None = None
    write: Write | None = None
    kill_after: float | None = None  # seconds
    longest_file: int | None = None  # bytes: writes beyond it fail
    inject: str | None = None  # faults, as strace takes them; with SQLite only for the files of the database
    traced: str = os.devnull  # the file to which strace writes the calls that it could make fail


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The result of the process."""

    killed: bool
    error: str | None = None
    executed: list[str] = field(default_factory=list)  # statements and commits, in order
    many: list[Any] = field(default_factory=list)  # which executions (name, k) were for several rows at once
    writes: int = 0  # counted only if the crash point is a write
    seconds: float = 0.0
    first_batch: float = 0.0  # seconds, until it was being settled


class Crawlers:
    """A process that forks crawling processes, one after the other."""

    def __enter__(self) -> Self:
        self._errors = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.crawler"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env=ENVIRONMENT,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()
        self._errors.close()

    def warm(self, folder: Path) -> None:
        """Read every file once, for all later processes."""
        self._ask({"warm": str(folder)})

    def warm_site(self, site: Site) -> None:
        """Read every page of a manual once, for all later processes."""
        self._ask({"warm_site": site.origin, "pages": site.pages, "revised": site.revised})

    def crawl(self, order: Order) -> Run:
        return Run(**self._ask(asdict(order)))

    def open_at_once(self, url: str, processes: int) -> list[str | None]:
        """Open the database in several processes at the same moment. Returns the error of each, if any."""
        return list(self._ask({"open": url, "processes": processes})["errors"])

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        to, back = self._process.stdin, self._process.stdout
        assert to is not None
        assert back is not None
        to.write(json.dumps(request) + "\n")
        to.flush()
        answer = back.readline()
        if not answer:
            self._errors.seek(0)
            raise RuntimeError(f"the process that forks crawlers is gone: {self._errors.read()}")
        return dict(json.loads(answer))


def kept(url: str, *arguments: str, longest_file: int | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command of the CLI."""

    def limit() -> None:
        if longest_file is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (longest_file, resource.RLIM_INFINITY))

    return subprocess.run(
        [sys.executable, "-m", "kept", "--database", url, *arguments],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limit,
    )


# From here on: in the process that forks, and in its children -----------------------------------------------------


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of the product must not mix with ours
    read_files_once, read_once = _prepare()
    gc.disable()  # a collection would copy every page of memory that a child shares with us
    for line in sys.stdin:
        request = json.loads(line)
        if folder := request.get("warm"):
            read_files_once(Path(folder))
            answer: dict[str, Any] = {}
        elif origin := request.get("warm_site"):
            for path, reply in manual(request["pages"], revised=request["revised"]).items():
                read_once(reply.body, content_type=reply.content_type, url=origin + path)
            answer = {}
        elif url := request.get("open"):
            answer = {"errors": _open_at_once(url, request["processes"])}
        else:
            crash, write = request.pop("crash"), request.pop("write")
            answer = _fork(
                Order(**request, crash=Point(**crash) if crash else None, write=Write(**write) if write else None)
            )
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _prepare() -> tuple[Callable[[Path], None], Callable[..., Any]]:
    """Import everything once, and cache the reading of pages."""
    import logging

    import kept.extract.reader as reader
    import kept.extract.reader_pool.pool as pool
    from kept.crawl import abandon, entry_leases, full_listing, pipeline
    from kept.model.url import file_url

    logging.getLogger("kept").setLevel(logging.ERROR)
    pipeline.BATCH_PAGES = entry_leases.LEASE_BATCH_SIZE = BATCH
    full_listing.LISTING_BATCH_SIZE = 2 * BATCH
    abandon.CLEAR_BATCH_SIZE = BATCH // 4
    reader.pipeline_signature()  # imports every reader
    read, known = reader.parse_page, {}

    def read_once(body: bytes, *, content_type: str, url: str) -> Any:
        key = (body, content_type, url)
        if key not in known:
            known[key] = read(body, content_type=content_type, url=url)
        return known[key]

    def read_all(folder: Path) -> None:
        for path in folder.rglob("*.md"):
            content_type = reader.guess_content_type(str(path))
            assert content_type is not None, "Markdown can be read"
            read_once(path.read_bytes(), content_type=content_type, url=file_url(str(path)))

    async def read_here(self: Any, body: bytes, content_type: str, url: str, **region: Any) -> Any:
        return read_once(body, content_type=content_type, url=url)

    async def start_nothing(self: Any) -> None: ...

    reader.parse_page = read_once
    pool.ReaderPool.read = read_here  # type: ignore[method-assign]
    pool.ReaderPool.start = start_nothing  # type: ignore[method-assign]
    return read_all, read_once


def _fork(order: Order) -> dict[str, Any]:
    began = time.monotonic()
    receiving, sending = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(receiving)
        with os.fdopen(sending, "w") as answer:
            _be_a_crawler(order, answer)
        os._exit(0)
    os.close(sending)
    tracer = _trace(pid, order) if order.inject else None
    executioner = threading.Timer(order.kill_after or 0, os.kill, (pid, signal.SIGKILL))
    if order.kill_after is not None:
        executioner.start()
    with os.fdopen(receiving) as answer:
        output = answer.read()
    # Its process id may be reused once it was waited for: by then nothing may want to kill it any more.
    executioner.cancel()
    if order.kill_after is not None:
        executioner.join()
    _, status = os.waitpid(pid, 0)
    if tracer:
        tracer.wait()
    killed = os.WIFSIGNALED(status)
    found = {"killed": killed, "seconds": time.monotonic() - began} | _parse_output(output, killed)
    if found.get("first_batch"):
        found["first_batch"] -= began
    return found


def _parse_output(output: str, killed: bool) -> dict[str, Any]:
    """Return the output of a crawler; empty if it was killed before the end of it."""
    try:
        answer: dict[str, Any] = json.loads(output) if output else {}
    except ValueError:
        if not killed:
            raise
        return {}
    return answer


def _trace(pid: int, order: Order) -> subprocess.Popen[bytes]:
    """Attach strace to the process, which waits for it."""
    os.waitpid(pid, os.WUNTRACED)
    assert order.inject is not None
    path, calls = order.url.removeprefix("sqlite:///"), order.inject.partition(":")[0]
    files = [part for suffix in ("", "-wal", "-shm") for part in ("-P", path + suffix)] if path != order.url else []
    faults = ["-e", f"trace={calls}", "-e", f"inject={order.inject}"]
    tracer = subprocess.Popen(["strace", "-f", "-qq", "-o", order.traced, *files, *faults, "-p", str(pid)])
    while "TracerPid:\t0\n" in Path(f"/proc/{pid}/status").read_text():
        if tracer.poll() is not None:
            os.kill(pid, signal.SIGKILL)
            break
        time.sleep(0.001)  # strace does not announce that it is attached
    os.kill(pid, signal.SIGCONT)
    return tracer


def _be_a_crawler(order: Order, answer: IO[str]) -> None:
    if order.inject:
        _let_others_trace()
        os.kill(os.getpid(), signal.SIGSTOP)
    if order.longest_file is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (order.longest_file, resource.RLIM_INFINITY))
    points = CrashPoints(order.crash)
    points.wrap()
    writes = Disk(order.write).wrap() if order.write else None
    error = None
    try:
        _log_visits(order.visits)
        asyncio.run(crawl(order.url, order.root, order.last_job) if order.root else _open(order.url))
    except Exception as raised:
        error = _error_text(raised)
    output = {
        "error": error,
        "executed": points.executed,
        "many": points.many,
        "first_batch": points.first_batch,
        "writes": writes.n if writes else 0,
    }
    json.dump(output, answer)


async def _open(url: str) -> None:
    from kept.store.database import open_database

    await (await open_database(url)).close()


def _open_at_once(url: str, processes: int) -> list[str | None]:
    waiting, go = os.pipe()
    children = []
    for _ in range(processes):
        receiving, sending = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(go)
            os.read(waiting, 1)  # until the last writer is gone
            error = None
            try:
                asyncio.run(_open(url))
            except Exception as raised:
                error = _error_text(raised)
            os.write(sending, json.dumps(error).encode())
            os._exit(0)
        os.close(sending)
        children.append((pid, receiving))
    os.close(waiting)
    os.close(go)
    errors = []
    for pid, receiving in children:
        with os.fdopen(receiving) as output:
            errors.append(json.loads(output.read() or '"it died"'))
        os.waitpid(pid, 0)
    return errors


def _error_text(error: Exception) -> str:
    """Return the message of an error that is meant for users, or the whole traceback."""
    from kept.errors import KeptError

    if isinstance(error, KeptError):
        return f"{type(error).__name__}: {error}"
    return "".join(traceback.format_exception(error))


def _let_others_trace() -> None:
    """Allow any process to trace this one: some systems allow only ancestors, and strace is a sibling."""
    import ctypes

    pr_set_ptracer, anybody = 0x59616D61, ctypes.c_ulong(-1)
    ctypes.CDLL(None).prctl(pr_set_ptracer, anybody, 0, 0, 0)


async def crawl(url: str, root: str, last_job: str | None = None, heartbeat: float = 0.03) -> None:
    """Do what `kept add` does: resume the interrupted crawl, or enqueue one."""
    from kept import settings
    from kept.jobs import worker
    from kept.model.job import JobStatus
    from kept.model.root import parse_root
    from kept.model.source import Access, SourceKind, SourceSettings, host_and_port
    from kept.runtime.runtime import open_runtime
    from kept.service import jobs, sources

    worker.MAX_MISSED_HEARTBEATS = 1000  # a busy machine misses such quick ones, and the run would be handed over
    beating = {"KEPT_WORK__HEARTBEAT_SECONDS": str(heartbeat)}
    loaded = settings.load(environment=beating, folder=Path(os.devnull).parent, database=url)
    kind, root = parse_root(root)
    allowed = (host_and_port(root),) if kind is SourceKind.WEB else ()
    async with open_runtime(loaded) as runtime:
        source, _ = await sources.get_or_create_source(
            runtime.db, root=root, kind=kind, name="docs", settings=SourceSettings(access=Access(allowed=allowed))
        )
        job = (await sources.show_source(runtime.db, source.label)).last_job
        if job is None or job.id == last_job:
            job = await jobs.request_crawl(runtime.db, source.label)
        done = await runtime.worker_host.run_job(job)
        if done.status is not JobStatus.COMPLETED:
            raise RuntimeError(f"the job is {done.status}: {done.error}")


def _log_visits(path: str) -> None:
    from kept.origins.folder import FolderOrigin

    visit, visits = FolderOrigin.visit, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    async def logged(self: Any, entry: Any, *, conditional: bool) -> Any:
        os.write(visits, f"{entry.url}\n".encode())
        return await visit(self, entry, conditional=conditional)

    FolderOrigin.visit = logged  # type: ignore[method-assign]


class CrashPoints:
    """Counts the statements of the store, and kills this process at the crash point."""

    def __init__(self, crash: Point | None) -> None:
        self.executed: list[str] = []
        self._times: Counter[str] = Counter()
        self.many: list[tuple[str, int]] = []
        self.first_batch = 0.0  # when
        self._crash = crash
        self._busy: set[int] = set()  # connections: a method that calls another counts once

    def wrap(self) -> None:
        from kept.store.postgres import PostgresConnection, PostgresDatabase
        from kept.store.sqlite import SqliteConnection, SqliteDatabase

        for connection in (SqliteConnection, PostgresConnection):
            for method in ("all", "one", "run"):
                setattr(connection, method, self._around(getattr(connection, method)))
            connection.run_many = self._around_many(connection.run_many)  # type: ignore[method-assign]
        self._wrap_migrations()
        for database in (SqliteDatabase, PostgresDatabase):
            database.transaction = self._around_commit(database.transaction)  # type: ignore[method-assign]

    def _wrap_migrations(self) -> None:
        """Count the statements of migrations, which have no names, by their order."""
        from kept.store import sqlite
        from kept.store.migrations import fresh_schema, list_migrations
        from kept.store.postgres import PostgresConnection

        ours = {
            sql
            for backend in ("sqlite", "postgres")
            for one in (fresh_schema(backend), *list_migrations(backend))
            for sql in one.statements
        }
        execute, execute_there = sqlite._execute, PostgresConnection.execute

        def executing(connection: Any, sql: str) -> None:
            if sql in ours:
                self._begin(MIGRATING)
            execute(connection, sql)
            if sql in ours:
                self._reach(MIGRATING, "after")

        async def executing_there(connection: Any, sql: str) -> None:
            if sql in ours:
                self._begin(MIGRATING)
            await execute_there(connection, sql)
            if sql in ours:
                self._reach(MIGRATING, "after")

        sqlite._execute = executing
        PostgresConnection.execute = executing_there  # type: ignore[method-assign]

    def _reach(self, name: str, side: Side) -> None:
        if self._crash == Point(name, side, self._times[name]):
            os.kill(os.getpid(), signal.SIGKILL)

    def _begin(self, name: str) -> None:
        self.executed.append(name)
        self._times[name] += 1
        if name == "settle_entry" and not self.first_batch:
            self.first_batch = time.monotonic()
        self._reach(name, "before")

    def _around(self, method: Callable[..., Any]) -> Callable[..., Any]:
        async def wrapped(connection: Any, name: str, /, **values: Any) -> Any:
            if id(connection) in self._busy:
                return await method(connection, name, **values)
            self._begin(name)
            self._busy.add(id(connection))
            try:
                result = await method(connection, name, **values)
            finally:
                self._busy.discard(id(connection))
            self._reach(name, "after")
            return result

        return wrapped

    def _around_many(self, method: Callable[..., Any]) -> Callable[..., Any]:
        async def wrapped(connection: Any, name: str, rows: Iterable[Any], /) -> Any:
            rows = list(rows)
            self._begin(name)
            if len(rows) > 1:
                self.many.append((name, self._times[name]))
            result = await method(connection, name, self._halfway(name, rows))
            self._reach(name, "after")
            return result

        return wrapped

    def _halfway(self, name: str, rows: list[Any]) -> Iterator[Any]:
        for number, row in enumerate(rows):
            if number and number == len(rows) // 2:
                self._reach(name, "within")
            yield row

    def _around_commit(self, transaction: Callable[..., Any]) -> Callable[..., Any]:
        @asynccontextmanager
        async def wrapped(database: Any, *, durable: bool = False) -> AsyncIterator[Any]:
            async with transaction(database, durable=durable) as connection:
                yield connection
                self._begin(COMMIT)
            self._reach(COMMIT, "after")

        return wrapped


class Disk:
    """Counts the writes of SQLite to its files, and kills this process at the crash point."""

    def __init__(self, crash: Write) -> None:
        self.n = 0
        self._crash = crash

    def wrap(self) -> Self:
        import apsw

        disk, ordinary = self, apsw.vfs_names()[0]

        class File(apsw.VFSFile):
            def xWrite(self, data: bytes, offset: int) -> None:
                disk.reach(lambda: super(File, self).xWrite(data[: len(data) // 2], offset))
                super().xWrite(data, offset)

            def xSync(self, flags: int) -> None:
                disk.reach()
                super().xSync(flags)

            def xTruncate(self, size: int) -> None:
                disk.reach()
                super().xTruncate(size)

        class Files(apsw.VFS):
            def xOpen(self, name: Any, flags: list[int]) -> File:
                return File(ordinary, name, flags)

            def xDelete(self, name: str, sync: bool) -> None:
                disk.reach()
                super().xDelete(name, sync)

        self._files = Files("mortal", ordinary, makedefault=True)
        return self

    def reach(self, half: Callable[[], None] | None = None) -> None:
        self.n += 1
        if self.n == self._crash.n:
            if half and self._crash.torn:
                half()
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
