"""A light site of any number of small pages, which a process of its own makes as they are requested.

with served(folder, 50000) as (root, edit): …   # a crawl of root; edit() changes half of the pages
"""

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

LINKS = 20  # of a page, to pages that no other links to


@contextmanager
def served(folder: Path, pages: int) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield the root of a site, and a function that changes half of its pages. Nothing is written to the folder."""
    command = [sys.executable, "-m", "bench.site", str(pages)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin
        assert server.stdout
        stdin, stdout = server.stdin, server.stdout

        def edit() -> None:
            stdin.write("edit\n")
            stdin.flush()
            stdout.readline()

        try:
            yield f"http://127.0.0.1:{int(stdout.readline())}/", edit
        finally:
            server.kill()


class _Site:
    def __init__(self, pages: int) -> None:
        self.edition = 1
        self._pages = pages

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                writer.write(self._answer((await reader.readuntil(b"\r\n\r\n")).decode("latin-1")))
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            writer.close()

    def _answer(self, head: str) -> bytes:
        path = head.split(" ", 2)[1]
        name = path.removeprefix("/").removeprefix("p")
        number = 0 if path == "/" else int(name) if name.isdigit() and path.startswith("/p") else -1
        if not 0 <= number < self._pages:
            return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
        edition = self.edition if number % 2 == 0 and number < self._pages // 2 * 2 else 1
        etag = f'"{number}-{edition}"'
        if f"if-none-match: {etag}" in head.lower():
            return f"HTTP/1.1 304 Not Modified\r\nETag: {etag}\r\n\r\n".encode()
        body = self._body(number, edition)
        lines = ["HTTP/1.1 200 OK", "Content-Type: text/html", f"Content-Length: {len(body)}", f"ETag: {etag}"]
        return "\r\n".join([*lines, "", ""]).encode() + body

    def _body(self, number: int, edition: int) -> bytes:
        from bench.growth import make_text

        parts = make_text(number, edition).strip().split("\n\n")
        text = "".join(_html(part) for part in parts)
        children = range(number * LINKS + 1, min(number * LINKS + LINKS + 1, self._pages))
        links = "".join(f'<li><a href="/p{child}">{child}</a></li>' for child in children)
        return f"<!doctype html><title>Page {number}</title><nav><ul>{links}</ul></nav><main>{text}</main>".encode()


def _html(part: str) -> str:
    marks, _, heading = part.partition(" ")
    return f"<h{len(marks)}>{heading}</h{len(marks)}>" if part.startswith("#") else f"<p>{part}</p>"


async def _serve(pages: int) -> None:
    site = _Site(pages)
    server = await asyncio.start_server(site.serve, "127.0.0.1", 0, backlog=1000)
    print(server.sockets[0].getsockname()[1], flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        site.edition += 1
        print("edited", flush=True)


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
