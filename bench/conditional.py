"""Measure a bare loop of conditional requests with aiohttp: the least that an unchanged refresh has to do.

    python -m bench.conditional FILE CONCURRENCY

FILE has a line for each page: URL, ETag and Last-Modified, separated by tabs. Prints the seconds and the number of
304 responses.
"""

import argparse
import asyncio
import time
from pathlib import Path

import aiohttp


async def main(file: Path, concurrency: int) -> None:
    pending = [line.split("\t") for line in file.read_text().splitlines()]
    pending.reverse()
    not_modified = 0

    async def send_requests(session: aiohttp.ClientSession) -> None:
        nonlocal not_modified
        while pending:
            url, etag, modified = pending.pop()
            validators = {"If-None-Match": etag, "If-Modified-Since": modified}
            async with session.get(
                url, headers={name: value for name, value in validators.items() if value}
            ) as response:
                await response.read()
                not_modified += response.status == 304

    started = time.monotonic()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=concurrency)) as session:
        await asyncio.gather(*(send_requests(session) for _ in range(concurrency)))
    print(time.monotonic() - started, not_modified)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("concurrency", type=int)
    arguments = parser.parse_args()
    asyncio.run(main(arguments.file, arguments.concurrency))
