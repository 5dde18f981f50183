"""Crawl a site of many numbered pages, undisturbed and killed several times, and compare the documents.

    python -m tests.crash.numbered_pages --pages 22000 --kills 4 --store both

The site is served on a port that looks like a year. Both crawls have to keep every page, without being partial, and a
refresh of the unchanged site has to find nothing new. The short form is in tests/contract/test_guards.py.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path

from tests.crash.state import reading
from tests.ledger_check import check_database
from tests.postgres import PostgresServer

PORT = 21100


class NumberedSite:
    """Serves /1.html, /2.html … and indexes of five hundred pages each, with ETags."""

    def __init__(self, pages: int) -> None:
        self.pages, self.served = pages, 0
        self._started = threading.Event()
        threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True).start()
        self._started.wait(10)

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._answer, "127.0.0.1", PORT)
        self._started.set()
        await server.serve_forever()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                self.served += 1
                path = head.split(b" ", 2)[1].decode()
                body = self._page(path)
                if body is None:
                    writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                elif b"if-none-match" in head.lower():
                    writer.write(b'HTTP/1.1 304 Not Modified\r\nETag: "1"\r\n\r\n')
                else:
                    kind = f'Content-Type: text/html\r\nETag: "1"\r\nContent-Length: {len(body)}\r\n\r\n'
                    writer.write(f"HTTP/1.1 200 OK\r\n{kind}".encode() + body)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def _page(self, path: str) -> bytes | None:
        name = path.strip("/").removesuffix(".html")
        if path == "/":
            links = [f"index{at}.html" for at in range(0, self.pages, 500)]
        elif name.startswith("index"):
            first = int(name.removeprefix("index"))
            links = [f"{number}.html" for number in range(first + 1, min(first + 500, self.pages) + 1)]
        elif name.isdigit() and 1 <= int(name) <= self.pages:
            links = []
        else:
            return None
        text = "".join(f'<a href="/{link}">{link}</a> ' for link in links)
        return f"<html><body><main><h1>Page {path}</h1><p>This is {path}.</p>{text}</main></body></html>".encode()


def run_kept(database: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "kept", "--json", "--database", database, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=os.environ)


def crawl(site: NumberedSite, database: str, kills: int) -> dict[str, str]:
    """Keep the site, with a process that is killed so often. Returns its documents: URL → content."""
    started, command = (
        time.monotonic(),
        ("add", f"http://127.0.0.1:{PORT}/", "--name", "numbers", "--concurrency", "32"),
    )
    for _ in range(kills):
        until = site.served + site.pages // (kills + 2)
        process = run_kept(database, *command)
        while site.served < until and process.poll() is None:
            time.sleep(0.02)
        process.kill()
        process.wait()
        command = ("refresh", "numbers")
    output, _ = run_kept(database, *command).communicate()
    result = json.loads(output)
    assert result["status"] == "completed", result
    assert result["partial"] is False, result
    print(f"  {kills} kills: {result['counts']} in {time.monotonic() - started:.0f} s", flush=True)
    with reading(database) as db:
        rows = db.rows("SELECT a.url, c.hash FROM documents_active a JOIN contents c ON c.id = a.content_id")
    return dict(rows)


def compare(site: NumberedSite, undisturbed: str, killed: str, kills: int) -> None:
    expected, found = crawl(site, undisturbed, 0), crawl(site, killed, kills)
    indexes = -(-site.pages // 500)
    assert len(expected) == site.pages + indexes + 1, f"{len(expected)} documents of {site.pages + indexes + 1}"
    assert expected == found
    again, _ = run_kept(killed, "refresh", "numbers").communicate()
    counts = json.loads(again)["counts"]
    assert counts == dict.fromkeys(counts, 0) | {"unchanged": len(expected)}, counts
    for database in (undisturbed, killed):
        check_database(database)
    print(f"  {len(expected):,} documents in both; an unchanged refresh finds nothing new")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.crash.numbered_pages")
    parser.add_argument("--pages", type=int, default=22_000)
    parser.add_argument("--kills", type=int, default=4)
    parser.add_argument("--store", choices=["sqlite", "postgres", "both"], default="both")
    arguments = parser.parse_args()
    site = NumberedSite(arguments.pages)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if arguments.store != "postgres":
            print("sqlite", flush=True)
            compare(site, f"sqlite:///{folder}/one.db", f"sqlite:///{folder}/other.db", arguments.kills)
        if arguments.store != "sqlite":
            print("postgres", flush=True)
            server = PostgresServer(os.environ.get("KEPT_TEST_POSTGRES"))
            stack.callback(server.close)
            if not os.environ.get("KEPT_TEST_POSTGRES"):
                server.start()
            compare(site, server.create_database(), server.create_database(), arguments.kills)


if __name__ == "__main__":
    main()
