"""Measure how much a crawl slows down while another host of the same process sends one byte per second.

    python -m bench.drip [--pages 1000] [--rounds 3]

The site is crawled alone and beside the slow host, alternately; the best round of each counts. Target: 0.9 of the
speed.
"""

import argparse
import asyncio
import logging
import tempfile
import time
from pathlib import Path

from kept.model.root import derive_name
from kept.model.source import Access, SourceKind, SourceSettings, host_and_port
from kept.runtime.runtime import Runtime, open_runtime
from kept.service import jobs, sources
from kept.settings import load
from tests.sites.hostile import hostile
from tests.sites.manual import Site, served


def main() -> None:
    parser = argparse.ArgumentParser("bench.drip", description=__doc__)
    parser.add_argument("--pages", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    logging.getLogger("kept").setLevel(logging.WARNING)
    alone, beside = [], []
    with served(arguments.pages) as site:
        for number in range(1, arguments.rounds + 1):
            alone.append(asyncio.run(_measure(site, dripping=False)))
            beside.append(asyncio.run(_measure(site, dripping=True)))
            print(f"round {number}: alone {alone[-1]:.2f} s, beside one that drips {beside[-1]:.2f} s", flush=True)
    print(f"It keeps {min(alone) / min(beside):.2f} of its speed.")


async def _measure(site: Site, *, dripping: bool) -> float:
    """Return the seconds of a first crawl of the site."""
    with tempfile.TemporaryDirectory(prefix="bench") as folder:
        made = load(environment={}, folder=Path(folder), database=f"sqlite:///{folder}/kept.db")
        async with hostile() as slow, open_runtime(made) as runtime:
            other = asyncio.create_task(_crawl(runtime, slow.url("/drips/" if dripping else "/good")))
            if dripping:
                for _ in range(Access().concurrency):
                    await slow.drips.get()
            else:
                await other  # the readers are up, as they are beside the other
            began = time.monotonic()
            await _crawl(runtime, site.root)
            took = time.monotonic() - began
            other.cancel()
            await asyncio.gather(other, return_exceptions=True)
            return took


async def _crawl(runtime: Runtime, root: str) -> None:
    settings = SourceSettings(access=Access(allowed=(host_and_port(root),)))
    name = derive_name(root)
    source, _ = await sources.get_or_create_source(
        runtime.db, root=root, kind=SourceKind.WEB, name=name, settings=settings
    )
    await runtime.worker_host.run_job(await jobs.request_crawl(runtime.db, source.label))


if __name__ == "__main__":
    main()
