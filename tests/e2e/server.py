"""A server on loopback, as ``kept serve`` starts it, in a thread of its own, and clients for it."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import httpx2

from kept import settings
from kept.runtime.runtime import Runtime, open_runtime
from kept.service import keys


@dataclass
class Server:
    """A running server."""

    url: str
    loop: asyncio.AbstractEventLoop
    runtime: Runtime

    def client(self, key: str | None = None, **headers: str) -> httpx2.Client:
        all_headers = headers | ({"Authorization": f"Bearer {key}"} if key else {})
        return httpx2.Client(base_url=self.url, headers=all_headers, timeout=30)

    def key(self, name: str, scope: str) -> str:
        created = asyncio.run_coroutine_threadsafe(keys.add_key(self.runtime.db, name, scope), self.loop)
        return created.result(30)[1]

    def remove_key(self, name: str) -> None:
        asyncio.run_coroutine_threadsafe(keys.remove_key(self.runtime.db, name), self.loop).result(30)


@contextmanager
def serving(
    database: str, folder: Path, *, workers: int = 1, host: str = "127.0.0.1", **options: str
) -> Iterator[Server]:
    """Run a server; ``options`` are named as in the environment: ``serve__at_once="2"``."""
    environment = {f"KEPT_{name.upper()}": value for name, value in options.items()}
    environment.setdefault("KEPT_SERVE__UPLOADS", str(folder / "uploads"))
    environment.setdefault("KEPT_NETWORK__ALLOW_PRIVATE", "1")
    environment.setdefault("KEPT_NETWORK__ALLOW_FILES", "1")
    loaded = settings.load(environment=environment, folder=folder, database=database)
    started: dict[str, Any] = {}
    is_ready = threading.Event()

    async def run() -> None:
        async with open_runtime(loaded) as runtime:
            started.update(runtime=runtime, loop=asyncio.get_running_loop(), stop=asyncio.Event())

            def ready(url: str) -> None:
                started["url"] = url
                is_ready.set()

            await runtime.server_host.serve(started["stop"], host=host, port=0, workers=workers, on_ready=ready)

    def main() -> None:
        try:
            asyncio.run(run())
        finally:
            is_ready.set()

    thread = threading.Thread(target=main)
    thread.start()
    try:
        assert is_ready.wait(30)
        yield Server(started["url"], started["loop"], started["runtime"])
    finally:
        started["loop"].call_soon_threadsafe(started["stop"].set)
        thread.join(30)
        assert not thread.is_alive(), "the server stops on request"


@dataclass(frozen=True)
class Event:
    id: str
    kind: str
    data: Mapping[str, Any]


def events(client: httpx2.Client, path: str, last: str | None = None, *, most: int = 100_000) -> Iterator[Event]:
    """Yield the events of a stream until it ends, at most so many."""
    with open_stream(client, path, last) as response:
        yield from islice(parse_events(response), most)


def open_stream(client: httpx2.Client, path: str, last: str | None = None) -> Any:
    """Open a stream of events."""
    return client.stream("GET", path, headers={"Last-Event-ID": last} if last else {})


def parse_events(response: httpx2.Response) -> Iterator[Event]:
    if response.status_code == 204:
        return
    assert response.status_code == 200, response.read()
    fields: dict[str, str] = {}
    until = time.monotonic() + 60
    for line in response.iter_lines():
        assert time.monotonic() < until, "nothing happens any more"
        name, _, value = line.partition(": ")
        if line and name:
            fields[name] = value
        elif "data" in fields:
            yield Event(fields["id"], fields["event"], json.loads(fields["data"]))
            fields = {}


def wait_for(client: httpx2.Client, job: str) -> dict[str, Any]:
    """Wait for a job to end and return it."""
    for event in events(client, f"/api/v1/jobs/{job}/events"):
        if event.kind == "job" and event.data["status"] in ("completed", "failed", "cancelled"):
            return dict(event.data)
    raise AssertionError("the stream ended before the job")
