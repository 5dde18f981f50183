"""A server on loopback, as ``kept serve`` starts it, in a thread of its own; and a client that speaks to it."""

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
    """What a test needs of a server that runs."""

    url: str
    loop: asyncio.AbstractEventLoop
    runtime: Runtime

    def client(self, key: str | None = None, **headers: str) -> httpx2.Client:
        told = headers | ({"Authorization": f"Bearer {key}"} if key else {})
        return httpx2.Client(base_url=self.url, headers=told, timeout=30)

    def key(self, name: str, scope: str) -> str:
        made = asyncio.run_coroutine_threadsafe(keys.add_key(self.runtime.db, name, scope), self.loop)
        return made.result(30)[1]


@contextmanager
def serving(database: str, folder: Path, *, workers: int = 1, host: str = "127.0.0.1", **said: str) -> Iterator[Server]:
    """A server whose settings are ``said`` as variables: ``serve__at_once="2"``."""
    environment = {f"KEPT_{name.upper()}": value for name, value in said.items()}
    environment.setdefault("KEPT_SERVE__UPLOADS", str(folder / "uploads"))
    environment.setdefault("KEPT_NETWORK__ALLOW_PRIVATE", "1")
    environment.setdefault("KEPT_NETWORK__ALLOW_FILES", "1")
    loaded = settings.load(environment=environment, folder=folder, database=database)
    started: dict[str, Any] = {}
    there = threading.Event()

    async def run() -> None:
        async with open_runtime(loaded) as runtime:
            started.update(runtime=runtime, loop=asyncio.get_running_loop(), stop=asyncio.Event())

            def ready(url: str) -> None:
                started["url"] = url
                there.set()

            await runtime.server_host.serve(started["stop"], host=host, port=0, workers=workers, on_ready=ready)

    def main() -> None:
        try:
            asyncio.run(run())
        finally:
            there.set()

    thread = threading.Thread(target=main)
    thread.start()
    try:
        assert there.wait(30)
        yield Server(started["url"], started["loop"], started["runtime"])
    finally:
        started["loop"].call_soon_threadsafe(started["stop"].set)
        thread.join(30)
        assert not thread.is_alive(), "the server stops when it is told to"


@dataclass(frozen=True)
class Event:
    id: str
    kind: str
    data: Mapping[str, Any]


def events(client: httpx2.Client, path: str, last: str | None = None, *, most: int = 100_000) -> Iterator[Event]:
    """The events of a stream, until it ends or so many came."""
    with listening(client, path, last) as response:
        yield from islice(told(response), most)


def listening(client: httpx2.Client, path: str, last: str | None = None) -> Any:
    """A stream that is open: what happens from now on comes."""
    return client.stream("GET", path, headers={"Last-Event-ID": last} if last else {})


def told(response: httpx2.Response) -> Iterator[Event]:
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
    """The job at its end."""
    for event in events(client, f"/api/v1/jobs/{job}/events"):
        if event.kind == "job" and event.data["status"] in ("completed", "failed", "cancelled"):
            return dict(event.data)
    raise AssertionError("the stream ended before the job")
