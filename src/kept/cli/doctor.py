"""``doctor``: checks programs, settings, database, disk and secrets, and gives advice."""

import asyncio
import re
import shutil
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

import typer

from kept.cli.command import EXIT_FAILED, EXIT_OK, CliContext
from kept.cli.config import mask_password
from kept.errors import KeptError, NotFound, StoreCorrupt
from kept.settings import Settings

MIN_PYTHON = (3, 11)
MIN_SQLITE = (3, 51, 3)  # the first without the WAL-reset bug
MAX_CHECKED_BYTES = 100 * 2**20  # of a database that doctor reads as a whole, in some seconds
MIN_FREE_BYTES, RECOMMENDED_FREE_BYTES = 100 * 2**20, 2**30
DEFAULT_SERVER = "127.0.0.1", 8600
SERVER_TIMEOUT_SECONDS = 2.0


class CheckState(StrEnum):
    OK = "ok"
    NOTE = "note"  # Kept works, but something it could do it cannot
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """The result of one check, and advice."""

    name: str
    state: CheckState
    found: str
    advice: str = ""


async def doctor(context: typer.Context) -> int:
    """Check everything Kept stands on: programs, settings, database, disk, secrets.

    \b
    kept doctor
    kept --database postgresql://kept@db/kept doctor --json
    """
    cli: CliContext = context.obj
    with cli.spinner("looking …"):
        checks = [check async for check in _run_checks(cli)]
    broken = any(check.state is CheckState.BROKEN for check in checks)
    if cli.as_json:
        cli.print_json({"ok": not broken, "checks": [asdict(check) for check in checks]})
        return EXIT_FAILED if broken else EXIT_OK
    colours = {CheckState.OK: "green", CheckState.NOTE: "yellow", CheckState.BROKEN: "red"}
    for check in checks:
        cli.out.line((f"{check.state:<7}", colours[check.state]), (f"{check.name:<9}", "bold"), check.found)
        if check.advice:
            cli.out.line(check.advice, indent=17, wrap=True)
    return EXIT_FAILED if broken else EXIT_OK


async def _run_checks(cli: CliContext) -> AsyncIterator[DoctorCheck]:
    yield _python()
    yield _sqlite()
    try:
        settings = cli.settings
    except KeptError as error:
        yield DoctorCheck(
            "settings", CheckState.BROKEN, str(error), "Mend it; the rest can only be checked after that."
        )
        return
    files = sorted({where for where in settings.value_origins.values() if where.endswith(".toml")})
    yield DoctorCheck("settings", CheckState.OK, ", ".join(files) or "no file; defaults, and what the environment says")
    async for check in _database(settings):
        yield check
    for check in (*_privacy(settings), *_disk(settings), _secrets(settings.secrets_file), _browser(settings)):
        yield check
    for check in await asyncio.gather(
        _program("git", "Without it, git repositories cannot be kept. Install git."),
        _program("npm", "Without it, 'npm:NAME' cannot be kept. Install Node.js."),
        _program("pip", "Without it, 'pypi:NAME' cannot be kept. Install pip."),
        _server(),
    ):
        yield check


def _python() -> DoctorCheck:
    found = sys.version.partition(" ")[0]
    if sys.version_info[:2] >= MIN_PYTHON:
        return DoctorCheck("Python", CheckState.OK, found)
    return DoctorCheck("Python", CheckState.BROKEN, found, "Kept needs 3.11 or newer.")


def _sqlite() -> DoctorCheck:
    import apsw

    found = apsw.sqlite_lib_version()
    if tuple(map(int, found.split("."))) < MIN_SQLITE:
        return DoctorCheck(
            "SQLite", CheckState.BROKEN, found, "It can damage databases. Upgrade: pip install --upgrade apsw"
        )
    if "ENABLE_FTS5" not in apsw.compile_options:
        return DoctorCheck(
            "SQLite", CheckState.BROKEN, f"{found}, without full text", "Install the apsw of its own wheel."
        )
    return DoctorCheck("SQLite", CheckState.OK, f"{found}, with full text")


