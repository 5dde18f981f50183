"""A bare loop of conditional requests, as fast as aiohttp goes: what an unchanged refresh cannot do without.

    python -m bench.conditional FILE CONCURRENCY

FILE has a line for each page: URL, ETag, Last-Modified, with tabs between. Prints the seconds and how many were
answered 304.
"""

import asyncio
import sys
import time
from pathlib import Path

import aiohttp


async def main(file: Path, concurrency: int) -> None:
    waiting = [line.split("\t") for line in file.read_text().splitlines()]
    waiting.reverse()
    not_modified = 0

    async def ask(session: aiohttp.ClientSession) -> None:
        nonlocal not_modified
        while waiting:
            url, etag, modified = waiting.pop()
            offered = {"If-None-Match": etag, "If-Modified-Since": modified}
            async with session.get(url, headers={name: value for name, value in offered.items() if value}) as answer:
                await answer.read()
                not_modified += answer.status == 304

    began = time.monotonic()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=concurrency)) as session:
        await asyncio.gather(*(ask(session) for _ in range(concurrency)))
    print(time.monotonic() - began, not_modified)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
