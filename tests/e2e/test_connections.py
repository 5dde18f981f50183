"""Connections that say nothing, or too little, or read nothing: the server stays open for others."""

import resource
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from kept.server import connections
from kept.server.connections import address_block
from tests.e2e.server import Server, serving
from tests.e2e.test_cli import Kept
from tests.e2e.test_middleware import Restarted

API = "/api/v1"
MANY = 1100
MAX_FILES = 1024  # of the server
MAX_GROWTH_KB = 64 * 1024
HEAD = "POST /login HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
ATTACKS = {
    "says nothing": "",
    "half a header": HEAD + "X-More: " + "x" * 16_000,
    "a slow body": HEAD + "Content-Length: 100000\r\n\r\n" + "x" * 50_000,
}


class FewFiles(Kept):
    """Runs ``kept`` as after ``ulimit -n 1024``."""

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (MAX_FILES, MAX_FILES))

        return super().start(*arguments, preexec_fn=limit, **options)


@pytest.fixture
def many_files() -> Iterator[None]:
    """Let this process open as many files as the attacks need."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2 * MANY:
        pytest.skip(f"this process may open only {hard} files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * MANY), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def connect(server: Server, says: str = "") -> socket.socket:
    at = urlsplit(server.url)
    connection = socket.create_connection((at.hostname, at.port), timeout=10)
    with suppress(OSError):  # a connection that was closed for another
        connection.sendall(says.format(host=at.netloc).encode())
    return connection


def answer(connection: socket.socket, seconds: float = 30) -> bytes:
    """Return everything that the server says until it closes the connection."""
    connection.settimeout(seconds)
    said = b""
    with suppress(ConnectionResetError):
        while part := connection.recv(65536):
            said += part
    return said


def memory_kb(process: int) -> int:
    status = Path(f"/proc/{process}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")))


def test_1100_silent_or_slow_connections_close_the_server_to_nobody(tmp_path: Path, many_files: None) -> None:
    kept = FewFiles(tmp_path, f"sqlite:///{tmp_path}/kept.db")
    kept.environment["KEPT_SERVE__HOSTS"] = "docs.test"  # keys are needed, and nobody here has one
    with Restarted(kept, "--workers", "0") as server:
        with server.client() as warm:
            assert warm.get("/healthz").status_code == 200
        before = memory_kb(server.process.pid)
        for name, says in ATTACKS.items():
            with ExitStack() as stack:
                for number in range(MANY):
                    stack.enter_context(connect(server, says))
                    if number % 100 == 99:
                        began = time.monotonic()
                        with httpx2.Client(base_url=server.url, timeout=10) as client:
                            assert client.get("/healthz").status_code == 200, name
                        assert time.monotonic() - began < 1, name
                with server.client() as client:
                    assert client.get(f"{API}/jobs").status_code == 401
                grown = memory_kb(server.process.pid) - before
                assert grown < MAX_GROWTH_KB, f"{name}: {grown} kB"


def test_silent_half_header_and_slow_connections_are_closed_by_a_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HEADER_SECONDS", "BODY_SECONDS", "UNREAD_SECONDS"):
        monkeypatch.setattr(connections, name, 0.5)
    monkeypatch.setattr(connections, "MIN_BODY_BYTES_PER_SECOND", 1024 * 1024)
    monkeypatch.setattr(connections, "SWEEP_SECONDS", 0.1)
    with serving(f"sqlite:///{tmp_path}/kept.db", tmp_path, workers=0) as server:
        opened = {name: connect(server, says) for name, says in ATTACKS.items()}
        said = {name: answer(one).partition(b"\r\n")[0] for name, one in opened.items()}
        timeout = b"HTTP/1.1 408 Request Timeout"
        assert said == dict.fromkeys(ATTACKS, timeout) | {"says nothing": b""}
        # A header, or a body, that comes byte by byte is no better.
        for head in (HEAD, HEAD + "Content-Length: 100\r\n\r\n"):
            with connect(server, head) as drip:
                drip.settimeout(0.1)
                until, said_ = time.monotonic() + 20, b""
                while not said_:
                    assert time.monotonic() < until
                    with suppress(ConnectionError):
                        drip.sendall(b"x")
                    with suppress(TimeoutError):
                        said_ = drip.recv(1000)
                assert said_.startswith(timeout)


def test_headers_that_are_too_large_or_too_many_are_refused(tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path}/kept.db", tmp_path, workers=0) as server:
        for says in (
            "GET / HTTP/1.1\r\nHost: {host}\r\n" + "X-A: b\r\n" * 101 + "\r\n",
            "GET / HTTP/1.1\r\nHost: {host}\r\nX-A: " + "b" * 40_000 + "\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: {host}\r\nX-A: " + "b" * 40_000,
            "GET /" + "x" * 40_000 + " HTTP/1.1\r\nHost: {host}\r\n\r\n",
        ):
            with connect(server, says) as connection:
                assert answer(connection).startswith(b"HTTP/1.1 431 "), says[:50]
        with connect(server, "GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n" * 5000) as pipelined:
            assert answer(pipelined).count(b"HTTP/1.1 200 OK") < 100
        with server.client() as client:
            assert client.get("/healthz", headers={"X-A": "b" * 20_000}).status_code == 200


def test_one_address_cannot_take_the_places_of_others(tmp_path: Path) -> None:
    options = {"serve__per_address": "4", "serve__proxies": "127.0.0.1"}
    with ExitStack() as stack:
        server = stack.enter_context(
            serving(f"sqlite:///{tmp_path}/kept.db", tmp_path, workers=0, host="0.0.0.0", **options)
        )
        port = urlsplit(server.url).port
        key = server.key("reader", "read")
        headers = {"Authorization": f"Bearer {key}"}
        request = f"GET {API}/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n"

        def follow(source: str, more: str = "") -> bytes:
            """Open an event stream, which takes a place for as long as it is open; return its status line."""
            connection = stack.enter_context(
                socket.create_connection(("127.0.0.1", port), timeout=10, source_address=(source, 0))
            )
            connection.sendall(f"{request}{more}\r\n".encode())
            return connection.recv(4096).partition(b"\r\n")[0]

        ok, busy = b"HTTP/1.1 200 OK", b"HTTP/1.1 503 Service Unavailable"
        assert [follow("127.0.0.2") for _ in range(5)] == [ok] * 4 + [busy]
        assert follow("127.0.0.3") == ok
        # Behind a proxy the client counts, not the proxy.
        for client in ("192.0.2.1", "192.0.2.2"):
            through_proxy = f"X-Forwarded-For: {client}\r\n"
            assert [follow("127.0.0.1", through_proxy) for _ in range(5)] == [ok] * 4 + [busy]
        # Only a proxy is believed.
        assert follow("127.0.0.2", "X-Forwarded-For: 192.0.2.9\r\n") == busy
        assert httpx2.get(f"http://127.0.0.1:{port}{API}/jobs", headers=headers).status_code == 200


def test_a_client_that_does_not_read_its_answer_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "UNREAD_SECONDS", 0.5)
    monkeypatch.setattr(connections, "SWEEP_SECONDS", 0.1)
    with serving(f"sqlite:///{tmp_path}/kept.db", tmp_path, workers=0) as server:
        at = urlsplit(server.url)
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.settimeout(20)
            connection.connect((at.hostname, at.port))
            with suppress(ConnectionError):
                while True:  # each answer is longer than its request; none of them is read
                    connection.sendall(f"GET {API}/openapi.json HTTP/1.1\r\nHost: {at.netloc}\r\n\r\n".encode())


def test_requests_through_a_proxy_need_a_configured_host(tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path}/kept.db", tmp_path, workers=0) as server, server.client() as client:
        assert client.get(f"{API}/sources").status_code == 200
        for name in ("X-Forwarded-For", "X-Forwarded-Proto", "X-Real-IP", "Forwarded", "Via", "X-Forwarded-Host"):
            refused = client.get(f"{API}/sources", headers={name: "192.0.2.1"})
            assert refused.status_code == 421, name
            assert "serve.hosts" in refused.json()["detail"]
        with connect(server, f"GET {API}/sources HTTP/1.0\r\nHost: {{host}}\r\n\r\n") as bare_nginx:
            assert answer(bare_nginx).startswith(b"HTTP/1.1 421 ")


def test_clients_of_a_proxy_have_a_rate_limit_each_and_health_checks_none(tmp_path: Path) -> None:
    options = {"serve__hosts": "docs.test", "serve__requests_per_minute": "3"}
    with serving(f"sqlite:///{tmp_path}/kept.db", tmp_path, workers=0, **options) as server, server.client() as client:

        def log_in(**headers: str) -> list[int]:
            forwarded = {name.replace("_", "-"): value for name, value in headers.items()}
            return [client.post("/login", data={"key": "wrong"}, headers=forwarded).status_code for _ in range(4)]

        assert log_in(X_Forwarded_For="192.0.2.1") == [401, 401, 401, 429]
        assert log_in(X_Forwarded_For="192.0.2.2") == [401, 401, 401, 429]
        # Without the address of a client, one limit would lock out everyone.
        assert log_in(X_Forwarded_Proto="https") == [401] * 4
        for path in ("/healthz", "/readyz", "/static/kept.css"):
            statuses = {client.get(path, headers={"X-Forwarded-For": "192.0.2.1"}).status_code for _ in range(5)}
            assert statuses <= {200, 404}


@pytest.mark.parametrize(
    ("address", "block"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8::ffff:1", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_all_addresses_of_one_client_count_together(address: str, block: str) -> None:
    assert address_block(address) == block
