"""A reproducible manual on loopback, and a revision of it between two crawls.

    with served(3000) as site:
        …                        # a crawl of site.root
        site.requests()          # every request since the last call: time, path and status
        site.revise()            # some pages change, move, disappear or are new

An index links to the chapters, a chapter to its pages; a page to the next, the previous and some related ones. Some
links are dead, some redirect, one is forbidden by robots.txt. Each page has one paragraph with the word
``everywhere``. The server is a process of its own, so that the crawling process may be killed.
"""

import asyncio
import hashlib
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path

CHAPTER = 30  # pages
WORDS = ("avocet", "bittern", "curlew", "dunlin", "egret", "fulmar", "godwit", "heron", "knot", "plover", "stint")

HOP = "/current.html"  # only the target of a temporary redirect: requested as a part of that visit
LISTS = frozenset({"/robots.txt", "/sitemap.xml", "/llms.txt", "/llms-full.txt"})  # requested besides the pages


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    body: bytes = b""
    headers: tuple[str, ...] = ()
    etag: str | None = None
    content_type: str = "text/html"


def manual(pages: int, *, revised: bool = False) -> dict[str, Reply]:
    """Return the response of each path. Every other path is not found."""
    return _Manual(pages, revised).replies()


class _Manual:
    def __init__(self, pages: int, revised: bool) -> None:
        self._pages = pages
        self._revised = revised

    def replies(self) -> dict[str, Reply]:
        chapters = range(0, self._pages, CHAPTER)
        replies = {
            "/robots.txt": Reply(200, b"User-agent: *\nDisallow: /private/\n", content_type="text/plain"),
            "/": _page("The manual", [f"/{first // CHAPTER:03}/" for first in chapters]),
            "/latest.html": Reply(302, headers=(f"Location: {HOP}",)),
            HOP: _page("What is current", ["/"]),
        }
        for first in chapters:
            numbers = range(first, min(first + CHAPTER, self._pages))
            links = [self._path(number) for number in numbers if self._is_linked(number)]
            links += [self._new(number) for number in numbers if self._has_new(number)]
            links += [f"/old{self._path(first)}", "/latest.html", "/private/notes.html", "/nowhere.html"]
            replies[f"/{first // CHAPTER:03}/"] = _page(f"Chapter {first // CHAPTER}", links)
            replies[f"/old{self._path(first)}"] = Reply(301, headers=(f"Location: {self._path(first)}",))
        for number in range(self._pages):
            replies |= self._replies_of(number)
        return replies

    def _replies_of(self, number: int) -> dict[str, Reply]:
        old, now = _path(number), self._path(number)
        links = [self._path(other) for other in self._related(number) if self._is_linked(other)]
        replies = {now: _page(f"Page {number}", [*links, f"/dead/{number}.html"] if number % 50 == 0 else links)}
        if not self._revised:
            return replies
        match number % 60:
            case 1:
                return {now: _page(f"Page {number}, revised", links)}
            case 2:
                return {now: _page(f"Page {number}", links, comment="built again")}  # other bytes, the same content
            case 3:
                return {}  # gone
            case 4:
                return replies | {old: Reply(301, headers=(f"Location: {now}",))}
        if self._has_new(number):
            return replies | {self._new(number): _page(f"New page {number}", links)}
        return replies

    def _related(self, number: int) -> list[int]:
        chance = random.Random(number)
        near = [number - 1, number + 1, *(number + chance.choice((-40, -7, 7, 40)) for _ in range(3))]
        return [other for other in near if 0 <= other < self._pages]

    def _is_linked(self, number: int) -> bool:
        """The revised manual no longer links to some pages, though they still exist."""
        return not (self._revised and number % 60 == 5)

    def _has_new(self, number: int) -> bool:
        return self._revised and number % 20 == 0

    def _new(self, number: int) -> str:
        return f"/new/{number}.html"

    def _path(self, number: int) -> str:
        """Some pages of the revised manual have moved, with a redirect or without one."""
        moved = self._revised and number % 60 in (4, 30)
        return f"/moved/{number}.html" if moved else _path(number)


def _path(number: int) -> str:
    return f"/{number // CHAPTER:03}/{number}.html"


