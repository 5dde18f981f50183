"""Follow every link of the host with Scrapy, and store nothing. Prints the number of pages."""

import sys

from scrapy.crawler import CrawlerProcess
from scrapy.http import Response
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule

ROOT = sys.argv[1]
SETTINGS = {"LOG_LEVEL": "ERROR", "CONCURRENT_REQUESTS": 64, "CONCURRENT_REQUESTS_PER_DOMAIN": 64, "DOWNLOAD_DELAY": 0}


class Links(CrawlSpider):
    name = "links"
    start_urls = (ROOT,)
    allowed_domains = ("127.0.0.1",)
    rules = (Rule(LinkExtractor(), callback="seen", follow=True),)
    pages = 0

    def seen(self, response: Response) -> None:
        Links.pages += 1


process = CrawlerProcess(SETTINGS)
process.crawl(Links)
process.start()
print(Links.pages)
