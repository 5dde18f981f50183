"""llms.txt (llmstxt.org): the links that a site offers to language models, as seeds of a crawl."""

import re
from collections.abc import AsyncIterator, Callable, Iterable

from kept.model.frontier import ListedUrl, ListingFailure
from kept.model.url import resolve_links
from kept.origins.web.http.client import HttpClient
from kept.origins.web.http.messages import FailedRequest, Headers
from kept.origins.web.sitemap import failure_reason, is_failure

MAX_BYTES = 1024 * 1024
MAX_URLS = 20_000
FILE_NAMES = ("llms.txt", "llms-full.txt")  # the second only without the first

# Every part is bounded and unambiguous, so that untrusted text cannot cause backtracking.
_LINK = re.compile(
    r"\]\([ \t]{0,9}([^\s()<>]{1,2048}(?:\([^\s()<>]{0,256}\)[^\s()<>]{0,256}){0,4})(?:\s[^()\n]{0,200})?\)|"
    r"(?:\]\()?<((?<=\]\(<)[^<>\n]{1,2048}|https?://[^\s<>]{1,2048})>|"
    r"^[ \t]{0,9}[-*]?[ \t]{0,9}(https?://[^\s<>\"')\]]{1,2048})",
    re.MULTILINE,
)


def parse_links(text: str, base: str) -> list[str]:
    """Return the unique link targets of a Markdown text: in brackets, in angles, or bare at a line's beginning."""
    return resolve_links([a or b or c for a, b, c in _LINK.findall(text)], base)[:MAX_URLS]


async def list_pages(
    client: HttpClient, folders: Iterable[str], admits: Callable[[str], bool]
) -> AsyncIterator[ListedUrl | ListingFailure]:
    """Yield the admitted pages that the llms.txt of these folders name. A missing file is not a failure."""
    for folder in dict.fromkeys(folders):
        for name in FILE_NAMES:
            response = await client.get_following_redirects(
                f"{folder}{name}", max_bytes=MAX_BYTES, wants_body=_is_text, truncate=True
            )
            if isinstance(response, FailedRequest) or response.status != 200:
                if is_failure(response):
                    yield ListingFailure(url=f"{folder}{name}", reason=f"{name}: {failure_reason(response)}")
                continue
            for url in parse_links(response.body.decode("utf-8-sig", "replace"), response.url):
                if admits(url):
                    yield ListedUrl(url=url)
            if response.body:
                break


def _is_text(status: int, headers: Headers) -> bool:
    # An HTML page served with 200 for every URL is not an llms.txt.
    return status == 200 and "html" not in headers.get("Content-Type", "")
