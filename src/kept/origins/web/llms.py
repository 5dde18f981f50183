"""llms.txt: the links that a site offers to language models, as seeds of a crawl (llmstxt.org)."""

import re
from collections.abc import AsyncIterator, Callable, Iterable

from kept.model.frontier import Listed, Unlisted
from kept.model.url import resolve_all
from kept.origins.web.egress import Egress
from kept.origins.web.exchange import Headers, NoAnswer
from kept.origins.web.sitemap import is_trouble, why_unread

LARGEST = 1024 * 1024
MOST_URLS = 20_000
NAMES = ("llms.txt", "llms-full.txt")  # the second only where there is no first

# Every part is bounded and none can be split in two ways: the text may be anybody's.
_LINK = re.compile(
    r"\]\([ \t]{0,9}([^\s()<>]{1,2048}(?:\([^\s()<>]{0,256}\)[^\s()<>]{0,256}){0,4})(?:\s[^()\n]{0,200})?\)|"
    r"(?:\]\()?<((?<=\]\(<)[^<>\n]{1,2048}|https?://[^\s<>]{1,2048})>|"
    r"^[ \t]{0,9}[-*]?[ \t]{0,9}(https?://[^\s<>\"')\]]{1,2048})",
    re.MULTILINE,
)


def links(text: str, base: str) -> list[str]:
    """Where the links of a markdown text lead, each once: in brackets, in angles, or bare at a line's beginning."""
    return resolve_all([a or b or c for a, b, c in _LINK.findall(text)], base)[:MOST_URLS]


async def listed(
    egress: Egress, folders: Iterable[str], admits: Callable[[str], bool]
) -> AsyncIterator[Listed | Unlisted]:
    """The admitted pages that the llms.txt of these folders name. Most sites have none, and that is no failure."""
    for folder in dict.fromkeys(folders):
        for name in NAMES:
            answer = await egress.follow(f"{folder}{name}", most=LARGEST, wanted=_is_text, cut=True)
            if isinstance(answer, NoAnswer) or answer.status != 200:
                if is_trouble(answer):
                    yield Unlisted(url=f"{folder}{name}", reason=f"{name}: {why_unread(answer)}")
                continue
            for url in links(answer.body.decode("utf-8-sig", "replace"), answer.url):
                if admits(url):
                    yield Listed(url=url)
            if answer.body:
                break


def _is_text(status: int, headers: Headers) -> bool:
    # A page served with 200 for whatever one asks for is HTML.
    return status == 200 and "html" not in headers.get("Content-Type", "")
