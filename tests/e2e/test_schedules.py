"""Schedules, quick refreshes and webhooks, on the command line."""

import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import apsw
import pytest

from tests.e2e.test_cli import INSTALL, NOTES, POOL, Kept, write

PAGE = "<html><head><title>{0}</title></head><body><main><h1>{0}</h1><p>{0} {0}</p>{1}</main></body></html>"


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    write(tmp_path / "docs", pool=POOL, install=INSTALL, notes=NOTES)
    return Kept(tmp_path, f"sqlite:///{tmp_path}/kept.db")


class Program(BaseHTTPRequestHandler):
    """A small site without validators, and a receiver of webhooks; it records the requests."""

    pages: dict[str, str]
    requests: list[tuple[str, str, dict[str, str], bytes]]

    def do_GET(self) -> None:
        page = self.pages.get(self.path)
        if "made-up" not in self.path and self.path.endswith((".html", "/")):
            self.requests.append(("GET", self.path, dict(self.headers), b""))
        self.answer(404 if page is None else 200, (page or "there is no such page").encode())

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.requests.append(("POST", self.path, dict(self.headers), body))
        self.answer(200, b"")

    def answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def program() -> Iterator[type[Program]]:
    class Ours(Program):
        pages = {  # noqa: RUF012
            "/": PAGE.format("Home", '<a href="a.html">a</a> <a href="b.html">b</a>'),
            "/a.html": PAGE.format("Alpha", ""),
            "/b.html": PAGE.format("Beta", ""),
        }
        requests = []  # noqa: RUF012

    server = ThreadingHTTPServer(("127.0.0.1", 0), Ours)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Ours.url = f"http://127.0.0.1:{server.server_port}/"  # type: ignore[attr-defined]
    yield Ours
    server.shutdown()
    server.server_close()


def test_a_schedule_is_set_shown_and_cleared(kept: Kept) -> None:
    kept("add", "docs", "--schedule", "6h")
    shown = kept.json("show", "docs")
    assert shown["schedule"] == "6h"
    ahead = datetime.fromisoformat(shown["next_run_at"]) - datetime.now(UTC)
    assert timedelta(hours=5.9) < ahead < timedelta(hours=6.2)
    assert "6h; next run: 20" in kept("show", "docs").out
    assert "NEXT" in kept("list").out
    assert kept.json("list")["sources"][0]["next_run_at"] == shown["next_run_at"]

    kept("set", "docs", "--schedule", "0 3 * * *")
    at = datetime.fromisoformat(kept.json("show", "docs")["next_run_at"]).astimezone(UTC)
    assert (at.hour, at.minute) == (3, 0)
    off = kept.json("set", "docs", "--schedule", "off")
    assert (off["schedule"], off["next_run_at"]) == (None, None)
    assert "next run" not in kept("show", "docs").out


def test_an_invalid_schedule_is_refused(kept: Kept) -> None:
    wrong = kept("add", "docs", "--schedule", "sometimes")
    assert wrong.code == 2
    assert "--schedule should be like 30m, 6h or 1d" in wrong.sentence
    wrong = kept("set", "docs", "--webhook", "file:///etc/passwd")
    assert (wrong.code, "web address" in wrong.sentence) == (2, True)


def test_show_proposes_a_schedule_once_there_is_a_history(kept: Kept) -> None:
    kept("add", "docs")
    assert "suggested" not in kept("show", "docs").out
    for number in range(2):
        write(kept.docs, pool=POOL + f"\n{number} more words.\n")
        kept("refresh", "docs")
    young = kept.json("show", "docs")
    assert (young["changes_every_seconds"], young["suggested_schedule"]) == (None, None), "minutes say nothing"
    with closing(apsw.Connection(str(kept.folder / "kept.db"))) as database:
        database.execute("UPDATE generations SET created_at = '2026-01-0' || number || 'T00:00:00.000000+00:00'")
    shown = kept.json("show", "docs")
    assert shown["changes_every_seconds"] > 0
    assert "about every" in kept("show", "docs").out
    assert f"suggested: kept set docs --schedule {shown['suggested_schedule']}" in kept("show", "docs").out
    kept("set", "docs", "--schedule", "auto")
    assert "suggested" not in kept("show", "docs").out
    assert "auto; next run: 20" in kept("show", "docs").out


def test_a_rollback_pauses_the_schedule_and_reports_it(kept: Kept) -> None:
    kept("add", "docs", "--schedule", "1d")
    write(kept.docs, pool=POOL + "\nMore words.\n")
    kept("refresh", "docs")
    kept("rollback", "docs", "1")
    assert "1d; next run: paused by a rollback, until the next 'kept refresh'" in kept("show", "docs").out
    shown = kept.json("show", "docs")
    assert (shown["next_run_at"], shown["schedule_paused_at"] is not None) == (None, True)
    kept("refresh", "docs")
    assert kept.json("show", "docs")["next_run_at"]


def test_a_quick_refresh_checks_the_root_and_reports_that_it_was_quick(kept: Kept, program: type[Program]) -> None:
    url = program.url  # type: ignore[attr-defined]
    assert kept.json("add", url, "--name", "site")["counts"]["new"] == 3
    assert "none: every refresh has to fetch every page" in kept("show", "site").out
    program.requests.clear()
    program.pages["/"] = PAGE.format("Home", '<a href="a.html">a</a> <a href="c.html">c</a>')
    program.pages["/c.html"] = PAGE.format("Gamma", "")
    refreshed = kept.json("refresh", "site", "--quick")
    assert {path for _, path, _, _ in program.requests} == {"/", "/c.html"}
    assert (refreshed["counts"]["new"], refreshed["counts"]["changed"]) == (1, 1)
    assert kept.json("show", "site")["documents"] == 4
    assert kept.json("generations", "site")["generations"][-1]["mode"] == "quick"
    assert "quick; 1 changed, 1 new" in kept("generations", "site").out
    both = kept("refresh", "site", "--quick", "--full")
    assert (both.code, both.sentence) == (2, "--full and --quick exclude each other: say which of them you want.")


def test_the_operators_webhook_gets_the_result_of_a_crawl(kept: Kept, program: type[Program]) -> None:
    kept.environment |= {
        "KEPT_WEBHOOKS__URL": f"{program.url}hook",  # type: ignore[attr-defined]
        "KEPT_WEBHOOKS__SECRET": "env:HOOK_SECRET",
        "HOOK_SECRET": "between us",
    }
    job = kept.json("add", "docs")["job"]
    [(method, path, headers, body)] = program.requests
    assert (method, path) == ("POST", "/hook")
    event = json.loads(body)
    assert (event["event"], event["source"], event["generation"], event["job"]) == (
        "activated",
        "docs",
        1,
        job,
    )
    signed = f"{headers['Kept-Timestamp']}.".encode() + body
    assert headers["Kept-Signature"] == "sha256=" + hmac.new(b"between us", signed, hashlib.sha256).hexdigest()
    kept("refresh", "docs")
    assert len(program.requests) == 1, "nothing changed: no news"


def test_the_secret_of_webhooks_is_not_shown(kept: Kept) -> None:
    kept.environment |= {"KEPT_WEBHOOKS__SECRET": "hunter2", "KEPT_WEBHOOKS__URL": "https://hooks.test/T0KEN"}
    for run in (kept("config"), kept("config", "--json")):
        assert run.code == 0
        assert "***" in run.out
        assert "hunter2" not in run.out
        assert "T0KEN" not in run.out