async def _database(settings: Settings) -> AsyncIterator[DoctorCheck]:
    from kept.maintenance.check import RESTORE_ADVICE, check_integrity, find_log_damage
    from kept.runtime.readers import hash_content
    from kept.runtime.runtime import open_runtime
    from kept.service.health import check_health

    where, path = mask_password(settings.database), _sqlite_file(settings)
    if path and (damage := await asyncio.to_thread(find_log_damage, path)):  # before it is opened, which drops the log
        yield DoctorCheck("database", CheckState.BROKEN, f"{where}: {damage}", RESTORE_ADVICE)
    size = path.stat().st_size if path and path.exists() else 0
    if path and path.exists() and not size:
        yield DoctorCheck("database", CheckState.BROKEN, f"{where} is empty", f"If it was not before: {RESTORE_ADVICE}")
        return
    problems = []
    try:
        async with open_runtime(settings, create=False) as runtime:
            health = await check_health(runtime.db)
            if path and size <= MAX_CHECKED_BYTES:
                problems = await check_integrity(runtime.db, hash_content)
    except NotFound:
        yield DoctorCheck("database", CheckState.NOTE, f"{where} is not there yet", "'kept add ROOT' makes it.")
        return
    except StoreCorrupt as error:
        yield DoctorCheck("database", CheckState.BROKEN, f"{where}: {error}", RESTORE_ADVICE)
        return
    except KeptError as error:
        yield DoctorCheck(
            "database", CheckState.BROKEN, str(error), f"It is {where}; --database or KEPT_DATABASE names another."
        )
        return
    found = f"{where}: {health.program}, schema {health.schema}"
    if problems:
        violated = f"{found}: it does not hold that {problems[0].rule}: {'; '.join(problems[0].found[:3])}"
        yield DoctorCheck("database", CheckState.BROKEN, violated, problems[0].advice)
    elif health.writable and size > MAX_CHECKED_BYTES:
        large = f"{found}; its {size / 2**30:.1f} GB were not read"
        yield DoctorCheck("database", CheckState.NOTE, large, "'kept check' reads all of it, and finds any damage.")
    elif health.writable:
        yield DoctorCheck("database", CheckState.OK, f"{found}, all of it read and sound" if path else found)
    else:
        yield DoctorCheck(
            "database", CheckState.BROKEN, f"{found}, read-only", "Crawls need one that can be written to."
        )
    if health.program.startswith("PostgreSQL"):
        todo = "" if health.vectors else "Search by meaning is slower without it: CREATE EXTENSION vector"
        state = CheckState.OK if health.vectors else CheckState.NOTE
        yield DoctorCheck("pgvector", state, health.vectors or "not in this database", todo)


def _sqlite_file(settings: Settings) -> Path | None:
    """Return the file of the database; None if it is not SQLite."""
    scheme, _, rest = settings.database.partition("://")
    return Path(rest.removeprefix("/")).absolute() if scheme == "sqlite" else None


def _privacy(settings: Settings) -> Iterator[DoctorCheck]:
    """Kept makes files that only their owner may read, and does not change those that are there."""
    file = _sqlite_file(settings)
    if file and file.exists() and file.stat().st_mode & 0o077:
        yield DoctorCheck(
            "privacy", CheckState.NOTE, f"others may read {file}", f"If they should not: chmod 600 '{file}'"
        )


def _disk(settings: Settings) -> Iterator[DoctorCheck]:
    file = _sqlite_file(settings)
    if file is None:
        return
    folder = file.parent
    there = next(parent for parent in (folder, *folder.parents) if parent.exists())
    free = shutil.disk_usage(there).free
    state = (
        CheckState.BROKEN
        if free < MIN_FREE_BYTES
        else CheckState.NOTE
        if free < RECOMMENDED_FREE_BYTES
        else CheckState.OK
    )
    todo = "" if state is CheckState.OK else "Make room: a crawl stops when the disk is full (and loses nothing)."
    yield DoctorCheck("disk", state, f"{free / 2**30:.1f} GB free at {there}", todo)


def _secrets(file: Path) -> DoctorCheck:
    try:
        mode = file.stat().st_mode & 0o777
    except OSError:
        return DoctorCheck("secrets", CheckState.OK, "none are kept")
    if mode & 0o077:
        return DoctorCheck("secrets", CheckState.BROKEN, f"others may read {file}", f"chmod 600 '{file}'")
    return DoctorCheck("secrets", CheckState.OK, f"{file}, which only you may read")


def _browser(settings: Settings) -> DoctorCheck:
    from kept.runtime.origin_factory import require_browser

    try:
        return DoctorCheck("Chromium", CheckState.OK, require_browser(settings))
    except NotFound as error:
        return DoctorCheck("Chromium", CheckState.NOTE, "none", f"Pages that need a browser cannot be kept: {error}.")


async def _program(name: str, advice: str) -> DoctorCheck:
    program = shutil.which(name)
    if program is None:
        return DoctorCheck(name, CheckState.NOTE, "not installed", advice)
    process = await asyncio.create_subprocess_exec(
        program, "--version", stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        out, _ = await asyncio.wait_for(process.communicate(), 10)
    except TimeoutError:
        process.kill()
        await process.wait()
        return DoctorCheck(name, CheckState.NOTE, f"{program} does not answer", advice)
    version = re.search(rb"\d+(?:\.\d+)+", out)
    return DoctorCheck(name, CheckState.OK, f"{program}, {version[0].decode()}" if version else program)


async def _server() -> DoctorCheck:
    """Check whether a server answers at the default address of 'kept serve'."""
    where = f"http://{DEFAULT_SERVER[0]}:{DEFAULT_SERVER[1]}/"
    request = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    try:
        async with asyncio.timeout(SERVER_TIMEOUT_SECONDS):
            reader, writer = await asyncio.open_connection(*DEFAULT_SERVER)
            writer.write(request)
            status = await reader.readline()
            writer.close()
    except (OSError, TimeoutError):
        return DoctorCheck("server", CheckState.OK, f"none at {where} ('kept serve' starts one)")
    if status.startswith(b"HTTP/1.1 "):
        return DoctorCheck("server", CheckState.OK, f"answers at {where}")
    return DoctorCheck(
        "server", CheckState.NOTE, f"something else answers at {where}", "Choose another: kept serve --port N"
    )
