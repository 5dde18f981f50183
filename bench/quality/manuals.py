"""Add manuals once, and reuse their databases until the readers or the store change.

SQLite files are in .kept/bench. PostgreSQL is started for the run, unless KEPT_TEST_POSTGRES names a server: there the
database stays for the next run.
"""

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from bench.quality.labels import MANUALS
from kept.embed import static
from tests.postgres import PostgresServer

PROJECT = Path(__file__).parent.parent.parent
FOLDER = PROJECT / ".kept" / "bench"


def on_sqlite(manual: str) -> Path:
    """Return the SQLite file with the manual."""
    file = FOLDER / f"quality-{manual}-{_readers()}.db"
    if not file.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        for former in FOLDER.glob(f"quality-{manual}-*"):
            former.unlink()
        half = file.with_suffix(".half.db")
        _keep(f"sqlite:///{half}", manual)
        half.rename(file)
    return file


@contextmanager
def on_postgres() -> Iterator[Callable[[str], str]]:
    """Yield a function from the name of a manual to the URL of its database."""
    address = os.environ.get("KEPT_TEST_POSTGRES")
    server = PostgresServer(address)
    try:
        if not address:
            server.start()
        yield lambda manual: _stays(address, server, manual) if address else _new(server.create_database(), manual)
    finally:
        if not address:
            server.close()


def _stays(address: str, server: PostgresServer, manual: str) -> str:
    name = f"kept_quality_{manual}_{_readers()}"
    with psycopg.connect(address, autocommit=True) as connection:
        if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone():
            return server.url(name)
        url = _new(server.create_database(), manual)
        connection.execute(f"ALTER DATABASE {url.partition('?')[0].rpartition('/')[2]} RENAME TO {name}")
    return server.url(name)


def _new(url: str, manual: str) -> str:
    _keep(url, manual)
    return url


def _keep(url: str, manual: str) -> None:
    print(f"Keeping {manual} …", file=sys.stderr, flush=True)
    options = ["--database", url, "add", str(MANUALS[manual]), "--name", manual, "--include", "*.html", "--json"]
    vectors = {"KEPT_EMBED__PROVIDER": "static" if static.is_installed() else "none"}
    command = [sys.executable, "-m", "kept", *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ | vectors)


def _readers() -> str:
    """Return a hash of the code that makes the rows."""
    kept = PROJECT / "src" / "kept"
    files = [kept / "model" / "tokens.py", kept / "model" / "index_fields.py", *(kept / "extract").rglob("*.py")]
    digest = hashlib.sha256()
    for file in sorted([*files, *(kept / "store" / "sql" / "schema").rglob("*.sql")]):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]