def _page(title: str, links: list[str], *, comment: str = "") -> Reply:
    chance = random.Random(title)
    said = "".join(
        f'<h2 id="part-{part}">On the {chance.choice(WORDS)}</h2><p>{" ".join(chance.choices(WORDS, k=60))}.</p>'
        for part in range(chance.choice((1, 2, 3)))
    )
    named = "".join(f'<li><a href="{link}">{link}</a></li>' for link in links)
    body = (
        f"<!doctype html><html><head><title>{title}</title></head><body><!-- {comment} -->"
        f'<nav><a href="/">The manual</a></nav><main><h1 id="top">{title}</h1>'
        f"<p>This is found everywhere. It is {title}.</p>{said}<ul>{named}</ul></main></body></html>"
    ).encode()
    etag = f'"{hashlib.sha256(body).hexdigest()[:16]}"' if chance.random() < 0.9 else None
    return Reply(200, body, etag=etag)


# Serving it -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    at: float
    path: str
    status: int


class Site:
    """The manual, served by a process of its own."""

    def __init__(self, server: subprocess.Popen[str], pages: int) -> None:
        self._server = server
        self.pages = pages
        self.revised = False
        self.origin = f"http://127.0.0.1:{self._told()}"
        self.root = f"{self.origin}/"

    def revise(self) -> None:
        self.revised = True
        self._send_command("revise")

    def requests(self) -> list[LoggedRequest]:
        """Return every request since the last call. Waits until its client has disconnected."""
        return [LoggedRequest(*one) for one in json.loads(self._send_command("requests"))]

    def _send_command(self, command: str) -> str:
        assert self._server.stdin is not None
        self._server.stdin.write(f"{command}\n")
        self._server.stdin.flush()
        return self._told()

    def _told(self) -> str:
        assert self._server.stdout is not None
        said = self._server.stdout.readline()
        if not said:
            raise RuntimeError("the process that serves the manual is gone")
        return said.strip()


@contextmanager
def served(pages: int) -> Iterator[Site]:
    command = [sys.executable, "-m", "tests.sites.manual", str(pages)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as server:
        try:
            yield Site(server, pages)
        finally:
            server.kill()


def write(folder: Path, pages: int) -> None:
    """Write the pages as files, for a static file server."""
    for path, reply in manual(pages).items():
        if reply.status == 200:
            file = folder / (path.lstrip("/") + ("index.html" if path.endswith("/") else ""))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(reply.body)


# From here on: in the process that serves ---------------------------------------------------------------------------


OURS = "/is-ready"


@dataclass
class _Server:
    pages: int
    replies: dict[str, Reply] = field(default_factory=dict)
    record: list[LoggedRequest] = field(default_factory=list)
    clients: set[asyncio.Task[None]] = field(default_factory=set)
    port: int = 0

    async def run(self) -> None:
        self.replies = manual(self.pages)
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1000)
        self.port = server.sockets[0].getsockname()[1]
        print(self.port, flush=True)
        while command := await asyncio.to_thread(sys.stdin.readline):
            answer: object = None
            if command == "revise\n":
                self.replies = manual(self.pages, revised=True)
            elif command == "requests\n":
                await self._until_alone()
                answer = [(one.at, one.path, one.status) for one in self.record if one.path != OURS]
                self.record = []
            print(json.dumps(answer), flush=True)

    async def _until_alone(self) -> None:
        """Wait for the earlier connections: a new one is served after them, and then they have to close."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(f"GET {OURS} HTTP/1.1\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        writer.close()
        while self.clients:
            await asyncio.wait(self.clients)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.clients.add(task)
        task.add_done_callback(self.clients.discard)
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                writer.write(self._answer(head))
                await writer.drain()
        writer.close()

    def _answer(self, head: str) -> bytes:
        path = head.split(" ", 2)[1]
        reply = self.replies.get(path, Reply(404, b"nothing here"))
        status, body = reply.status, reply.body
        if reply.etag and f"if-none-match: {reply.etag}\r\n" in head.replace("If-None-Match", "if-none-match"):
            status, body = 304, b""
        self.record.append(LoggedRequest(time.time(), path, status))
        lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", f"Content-Type: {reply.content_type}"]
        lines += [f"Content-Length: {len(body)}", *reply.headers]
        if reply.etag:
            lines.append(f"ETag: {reply.etag}")
        return "\r\n".join([*lines, "", ""]).encode() + body


if __name__ == "__main__":
    asyncio.run(_Server(int(sys.argv[1])).run())
