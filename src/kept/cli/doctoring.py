"""``doctor``: looks at everything Kept stands on, and says what to do about what is wrong."""

import asyncio
import re
import shutil
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path

import typer

from kept.cli.command import DONE, FAILED, Call
from kept.cli.words import without_password
from kept.errors import KeptError, NoSuchThing
from kept.model.nouns import dataclass
from kept.settings import Settings

OLDEST_PYTHON = (3, 11)
OLDEST_SQLITE = (3, 51, 3)  # the first without the WAL-reset bug
ROOM_NEEDED, ROOM_WANTED = 100 * 2**20, 2**30
SERVER = "127.0.0.1", 8600
ANSWER_SECONDS = 2.0


class State(StrEnum):
    OK = "ok"
    NOTE = "note"  # Kept works, but something it could do it cannot
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at, how it is, and what to do."""

    name: str
    state: State
    found: str
    advice: str = ""


async def doctor(context: typer.Context) -> int:
    """Check everything Kept stands on: programs, settings, database, disk, secrets.

    \b
    kept doctor
    kept --database postgresql://kept@db/kept doctor --json
    """
    call: Call = context.obj
    with call.waiting("looking …"):
        checks = [check async for check in _examined(call)]
    broken = any(check.state is State.BROKEN for check in checks)
    if call.as_json:
        call.answer({"ok": not broken, "checks": [asdict(check) for check in checks]})
        return FAILED if broken else DONE
    colours = {State.OK: "green", State.NOTE: "yellow", State.BROKEN: "red"}
    for check in checks:
        call.out.line((f"{check.state:<7}", colours[check.state]), (f"{check.name:<9}", "bold"), check.found)
        if check.advice:
            call.out.line(check.advice, indent=17, wrap=True)
    return FAILED if broken else DONE


async def _examined(call: Call) -> AsyncIterator[Check]:
    yield _python()
    yield _sqlite()
    try:
        settings = call.settings
    except KeptError as error:
        yield Check("settings", State.BROKEN, str(error), "Mend it; the rest can only be checked after that.")
        return
    files = sorted({where for where in settings.came_from.values() if where.endswith(".toml")})
    yield Check("settings", State.OK, ", ".join(files) or "no file; defaults, and what the environment says")
    async for check in _database(settings):
        yield check
    for check in (*_disk(settings), _secrets(settings.secrets_file), _browser(settings)):
        yield check
    for check in await asyncio.gather(
        _program("git", "Without it, git repositories cannot be kept. Install git."),
        _program("npm", "Without it, 'npm:NAME' cannot be kept. Install Node.js."),
        _program("pip", "Without it, 'pypi:NAME' cannot be kept. Install pip."),
        _server(),
    ):
        yield check


def _python() -> Check:
    found = sys.version.partition(" ")[0]
    if sys.version_info[:2] >= OLDEST_PYTHON:
        return Check("Python", State.OK, found)
    return Check("Python", State.BROKEN, found, "Kept needs 3.11 or newer.")


def _sqlite() -> Check:
    import apsw

    found = apsw.sqlite_lib_version()
    if tuple(map(int, found.split("."))) < OLDEST_SQLITE:
        return Check("SQLite", State.BROKEN, found, "It can damage databases. Upgrade: pip install --upgrade apsw")
    if "ENABLE_FTS5" not in apsw.compile_options:
        return Check("SQLite", State.BROKEN, f"{found}, without full text", "Install the apsw of its own wheel.")
    return Check("SQLite", State.OK, f"{found}, with full text")


async def _database(settings: Settings) -> AsyncIterator[Check]:
    from kept.runtime.runtime import open_runtime
    from kept.service.health import examine

    where = without_password(settings.database)
    try:
        async with open_runtime(settings, create=False) as runtime:
            health = await examine(runtime.db)
    except NoSuchThing:
        yield Check("database", State.NOTE, f"{where} is not there yet", "'kept add ROOT' makes it.")
        return
    except KeptError as error:
        yield Check("database", State.BROKEN, str(error), f"It is {where}; --database or KEPT_DATABASE names another.")
        return
    found = f"{where}: {health.program}, schema {health.schema}"
    if health.writable:
        yield Check("database", State.OK, found)
    else:
        yield Check("database", State.BROKEN, f"{found}, read-only", "Crawls need one that can be written to.")
    if health.program.startswith("PostgreSQL"):
        todo = "" if health.vectors else "Search by meaning is slower without it: CREATE EXTENSION vector"
        state = State.OK if health.vectors else State.NOTE
        yield Check("pgvector", state, health.vectors or "not in this database", todo)


def _disk(settings: Settings) -> Iterator[Check]:
    scheme, _, rest = settings.database.partition("://")
    if scheme != "sqlite":
        return
    folder = Path(rest.removeprefix("/")).absolute().parent
    there = next(parent for parent in (folder, *folder.parents) if parent.exists())
    free = shutil.disk_usage(there).free
    state = State.BROKEN if free < ROOM_NEEDED else State.NOTE if free < ROOM_WANTED else State.OK
    todo = "" if state is State.OK else "Make room: a crawl stops when the disk is full (and loses nothing)."
    yield Check("disk", state, f"{free / 2**30:.1f} GB free at {there}", todo)


def _secrets(file: Path) -> Check:
    try:
        mode = file.stat().st_mode & 0o777
    except OSError:
        return Check("secrets", State.OK, "none are kept")
    if mode & 0o077:
        return Check("secrets", State.BROKEN, f"others may read {file}", f"chmod 600 '{file}'")
    return Check("secrets", State.OK, f"{file}, which only you may read")


def _browser(settings: Settings) -> Check:
    from kept.runtime.origins import browser_of

    try:
        return Check("Chromium", State.OK, browser_of(settings))
    except NoSuchThing as error:
        return Check("Chromium", State.NOTE, "none", f"Pages that need a browser cannot be kept: {error}.")


async def _program(name: str, without: str) -> Check:
    program = shutil.which(name)
    if program is None:
        return Check(name, State.NOTE, "not installed", without)
    process = await asyncio.create_subprocess_exec(
        program, "--version", stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        out, _ = await asyncio.wait_for(process.communicate(), 10)
    except TimeoutError:
        process.kill()
        await process.wait()
        return Check(name, State.NOTE, f"{program} does not answer", without)
    version = re.search(rb"\d+(?:\.\d+)+", out)
    return Check(name, State.OK, f"{program}, {version[0].decode()}" if version else program)


async def _server() -> Check:
    """Whether somebody answers where 'kept serve' does, unless told otherwise."""
    where = f"http://{SERVER[0]}:{SERVER[1]}/"
    request = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            reader, writer = await asyncio.open_connection(*SERVER)
            writer.write(request)
            status = await reader.readline()
            writer.close()
    except (OSError, TimeoutError):
        return Check("server", State.OK, f"none at {where} ('kept serve' starts one)")
    if status.startswith(b"HTTP/1.1 "):
        return Check("server", State.OK, f"answers at {where}")
    return Check("server", State.NOTE, f"something else answers at {where}", "Choose another: kept serve --port N")
