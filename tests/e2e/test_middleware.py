"""The middleware before every interface: hosts and origins, keys, limits, an unavailable database."""

import asyncio
import base64
import re
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from kept.server.auth import AllowedHosts
from kept.store.database import open_database
from tests.e2e.server import Server, events, parse_events, serving
from tests.e2e.test_cli import INSTALL, NOTES, POOL, Kept, write
from tests.postgres import PostgresServer
from tests.sites.manual import served

API = "/api/v1"
SURFACES = ("/", f"{API}/sources", f"{API}/events", "/mcp", "/metrics", "/knowledge-items/crawl", "/nowhere")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    with serving(f"sqlite:///{folder}/kept.db", folder, workers=0) as running:
        yield running


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that other machines can reach, by the name docs.test."""
    folder = tmp_path_factory.mktemp("public")
    options = {"serve__requests_per_minute": "60", "serve__live_jobs": "2", "serve__sources": "3", "serve__pages": "50"}
    with serving(f"sqlite:///{folder}/kept.db", folder, workers=0, serve__hosts="docs.test", **options) as running:
        yield running


def make_folder(server: Server, name: str) -> str:
    """Return the root of a source that the server can reach."""
    folder = Path(server.runtime.settings.database.removeprefix("sqlite:///")).parent / name
    write(folder, pool=POOL)
    return str(folder)


@pytest.mark.parametrize("path", SURFACES)
def test_other_hosts_and_other_origins_are_refused(server: Server, path: str) -> None:
    at = urlsplit(server.url).netloc
    port = at.partition(":")[2]
    with server.client() as api:
        for host in ("evil.test", f"evil.test:{port}", "127.0.0.1.evil.test", "10.0.0.1", "localhost@evil.test", ""):
            assert api.get(path, headers={"Host": host}).status_code in (400, 421), host
        origins = ["null", "http://evil.test", f"http://evil.test:{port}", "http://localhost:3000", "file://", ""]
        origins += [f"http://{at}.evil.test", f"http://{at}@evil.test", f"http://localhost:{port}", "https://127.0.0.1"]
        for origin in origins:
            for method in ("GET", "POST", "OPTIONS"):
                refused = api.request(method, path, headers={"Origin": origin})
                assert refused.status_code == 403, origin
                assert not [name for name in refused.headers if name.startswith("access-control")]
        if path == f"{API}/sources":
            for headers in ({}, {"Origin": f"http://{at}"}, {"Host": f"localhost:{port}"}, {"Host": "[::1]"}):
                answer = api.get(path, headers=headers)
                assert answer.status_code == 200
                assert answer.headers["x-content-type-options"] == "nosniff"
                assert not [name for name in answer.headers if name.startswith("access-control")]


def test_every_address_except_loopback_requires_keys() -> None:
    for host in ("127.0.0.1", "::1", "localhost", "127.8.8.8"):
        assert not AllowedHosts.from_settings(host, "").requires_keys
    for host, hosts in (("0.0.0.0", ""), ("::", ""), ("192.168.1.5", ""), ("127.0.0.1", "docs.test"), ("kept", "")):
        assert AllowedHosts.from_settings(host, hosts).requires_keys
    everywhere = AllowedHosts.from_settings("0.0.0.0", "docs.test")
    assert all(map(everywhere.allows, ("192.168.1.5:8600", "[fd00::1]", "docs.test", "DOCS.test:443", "localhost")))
    assert not any(map(everywhere.allows, ("evil.test", "evil.test:8600", "", "[", "a b", "192.168.1.5.evil.test")))
    assert not AllowedHosts.from_settings("127.0.0.1", "").allows("192.168.1.5")


@pytest.mark.parametrize("path", SURFACES)
def test_where_keys_are_required_nothing_is_answered_without_one(public: Server, path: str) -> None:
    with public.client() as api:
        wrong = ("", "Bearer", "Bearer nonsense", "Basic nonsense", "Digest a=b", "Bearer kept_" + "A" * 43)
        for headers in ({}, *({"Authorization": value} for value in wrong)):
            for method in ("GET", "POST", "DELETE"):
                refused = api.request(method, path, headers=headers)
                assert refused.status_code == 401
                assert refused.headers["www-authenticate"] == 'Bearer realm="Kept"'
        led = api.get("/sources?x=1", headers={"Accept": "text/html"})
        assert (led.status_code, led.headers["location"]) == (303, "/login?to=/sources%3Fx%3D1")
        assert (api.get("/healthz").status_code, api.get("/readyz").status_code) == (200, 200)


def test_a_key_allows_its_scope_and_nothing_after_its_removal(public: Server) -> None:
    read, write_, admin = (public.key(f"{scope}er", scope) for scope in ("read", "write", "admin"))
    body = {"root": make_folder(public, "keyed")}
    with public.client() as api:

        def status(key: str, method: str, path: str, **more: object) -> int:
            answer = api.request(method, API + path, headers={"Authorization": f"Bearer {key}"}, **more)  # type: ignore[arg-type]
            return answer.status_code

        assert [status(key, "GET", "/sources") for key in (read, write_, admin)] == [200, 200, 200]
        assert status(read, "POST", "/sources", json=body) == 403
        assert status(read, "DELETE", "/sources/x") == 403
        assert status(read, "POST", "/try", json={"url": "nonsense://"}) == 400
        assert status(write_, "POST", "/sources", json=body) == 201
        assert status(write_, "DELETE", "/sources/x") == 404
        login = base64.b64encode(f"anyone:{read}".encode()).decode()
        assert api.get(f"{API}/sources", headers={"Authorization": f"Basic {login}"}).status_code == 200
        jobs = api.get(f"{API}/jobs", headers={"Authorization": f"Bearer {admin}"}).json()["jobs"]
        assert [job["owner"] for job in jobs] == ["writeer"]
        assert api.get(f"{API}/sources", headers={"Host": "docs.test", "Authorization": f"Bearer {read}"}).is_success
    kept = Path(public.runtime.settings.database.removeprefix("sqlite:///"))
    assert all(key.encode() not in file.read_bytes() for key in (read, write_) for file in kept.parent.glob("kept.db*"))


def test_a_person_logs_in_with_a_key_and_logs_out(public: Server) -> None:
    key = public.key("person", "read")
    page = {"Accept": "text/html"}
    with public.client(**page) as browser:
        assert browser.get("/login").status_code == 200
        wrong = browser.post("/login", data={"key": "nonsense"})
        assert (wrong.status_code, wrong.headers.get("set-cookie")) == (401, None)
        for to in ("//evil.test/", "/\\evil.test/", "https://evil.test/", "/a\nb", "", "/%09/evil"):
            came = browser.post("/login", data={"key": key, "to": to})
            assert urlsplit(came.headers["location"]).netloc == "", to
            assert came.headers["location"].startswith("/"), to
        came = browser.post("/login", data={"key": key, "to": "/sources?x=1"})
        assert (came.status_code, came.headers["location"]) == (303, "/sources?x=1")
        cookie = came.headers["set-cookie"]
        assert all(part in cookie for part in ("HttpOnly", "SameSite=strict", "Path=/"))
        assert browser.get("/sources").status_code == 200
        assert "Log out" in browser.get("/sources").text
        assert browser.post("/sources/docs/refresh").status_code == 403, "a key for reading"
        afar = browser.post("/logout", headers={"Origin": "http://evil.test"})
        assert (afar.status_code, browser.get("/sources").status_code) == (403, 200)
        browser.post("/logout")
        assert browser.get("/sources").headers["location"] == "/login?to=/sources"
        browser.cookies.set("kept_key", "nonsense")
        assert browser.get("/sources").status_code == 303


def test_a_request_over_quota_is_refused_with_retry_after(public: Server) -> None:
    with public.client(public.key("busy", "write")) as api, public.client(public.key("boss", "admin")) as boss:
        folder = make_folder(public, "docs")
        too_large = api.post(f"{API}/sources", json={"root": make_folder(public, "a"), "max_pages": 51})
        assert too_large.status_code == 429
        first = api.post(f"{API}/sources", json={"root": make_folder(public, "a")}).json()
        assert boss.get(f"{API}/sources/{first['source']}").json()["settings"]["limits"]["max_pages"] == 50
        assert api.post(f"{API}/sources", json={"root": folder}).status_code == 201
        once = {"Idempotency-Key": "monday"}
        assert api.post(f"{API}/sources", json={"root": folder}, headers=once).status_code == 429
        refused = api.post(f"{API}/sources", json={"root": make_folder(public, "c")})
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "60")
        assert refused.headers["content-type"] == "application/problem+json"
        assert api.post(f"{API}/sources/docs/crawls").status_code == 429
        assert boss.post(f"{API}/sources", json={"root": make_folder(public, "c")}).status_code == 201
        for job in boss.get(f"{API}/jobs", params={"status": "pending"}).json()["jobs"]:
            boss.post(f"{API}/jobs/{job['id']}/cancel")
        body = {"root": make_folder(public, "d")}
        created = api.post(f"{API}/sources", json=body, headers=once)
        assert created.status_code == 201
        assert api.post(f"{API}/sources/{first['source']}/crawls").status_code == 202, (
            "and now it has as many as it may"
        )
        again = api.post(f"{API}/sources", json=body, headers=once)
        assert (again.status_code, again.json()["job"]) == (200, created.json()["job"]), "the same again is not another"
        for job in boss.get(f"{API}/jobs", params={"status": "pending"}).json()["jobs"]:
            boss.post(f"{API}/jobs/{job['id']}/cancel")
        assert "3 sources" in api.post(f"{API}/sources", json={"root": make_folder(public, "e")}).json()["detail"]


def test_too_many_requests_are_refused_with_retry_after(public: Server) -> None:
    with public.client(public.key("fast", "read")) as api, public.client(public.key("other", "read")) as other:
        statuses = [api.get(f"{API}/jobs").status_code for _ in range(60)]
        assert set(statuses) == {200}
        refused = next(answer for _ in range(500) if (answer := api.get(f"{API}/jobs")).status_code != 200)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        assert other.get(f"{API}/jobs").status_code == 200
        time.sleep(1.1)  # the time of retry-after
        assert api.get(f"{API}/jobs").status_code == 200


def test_requests_that_are_too_large_too_slow_or_too_many_are_refused_and_the_rest_answered(tmp_path: Path) -> None:
    options = {"serve__at_once": "1", "serve__streams": "1", "serve__seconds": "1", "serve__upload_mb": "1"}
    with serving(f"sqlite:///{tmp_path}/kept.db", tmp_path, workers=0, **options) as running, running.client() as api:
        at = urlsplit(running.url)
        assert api.post(f"{API}/sources", content=b"x" * 1024**2 + b"x").status_code == 413
        parts = (b"x" * 100_000 for _ in range(12))
        assert api.post(f"{API}/sources", content=parts).status_code == 413
        assert api.post(f"{API}/uploads", files={"file": ("a.md", b"x" * 2**21)}).status_code == 413
        slow = []
        for _ in range(3):
            connection = socket.create_connection((at.hostname, at.port))
            head = f"POST {API}/sources HTTP/1.1\r\nHost: {at.netloc}\r\nContent-Type: application/json\r\n"
            connection.sendall(f"{head}Content-Length: 100\r\n\r\n{{".encode())
            slow.append(connection)
        assert api.get(f"{API}/jobs").status_code == 200, "a request counts when it is whole"
        for connection in slow:
            assert connection.recv(1000).startswith(b"HTTP/1.1 503")
            connection.close()
        with socket.create_server(("127.0.0.1", 0)) as tarpit, ThreadPoolExecutor(1) as pool:
            tarpit.settimeout(10)
            page = {"url": f"http://127.0.0.1:{tarpit.getsockname()[1]}/"}
            asked = pool.submit(api.post, f"{API}/try", json=page)
            with tarpit.accept()[0]:  # it is in progress; meanwhile the server is busy
                full = api.get(f"{API}/jobs")
                assert (full.status_code, full.headers["retry-after"]) == (503, "1")
                assert api.get("/healthz").status_code == 200
                assert asked.result().status_code == 503
        assert api.get(f"{API}/jobs").status_code == 200
        with socket.create_connection((at.hostname, at.port)) as drip:
            drip.sendall(f"{head}Content-Length: 100\r\n\r\n{{".encode())
            drip.settimeout(0.2)
            until, answered = time.monotonic() + 10, b""
            while not answered and time.monotonic() < until:
                drip.sendall(b" ")  # a body that comes byte by byte is not waited for
                with suppress(TimeoutError):
                    answered = drip.recv(1000)
            assert answered.startswith(b"HTTP/1.1 503")
        with running.client() as one, one.stream("GET", f"{API}/events") as open_stream:
            assert open_stream.status_code == 200
            assert api.get(f"{API}/events").status_code == 503
            assert api.get(f"{API}/jobs").status_code == 200


def test_an_unavailable_database_is_reported_within_two_seconds(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    url = postgres_server.create_database()
    with serving(url, tmp_path, workers=0) as running, running.client() as api:
        assert api.get(f"{API}/sources").status_code == 200
        postgres_server.stop()
        try:
            time.sleep(1)  # for so long an answer counts
            began = time.monotonic()
            refused = api.get(f"{API}/sources")
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
            assert time.monotonic() - began < 3
            assert api.get("/healthz").status_code == 200
        finally:
            postgres_server.start()
        until = time.monotonic() + 30
        while api.get(f"{API}/sources").status_code != 200:
            assert time.monotonic() < until
    postgres_server.drop_database(url)


def test_every_request_is_answered_within_two_seconds_while_postgres_is_frozen(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    """Those too whose session was open already, and in the middle of a query."""
    url = postgres_server.create_database()
    paths = (f"{API}/sources", f"{API}/jobs", f"{API}/search?q=pool", "/readyz", "/", "/metrics")
    answers: list[tuple[str, int, float]] = []
    stop = threading.Event()

    def ask(path: str) -> None:
        with running.client() as client:
            while not stop.is_set():
                began = time.monotonic()
                status = client.get(path).status_code
                answers.append((path, status, time.monotonic() - began))

    with serving(url, tmp_path, workers=0) as running, running.client() as api:
        with ThreadPoolExecutor(len(paths)) as pool:
            asking = [pool.submit(ask, path) for path in paths]
            try:
                while {path for path, _, _ in answers} != set(paths):
                    assert not any(one.done() for one in asking)
                answers.clear()
                with postgres_server.frozen():  # in the middle of queries
                    time.sleep(4)
                    assert api.get("/healthz").status_code == 200
            finally:
                stop.set()
            for one in asking:
                one.result()
        assert {status for _, status, _ in answers} <= {200, 503}  # 200: answered just before the freeze
        assert {path for path, status, _ in answers if status == 503} == set(paths)
        assert max(seconds for _, _, seconds in answers) < 2, sorted(answers, key=lambda one: -one[2])[:5]
        until = time.monotonic() + 30
        while api.get(f"{API}/sources").status_code != 200:
            assert time.monotonic() < until
    postgres_server.drop_database(url)


def test_a_slow_query_is_no_frozen_server(postgres_server: PostgresServer) -> None:
    url = postgres_server.create_database()

    async def run() -> None:
        db = await open_database(url)
        db.limit_silence(0.2)
        try:
            async with db.transaction() as tx:
                await tx.execute("SELECT pg_sleep(1.5)")  # type: ignore[attr-defined]
        finally:
            await db.close()

    asyncio.run(run())
    postgres_server.drop_database(url)


def test_a_server_restarted_during_a_crawl_continues_it_and_its_event_streams(tmp_path: Path) -> None:
    kept = Kept(tmp_path, f"sqlite:///{tmp_path}/kept.db")
    kept.environment["KEPT_NETWORK__ALLOW_PRIVATE"] = "1"
    with served(40) as site, Restarted(kept) as running, running.client() as api:
        slowly = {"root": site.root, "name": "docs", "delay": 0.05, "concurrency": 1}
        job = api.post(f"{API}/sources", json=slowly).json()["job"]
        seen, last = [], None
        with api.stream("GET", f"{API}/jobs/{job}/events") as response:
            for event in parse_events(response):
                last = event.id
                seen += [event.data["url"]] if event.kind == "page" else []
                if seen:
                    break
        running.restart()
        assert api.get(f"{API}/jobs/{job}").json()["status"] in ("pending", "processing")
        for event in events(api, f"{API}/jobs/{job}/events", last):
            seen += [event.data["url"]] if event.kind == "page" else []
        assert (event.kind, event.data["status"], event.data["attempt"]) == ("job", "completed", 2)
        assert len(seen) == len(set(seen)) == event.data["progress"]["done"] > 40
        assert api.get(f"{API}/sources/docs").json()["documents"] > 40


class Restarted(Server):
    """``kept serve`` as a process that can be restarted at the same address."""

    def __init__(self, kept: Kept, *options: str) -> None:
        self.kept, self.options = kept, options
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]

    def __enter__(self) -> "Restarted":
        self.process = self.kept.start("serve", "--port", str(self.port), *self.options)
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if found := re.search(r"Kept serves at (\S+)/ ", line):
                self.url = found[1]
                break
        self._drain = threading.Thread(target=self.process.stderr.read)
        self._drain.start()
        return self

    def restart(self) -> None:
        self.__exit__()
        self.__enter__()

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(30) == 0
        self._drain.join()
        for pipe in (self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()


def test_keys_are_created_listed_and_removed_on_the_command_line(tmp_path: Path) -> None:
    write(tmp_path / "docs", install=INSTALL, notes=NOTES)
    kept = Kept(tmp_path, f"sqlite:///{tmp_path}/kept.db")
    key = kept("keys", "add", "laptop", "--scope", "write").out.strip()
    assert re.fullmatch(r"kept_[\w-]{43}", key)
    assert kept("keys", "add", "laptop").code == 2
    assert kept("keys", "add", "other", "--scope", "all").code == 2
    listed = kept("keys", "list", "--json")
    assert '"laptop"' in listed.out
    assert key not in listed.out
    with serving(kept.environment["KEPT_DATABASE"], tmp_path, workers=0) as running, running.client(key) as api:
        assert api.get(f"{API}/sources").status_code == 200
        assert kept("keys", "remove", "laptop").code == 0
        assert api.get(f"{API}/sources").status_code == 401
    assert kept("keys", "remove", "laptop").code == 3
