"""What a site asks of crawlers: robots.txt, as RFC 9309 has it.

    2xx                       its rules (the first 500 KiB of it), unless a look at them for each page would take long
    4xx, too many redirects   no rules: everything is allowed
    429, 5xx, no answer       unknown: nothing is visited until it can be read; pages fail, they are not skipped

Rules are kept for a day. When they cannot be read again after that, the old ones go on counting.
"""

import asyncio
import codecs
import re
from collections.abc import Callable
from datetime import timedelta
from time import monotonic

from protego import Protego

from kept.model.nouns import dataclass
from kept.origins.web.egress import Egress
from kept.origins.web.exchange import Answer, NoAnswer, Trouble

LARGEST = 500 * 1024
MOST_WILDCARDS = 10_000  # of all rules together: each is looked for in every URL, some milliseconds in all
FRESH = timedelta(hours=24)
REDIRECTS = 5
_FIRST_WAIT, _LONGEST_WAIT = 2.0, 300.0  # seconds, before an unreadable robots.txt is asked for again


class Rules:
    """What one robots.txt lets us visit."""

    until = float("inf")  # by the clock of whoever keeps them

    def __init__(self, text: str, agent: str) -> None:
        parsed = Protego.parse(text)
        self._agent = agent
        # A file that forbids nothing needs no look at each URL. (Misspelled rules count as well: "disallaw".)
        self._parsed = parsed if re.search("(?i)l[oa]w", text) else None
        self.sitemaps: tuple[str, ...] = tuple(dict.fromkeys(parsed.sitemaps))
        self.delay = parsed.crawl_delay(agent) or 0.0

    def allows(self, url: str) -> bool:
        return self._parsed is None or self._parsed.can_fetch(url, self._agent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """robots.txt cannot be read now. It will be asked for again in a while."""

    reason: str
    again_in: timedelta


def agent_of(user_agent: str) -> str:
    """The word by which robots.txt may address us."""
    word = re.match(r"[A-Za-z_-]+", user_agent)
    return user_agent if word is None or word[0].lower() == "mozilla" else word[0]


def judge(answer: Answer | NoAnswer, agent: str) -> Rules | str:
    """The rules that follow from an answer, or why they are unknown."""
    if isinstance(answer, NoAnswer):
        if answer.trouble is Trouble.NEVER and answer.status is not None:
            return Rules("", agent)  # a maze of redirects: unavailable
        return answer.reason
    if 200 <= answer.status < 300:
        text = decode(answer.body)
        if text.count("*") + text.count("$") > MOST_WILDCARDS:
            return f"more than {MOST_WILDCARDS:,} wildcards"
        return Rules(text, agent)
    if 400 <= answer.status < 500 and answer.status != 429:
        return Rules("", agent)
    return f"status {answer.status}"


def decode(body: bytes) -> str:
    """UTF-8 as the standard wants it, UTF-16 where its mark says so. A line that was cut off forbids nothing."""
    if len(body) >= LARGEST:
        body = body[: body.rfind(b"\n") + 1]
    if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return body.decode("utf-16", "replace")
    return body.decode("utf-8-sig", "replace")


class Robots:
    """The rules of the origins that one crawl meets, each read once a day."""

    def __init__(self, egress: Egress, user_agent: str, clock: Callable[[], float] = monotonic) -> None:
        self._egress = egress
        self._agent = agent_of(user_agent)
        self._clock = clock
        self._known: dict[str, _Known] = {}

    async def rules(self, origin: str) -> Rules | Unknown:
        """For an origin as ``https://host`` or ``https://host:port``."""
        known = self._known.get(origin)
        if known is None:
            known = self._known[origin] = _Known()
        async with known.asking:  # many pages wait for one robots.txt
            if self._clock() >= known.until:
                await self._ask(origin, known)
        if known.rules is not None:
            known.rules.until = known.until
            return known.rules
        return Unknown(reason=known.reason, again_in=timedelta(seconds=max(0.0, known.until - self._clock())))

    async def _ask(self, origin: str, known: "_Known") -> None:
        answer = await self._egress.follow(
            f"{origin}/robots.txt", most=LARGEST, wanted=_is_file, cut=True, redirects=REDIRECTS
        )
        found = judge(answer, self._agent)
        if isinstance(found, Rules):
            known.rules, known.failures = found, 0
            known.until = self._clock() + FRESH.total_seconds()
        else:
            known.reason = found
            known.until = self._clock() + min(_LONGEST_WAIT, _FIRST_WAIT * 2**known.failures)
            known.failures += 1


class _Known:
    def __init__(self) -> None:
        self.rules: Rules | None = None
        self.reason = ""
        self.until = float("-inf")
        self.failures = 0
        self.asking = asyncio.Lock()


def _is_file(status: int, headers: object) -> bool:
    return 200 <= status < 300
