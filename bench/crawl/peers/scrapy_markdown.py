"""Follow every link with Scrapy and store each page as Markdown in SQLite. Prints the number of pages."""

import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

from markdownify import markdownify
from scrapy.crawler import CrawlerProcess
from scrapy.http import Response
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule

ROOT, FOLDER = sys.argv[1], Path(sys.argv[2])


class Store:
    pages = 0

    def open_spider(self) -> None:
        self.database = sqlite3.connect(FOLDER / "pages.db")
        self.database.execute("CREATE VIRTUAL TABLE pages USING fts5 (url, title, text)")

    def process_item(self, item: dict[str, str]) -> dict[str, str]:
        self.database.execute("INSERT INTO pages VALUES (:url, :title, :text)", item)
        self.database.commit()
        Store.pages += 1
        return item

    def close_spider(self) -> None:
        self.database.close()


class Pages(CrawlSpider):
    name = "pages"
    start_urls = (ROOT,)
    allowed_domains = ("127.0.0.1",)
    rules = (Rule(LinkExtractor(), callback="keep", follow=True),)

    def keep(self, response: Response) -> Iterator[dict[str, str]]:
        title = response.css("title::text").get("")
        yield {"url": response.url, "title": title, "text": markdownify(response.text)}


process = CrawlerProcess(
    {
        "LOG_LEVEL": "ERROR",
        "CONCURRENT_REQUESTS": 64,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 64,
        "DOWNLOAD_DELAY": 0,
        "ITEM_PIPELINES": {Store: 1},
    }
)
process.crawl(Pages)
process.start()
print(Store.pages)
