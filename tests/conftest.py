"""Fixtures for all tests, and the report of a run.

- `database_url`: a fresh, empty database; each test that uses it runs on SQLite and on PostgreSQL.
- `postgres_server`: the server behind it, to stop and start.
- The header shows Hypothesis's seed; the last line lists skipped tests. With KEPT_TEST_ALL=1 a skip is a failure.
- The ledger of every crawl is checked, see ``tests/ledger_check.py``.
- Properties that a test records as "counted" are shown at the end.
"""

import os
import secrets
import signal
import sys
from collections import defaultdict
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from tests.postgres import PostgresServer

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # otherwise each of a thousand processes would compile everything again
sys.dont_write_bytecode = False

ALL = os.environ.get("KEPT_TEST_ALL") == "1"
SEED = os.environ.setdefault("KEPT_TEST_SEED", str(secrets.randbelow(2**32)))  # the workers inherit it

# Not Hypothesis's own profile for CI: that one tries the same examples every time.
hypothesis.settings.register_profile("kept", hypothesis.settings.get_profile("default"), deadline=None, print_blob=True)
hypothesis.settings.load_profile("kept")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    server = PostgresServer(os.environ.get("KEPT_TEST_POSTGRES"))
    try:
        if not os.environ.get("KEPT_TEST_POSTGRES"):
            server.start()
        yield server
    finally:
        server.close()


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/kept.db"
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    url = server.create_database()
    yield url
    server.drop_database(url)


@pytest.fixture(scope="session")
def ledger_faults() -> list[AssertionError]:
    from tests.ledger_check import watch_crawls  # imports the crawler, which most unit tests do without

    return watch_crawls()


@pytest.fixture(autouse=True)
def every_crawl_is_in_its_ledger(request: pytest.FixtureRequest) -> Iterator[None]:
    if Path(request.node.path).parent.name != "contract":
        yield
        return
    faults: list[AssertionError] = request.getfixturevalue("ledger_faults")
    yield
    found = [str(fault) for fault in faults]
    faults.clear()
    assert not found, found


@pytest.fixture
def checked_databases(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[None]:
    """Check what other processes have crawled, at the end of a test; for a whole module by ``pytestmark``."""
    url = request.getfixturevalue("database_url") if "database_url" in request.fixturenames else ""
    yield
    from tests.ledger_check import check_database, check_files

    check_files(tmp_path)
    if url.startswith("postgres"):
        check_database(url)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a background run: its child processes would ignore it too
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = SEED


def pytest_report_header(config: pytest.Config) -> str:
    return f"hypothesis seed: {config.option.hypothesis_seed} (name it in KEPT_TEST_SEED to repeat it)"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _refuse_skip(report)
    return report


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if ALL and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"KEPT_TEST_ALL=1 lets no test be skipped. This one was: {_reason(report)}"


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    where_and_why = report.longrepr
    why = where_and_why[-1] if isinstance(where_and_why, tuple | list) else str(where_and_why)
    return str(why).removeprefix("Skipped: ")


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Print the recorded counts and, on the last line of the run, the skipped tests."""
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(config, "workerinput"):
        return
    for report in reporter.stats.get("passed", []):
        for what, value in report.user_properties:
            if what == "counted":
                reporter.write_line(f"Counted: {value}.")
    tests_by_reason = defaultdict(list)
    for report in reporter.stats.get("skipped", []):
        tests_by_reason[_reason(report)].append(report.nodeid)
    skipped = "; ".join(f"{', '.join(tests)} ({reason})" for reason, tests in tests_by_reason.items())
    reporter.write_line(f"Skipped: {skipped or 'nothing'}.")
