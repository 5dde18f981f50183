"""Follow every link of the host with Crawlee (Parsel), and store nothing. Prints the number of pages."""

import asyncio
import logging
import sys

from crawlee import ConcurrencySettings
from crawlee.crawlers import ParselCrawler, ParselCrawlingContext
from crawlee.storage_clients import MemoryStorageClient

ROOT = sys.argv[1]


async def main() -> None:
    crawler = ParselCrawler(
        concurrency_settings=ConcurrencySettings(min_concurrency=64, max_concurrency=64, desired_concurrency=64),
        storage_client=MemoryStorageClient(),
        configure_logging=False,
    )
    pages = 0

    @crawler.router.default_handler
    async def seen(context: ParselCrawlingContext) -> None:
        nonlocal pages
        pages += 1
        await context.enqueue_links(strategy="same-origin")

    logging.disable(logging.CRITICAL)
    await crawler.run([ROOT])
    print(pages)


asyncio.run(main())
