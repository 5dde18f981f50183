"""A web site: it can be asked for any page, but not for all of them, so reachability is the evidence.

A visit, step by step:

    1. scope      the source's own settings still have the URL in
    2. robots     the site's rules are known and allow it
    3. turn       the host's budget has room
    4. ask        through the gate, "only if it changed" where we hold something
    5. redirects  permanent: the crawl is told; temporary: followed here, from step 1 on at every hop
    6. meaning    a Visit (``visits``)
    7. pretence   what says 200 and is no page (``pretence``)
    8. render     where its scripts have to run first (``browser``)
"""

import asyncio
import errno
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from socket import gaierror
from time import monotonic

from kept.errors import SourceUnavailable
from kept.model.document import RENDERED, Validators
from kept.model.frontier import Entry, Fetched, Listed, Redirected, Refused, Unlisted, Unreachable, Visit
from kept.model.nouns import dataclass
from kept.model.source import Render, SourceSettings
from kept.model.url import resolve as resolve_link
from kept.model.url import with_route
from kept.origins.origin import Budget
from kept.origins.web import llms, sitemap
from kept.origins.web.browser import Browser
from kept.origins.web.egress import Egress
from kept.origins.web.exchange import Answer, NoAnswer, Trouble
from kept.origins.web.gate import Closed
from kept.origins.web.pacing import LONGEST_DELAY, SHARED, Host, Pacing, wait_asked
from kept.origins.web.pretence import (
    LOG_IN,
    MADE_UP,
    NOT_THERE,
    Absence,
    is_log_in_form,
    leads_to_log_in,
    names_log_in,
)
from kept.origins.web.robots import Robots, Rules, Unknown, agent_of
from kept.origins.web.scope import BY_SETTINGS, WebScope, folder_of, origin_of
from kept.origins.web.turns import Turns
from kept.origins.web.visits import GOOD, PERMANENT, REDIRECTS, is_html, is_wanted, visit_of

HOPS = 10
KNOCKING = 2.0  # seconds
FORBIDDEN = "robots.txt forbids it"
READY = 4  # visits a host's turn may wait for: while some are read, others are fetched


class WebOrigin:
    """The pages of a site that are within the scope of a source."""

    lists_everything = False

    def __init__(
        self,
        root: str,
        settings: SourceSettings,
        egress: Egress,
        *,
        user_agent: str,
        pacing: Pacing = SHARED,
        known_sitemaps: frozenset[str] = frozenset(),
        browser: str = "",
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        at_once = max(1, settings.access.concurrency)
        self._root = root
        self._access = settings.access
        self._limit = settings.limits.max_bytes
        self._egress = egress
        self._turns = Turns(pacing, at_once=at_once, delay=settings.access.delay)
        egress.turn = self._turns.aside
        self._now = now
        self._pages = settings.scope.pages
        self._scope = WebScope(root, settings.scope, this_year=now().year)
        self._robots = Robots(egress, user_agent)
        self._obey = None if settings.access.ignore_robots else agent_of(user_agent)
        self._known_sitemaps = known_sitemaps
        self._browser = Browser(
            egress,
            program=browser,
            seconds=settings.access.whole_seconds,
            most=self._limit,
            at_once=at_once,
            follows=lambda url: self._scope.refusal(url) is None,
        )
        self._sites: dict[str, _Site] = {}
        self._absences: dict[str, asyncio.Task[Absence | None]] = {}
        self._asking_robots: asyncio.Task[Rules | Unknown] | None = None
        self.admits = self._scope.admits  # asked for every link

    @property
    def concurrency(self) -> int:
        return READY * self._turns.slots

    async def share(self, budget: Budget) -> None:
        await self._turns.share(budget)
        origin = origin_of(self._root)
        await self._turns.join(origin)
        if self._obey is not None and self._asking_robots is None:  # at once: much is prepared before it is needed
            self._asking_robots = asyncio.create_task(self._robots.rules(origin))

    async def open(self) -> None:
        try:
            await self._egress.check(self._root)
        except Closed as error:
            raise SourceUnavailable(
                f"{self._root} cannot be crawled: {error}. "
                "An address that is not public has to be allowed by the owner of the source."
            ) from None

    async def knock(self) -> None:
        """SourceUnavailable if nobody is there at all. Before a first crawl that is a mistake, not a bad moment."""
        try:
            await self._egress.knock(self._root, KNOCKING)
        except OSError as error:
            unknown, refused = "its host name cannot be resolved", os.strerror(error.errno or errno.ECONNREFUSED)
            what = unknown if isinstance(error, gaierror) else refused
            by = "the proxy of " if self._access.proxy else ""
            raise SourceUnavailable(
                f"{by}{self._root} cannot be reached: {what}. Check the address, and that the site is up."
            ) from None

    async def close(self) -> None:
        asking = [*self._absences.values(), *([self._asking_robots] if self._asking_robots else [])]
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        self._absences.clear()
        self._turns.close()
        self._sites.clear()
        await self._browser.close()
        await self._egress.close()

    def why_not(self, url: str) -> str | None:
        """Why a link to this URL would not be followed; None: it would."""
        return self._scope.why_not(url)

    async def forbidden(self, url: str) -> str | None:
        """What robots.txt says against a visit; None: nothing."""
        if self._obey is None:
            return None
        rules = await self._robots.rules(origin_of(url))
        if isinstance(rules, Unknown):
            return f"robots.txt unreachable ({rules.reason})"
        return None if rules.allows(url) else FORBIDDEN

    async def list(self, admits: Callable[[str], bool] | None = None) -> AsyncIterator[Listed | Unlisted]:
        """``admits``: asked about every page that the seed lists name, instead of the scope."""
        admits = admits or self.admits
        if self._pages:
            for url in self._pages:
                yield Listed(url=url)
            return
        yield Listed(url=self._root)
        origin = origin_of(self._root)
        rules = await self._robots.rules(origin)
        if isinstance(rules, Unknown):
            yield Unlisted(url=f"{origin}/robots.txt", reason=f"robots.txt unreachable ({rules.reason})")
            if self._obey is not None:
                return
            rules = _NO_RULES
        allows = rules.allows if self._obey is not None else lambda url: True
        folders = list(dict.fromkeys((folder_of(self._root), f"{origin}/")))
        guessed = [url for url in (f"{folder}sitemap.xml" for folder in folders) if allows(url)]
        named = [url for url in (resolve_link(text, f"{origin}/") for text in rules.sitemaps) if url]
        named += sorted(self._known_sitemaps)
        async for one in sitemap.listed(self._egress, named=named, guessed=guessed, admits=admits):
            yield one
        readable = [folder for folder in folders if all(allows(folder + name) for name in llms.NAMES)]
        async for one in llms.listed(self._egress, readable, admits):
            yield one

    async def renamed(self, absent: Mapping[str, Validators], arrived: Sequence[str]) -> Mapping[str, str]:
        return {}  # redirects tell

    async def visit(self, entry: Entry, *, conditional: bool) -> Visit:
        url, _, route = entry.url.partition("#")
        if reason := self._scope.refusal(entry.url):
            return Refused(reason=reason, by_settings=reason in BY_SETTINGS)
        if route and self._access.render is Render.NEVER:
            return Refused(reason="needs a browser, which the source's settings rule out", by_settings=True)
        always = bool(route) or self._access.render is Render.ALWAYS
        # What a server says of a page before its scripts have run tells nothing of what they make of it.
        headers = entry.held.validators.as_headers() if conditional and entry.held and not always else None
        answer = await self._ask(url, headers=headers, seconds=None)
        if isinstance(answer, Answer):
            visit = await self._redirected(entry, answer) if answer.status in REDIRECTS else self._meaning(answer)
        else:
            visit = self._meaning(answer) if isinstance(answer, NoAnswer) else answer
        if isinstance(visit, Fetched):
            visit = await self._seen_through(entry, visit)
        return await self._opened(entry, visit) if always else visit

    async def render(self, entry: Entry, fetched: Fetched) -> Visit | None:
        if fetched.content_type == RENDERED:
            return Unreachable(reason="an empty page: its scripts brought nothing", status=fetched.status, retry=False)
        if self._access.render is Render.NEVER:
            reason = "an empty page before its scripts have run, which the source's settings rule out"
            return Unreachable(reason=reason, status=fetched.status, retry=False)
        return await self._run(entry, fetched)

    async def _opened(self, entry: Entry, visit: Visit) -> Visit:
        """The visit of a page that is nothing without a browser: a route, or any page of a source that says so."""
        if isinstance(visit, Redirected) and "#" in entry.url:
            return replace(visit, to=with_route(visit.to, entry.url))
        if isinstance(visit, Fetched) and is_html(visit.content_type):
            return await self._run(entry, visit)
        return visit

    async def _run(self, entry: Entry, fetched: Fetched) -> Visit:
        """The page as its scripts make it, at the address that it came from."""
        page = fetched.came_from or entry.url.partition("#")[0]
        visit = await self._browser.render(with_route(page, entry.url), fetched)
        if isinstance(visit, Redirected) and self._tells(visit.to):
            return Refused(reason=f"its scripts lead to {self._egress.redact(visit.to)}", status=visit.status)
        return replace(visit, body=self._egress.redact_page(visit.body)) if isinstance(visit, Fetched) else visit

    def _tells(self, url: str) -> bool:
        """Whether a URL has a secret of this source in it."""
        return self._egress.redact_page(url.encode()) != url.encode()

    async def _seen_through(self, entry: Entry, found: Fetched) -> Visit:
        """The page, unless it only says that it is one."""
        if "html" in found.content_type and is_log_in_form(found.body):
            if entry.held is None and names_log_in(entry.url):
                return Refused(reason=LOG_IN, status=found.status)
            return Unreachable(reason=LOG_IN, status=found.status, retry=False)
        url = found.came_from or entry.url
        absence = await self._absence(origin_of(url)) if entry.url != self._root else None
        return _not_there(entry, found.status) if absence and absence.is_like(found.body, url) else found

    async def _absence(self, origin: str) -> Absence | None:
        """How this site answers for a page that cannot be there; asked once a crawl. None: it says so, or who knows."""
        asked = self._absences.get(origin)
        if asked is None:
            asked = self._absences[origin] = asyncio.create_task(self._ask_for_nothing(origin))
        return await asyncio.shield(asked)

    async def _ask_for_nothing(self, origin: str) -> Absence | None:
        folder = folder_of(self._root) if self._root.startswith(f"{origin}/") else f"{origin}/"
        answer = await self._ask(folder + MADE_UP, headers=None, seconds=None)
        if not isinstance(answer, Answer):
            return None
        if answer.status in REDIRECTS:
            return Absence.of_redirect(answer.location)
        return Absence.of_page(answer.body, answer.url) if answer.status in GOOD else None

    async def _redirected(self, entry: Entry, answer: Answer) -> Visit:
        """Where a redirect ends. Only a permanent one at the page itself is the page's own move."""
        first, seen, spent = answer, {answer.url}, answer.took
        while True:
            to, status = answer.location, answer.status
            if to is None:
                return Unreachable(reason="redirects to nowhere", status=status, retry=False)
            shown = self._egress.redact(to)
            if to in seen:
                return Unreachable(reason=f"redirects in a circle, by {shown}", status=status, retry=False)
            outside = self._scope.refusal(to) is not None
            if leads_to_log_in(to, outside=outside) and not names_log_in(entry.url):
                return Unreachable(reason=LOG_IN, status=status, retry=False)
            if outside or self._tells(to):
                return Refused(reason=f"redirects out of the source to {shown}", status=status)
            if entry.url != self._root and len(seen) == 1:
                absence = await self._absence(origin_of(entry.url))
                if absence and absence.sends_to == to:
                    return _not_there(entry, status)
            if first.status in PERMANENT:
                return Redirected(to=to, status=status)
            if len(seen) > HOPS:
                return Unreachable(reason=f"redirects more than {HOPS} times", status=status, retry=False)
            seen.add(to)
            # No validators: those that we hold came from wherever it redirected to when it was last visited.
            next = await self._ask(to, headers=None, seconds=max(0.001, self._egress.patience.whole - spent))
            if isinstance(next, NoAnswer):
                return self._meaning(next)
            if not isinstance(next, Answer):
                return next
            if next.status not in REDIRECTS:
                found = self._meaning(next)
                return replace(found, validators=Validators(), came_from=to) if isinstance(found, Fetched) else found
            answer = next
            spent += answer.took

    async def _ask(
        self, url: str, *, headers: dict[str, str] | None, seconds: float | None
    ) -> Answer | NoAnswer | Refused | Unreachable:
        """One request, if robots and the host's budget let it."""
        origin = origin_of(url)
        site = self._sites.get(origin)
        if site is None or site.rules.until <= monotonic():
            found = await self._site(origin)
            if isinstance(found, Unreachable):
                return found
            site = found
        if self._obey is not None and not site.rules.allows(url):
            return Refused(reason=FORBIDDEN)
        if pause := await site.host.turn():
            return Unreachable(reason="the server asked for a longer pause", retry_after=pause)
        began = monotonic()
        try:
            answer = await self._egress.ask(url, most=self._limit, headers=headers, wanted=is_wanted, seconds=seconds)
        except BaseException:
            site.host.dropped()
            raise
        if isinstance(answer, NoAnswer) and answer.trouble is Trouble.CLOSED:
            site.host.dropped()  # it was never asked
            return answer
        wait = None
        if isinstance(answer, Answer) and answer.status >= 300 and "Retry-After" in answer.headers:
            wait = wait_asked(answer.headers, self._now())
        site.host.done(began=began, took=answer.took, status=answer.status, wait=wait)
        return answer

    def _meaning(self, answer: Answer | NoAnswer) -> Visit:
        if isinstance(answer, Answer) and self._access.headers:
            answer = answer._replace(body=self._egress.redact_page(answer.body))
        return visit_of(answer, now=self._now, obey=self._obey)

    async def _site(self, origin: str) -> "_Site | Unreachable":
        host, crawling = await self._turns.join(origin)
        rules = await self._robots.rules(origin) if self._obey is not None else _NO_RULES
        if isinstance(rules, Unknown):
            return Unreachable(reason=f"robots.txt unreachable ({rules.reason})", retry_after=rules.again_in)
        site = self._sites.get(origin)
        if site is None or site.rules is not rules:
            host.slow_down(crawling, max(self._access.delay, min(rules.delay, LONGEST_DELAY)))
            site = self._sites[origin] = _Site(host, rules)
        return site


def _not_there(entry: Entry, status: int | None) -> Visit:
    """An error is never a deletion; but what never was a page need not be tried again."""
    if entry.held is None:
        return Refused(reason=NOT_THERE, status=status)
    return Unreachable(reason=NOT_THERE, status=status, retry=False)


@dataclass(frozen=True, slots=True)
class _Site:
    """One origin (scheme, host, port) as this crawl meets it."""

    host: Host
    rules: Rules


_NO_RULES = Rules("", "")
