"""A web site as an origin. It cannot list all its pages, so a page that is no longer reachable counts as missing.

A visit, step by step:

    1. scope      the source's settings admit the URL
    2. robots     the site's rules are known and allow it
    3. rate       wait for a slot at the host (``rate_limiter``)
    4. request    through the HTTP client, conditional where a version is stored
    5. redirects  permanent: returned to the crawl; temporary: followed here, from step 1 at every hop
    6. response   translated to a Visit (``responses``)
    7. soft 404   responses with status 200 that are not pages (``soft_404``)
    8. render     pages whose scripts have to run first (``browser``)
"""

import asyncio
import errno
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from socket import gaierror

from kept.errors import SourceUnavailable
from kept.model.document import RENDERED_CONTENT_TYPE, Validators
from kept.model.frontier import (
    Fetched,
    FrontierEntry,
    ListedUrl,
    ListingFailure,
    Redirected,
    Refused,
    Unreachable,
    UrlFamily,
    Visit,
)
from kept.model.source import RenderMode, SourceSettings
from kept.model.url import resolve_link, with_route
from kept.origins.origin import AllotHostSlots, Origin
from kept.origins.web import llms, sitemap
from kept.origins.web.browser import Browser
from kept.origins.web.client_factory import check_access
from kept.origins.web.http.address_policy import AddressForbidden
from kept.origins.web.http.client import HttpClient
from kept.origins.web.http.messages import FailedRequest, HttpResponse
from kept.origins.web.polite_client import NO_RULES, PoliteClient
from kept.origins.web.rate_limiter import SHARED_RATE_LIMITERS, CrawlRateLimiter, RateLimiters
from kept.origins.web.responses import (
    OK_STATUSES,
    PERMANENT_REDIRECTS,
    REDIRECT_STATUSES,
    is_html,
    make_visit,
)
from kept.origins.web.robots import RobotsUnreachable, parse_product_token
from kept.origins.web.scope import SETTINGS_REASONS, WebScope, folder_of, origin_of
from kept.origins.web.soft_404 import (
    LOGIN_REASON,
    PROBE_NAME,
    SOFT_404_REASON,
    Soft404,
    is_login_form,
    is_login_redirect,
    is_login_url,
)

MAX_REDIRECTS = 10
PROBE_SECONDS = 2.0
VISITS_PER_SLOT = 4  # visits in flight per request slot: while some pages are parsed, others are fetched


class WebOrigin(Origin):
    """The pages of a site that are within the scope of a source."""

    lists_everything = False

    def __init__(
        self,
        root: str,
        settings: SourceSettings,
        make_client: Callable[[], HttpClient],
        *,
        user_agent: str,
        rate_limiters: RateLimiters = SHARED_RATE_LIMITERS,
        known_sitemaps: frozenset[str] = frozenset(),
        browser: str = "",
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._root = root
        self._access = settings.access
        self._max_concurrency = max(1, settings.access.concurrency)
        self._max_bytes = settings.limits.max_bytes
        self._make_client = make_client
        self._user_agent = user_agent
        self._rate = CrawlRateLimiter(rate_limiters, max_concurrency=self._max_concurrency, delay=settings.access.delay)
        self._now = now
        self._pages = settings.scope.pages
        self._scope = WebScope(root, settings.scope, settings.limits)
        self._robots_agent = None if settings.access.ignore_robots else parse_product_token(user_agent)
        self._known_sitemaps = known_sitemaps
        self._browser_program = browser
        self._exit_stack = AsyncExitStack()
        self._soft_404s: dict[str, asyncio.Task[Soft404 | None]] = {}

    @cached_property
    def _client(self) -> HttpClient:
        """Built on first use: building it looks up secrets and loads certificates."""
        client = self._make_client()
        client.rate_limit = self._rate.auxiliary_slot
        self._exit_stack.push_async_callback(client.close)
        return client

    @cached_property
    def _polite_client(self) -> PoliteClient:
        polite_client = PoliteClient(
            self._client,
            self._rate,
            self._access,
            user_agent=self._user_agent,
            max_bytes=self._max_bytes,
            now=self._now,
        )
        self._exit_stack.push_async_callback(polite_client.close)
        return polite_client

    @cached_property
    def _browser(self) -> Browser:
        browser = Browser(
            self._client,
            program=self._browser_program,
            seconds=self._access.whole_seconds,
            max_bytes=self._max_bytes,
            max_concurrency=self._max_concurrency,
            is_in_scope=lambda url: self._scope.why_excluded(url) is None,
        )
        self._exit_stack.push_async_callback(browser.close)
        return browser

    @property
    def concurrency(self) -> int:
        return VISITS_PER_SLOT * self._rate.slots

    async def renew_host_slots(self, allot: AllotHostSlots) -> None:
        await self._rate.renew_slots(allot)
        origin = origin_of(self._root)
        await self._rate.join_host(origin)
        self._polite_client.prefetch_rules(origin)  # early, while the crawl is being prepared

    def check(self) -> None:
        check_access(self._access)

    async def open(self) -> None:
        try:
            await self._client.check_url(self._root)
        except AddressForbidden as error:
            raise SourceUnavailable(
                f"{self._root} cannot be crawled: {error}. "
                "An address that is not public has to be allowed by the owner of the source."
            ) from None

    async def probe(self) -> None:
        await self.open()
        try:
            await self._client.probe(self._root, PROBE_SECONDS)
        except OSError as error:
            unresolved, refused = "its host name cannot be resolved", os.strerror(error.errno or errno.ECONNREFUSED)
            reason = unresolved if isinstance(error, gaierror) else refused
            proxied = "the proxy of " if self._access.proxy else ""
            raise SourceUnavailable(
                f"{proxied}{self._root} cannot be reached: {reason}. Check the address, and that the site is up."
            ) from None

    async def close(self) -> None:
        for probe in self._soft_404s.values():
            probe.cancel()
        await asyncio.gather(*self._soft_404s.values(), return_exceptions=True)
        self._soft_404s.clear()
        await self._exit_stack.aclose()
        self._rate.close()

    def admits(self, url: str) -> bool:
        return self._scope.admits(url)

    def why_excluded(self, url: str) -> str | None:
        return self._scope.why_excluded(url)

    def find_family(self, url: str) -> UrlFamily | None:
        return self._scope.find_family(url)

    async def why_forbidden(self, url: str) -> str | None:
        return await self._polite_client.why_forbidden(url)

    async def list(self, *, include_excluded: bool = False) -> AsyncIterator[ListedUrl | ListingFailure]:
        if self._pages:
            for url in self._pages:
                yield ListedUrl(url=url)
            return
        yield ListedUrl(url=self._root)
        async for one in self._list_seeds((lambda url: True) if include_excluded else self._scope.admits):
            if include_excluded and isinstance(one, ListedUrl):
                one = one._replace(excluded=self._scope.why_excluded(one.url))
            yield one

    async def _list_seeds(self, admits: Callable[[str], bool]) -> AsyncIterator[ListedUrl | ListingFailure]:
        """Yield the admitted pages that the site's own lists name: its sitemaps and llms.txt."""
        origin = origin_of(self._root)
        rules = await self._polite_client.get_rules(origin)
        if isinstance(rules, RobotsUnreachable):
            yield ListingFailure(url=f"{origin}/robots.txt", reason=f"robots.txt unreachable ({rules.reason})")
            if self._robots_agent is not None:
                return
            rules = NO_RULES
        allows = rules.allows if self._robots_agent is not None else lambda url: True
        folders = list(dict.fromkeys((folder_of(self._root), f"{origin}/")))
        guessed = [url for url in (f"{folder}sitemap.xml" for folder in folders) if allows(url)]
        named = [url for url in (resolve_link(text, f"{origin}/") for text in rules.sitemaps) if url]
        named += sorted(self._known_sitemaps)
        async for one in sitemap.list_pages(self._client, declared=named, guessed=guessed, admits=admits):
            yield one
        readable = [folder for folder in folders if all(allows(folder + name) for name in llms.FILE_NAMES)]
        async for one in llms.list_pages(self._client, readable, admits):
            yield one

    async def visit(self, entry: FrontierEntry, *, conditional: bool) -> Visit:
        url, _, route = entry.url.partition("#")
        if reason := self._scope.why_excluded(entry.url):
            return Refused(reason=reason, by_settings=reason in SETTINGS_REASONS or self._scope.is_trap(entry.url))
        if route and self._access.render is RenderMode.NEVER:
            return Refused(reason="needs a browser, which the source's settings rule out", by_settings=True)
        always = bool(route) or self._access.render is RenderMode.ALWAYS
        # Validators of a page before its scripts have run say nothing about the rendered page.
        headers = (
            entry.base_version.validators.as_headers() if conditional and entry.base_version and not always else None
        )
        response = await self._polite_client.request(url, headers=headers)
        if isinstance(response, HttpResponse):
            visit = (
                await self._follow_redirects(entry, response)
                if response.status in REDIRECT_STATUSES
                else self._to_visit(response)
            )
        else:
            visit = self._to_visit(response) if isinstance(response, FailedRequest) else response
        if isinstance(visit, Fetched):
            visit = await self._reject_fake_page(entry, visit)
        return await self._render_always(entry, visit) if always else visit

    async def render(self, entry: FrontierEntry, fetched: Fetched) -> Visit | None:
        if fetched.content_type == RENDERED_CONTENT_TYPE:
            return Unreachable(
                reason="an empty page: its scripts brought nothing", status=fetched.status, is_retryable=False
            )
        if self._access.render is RenderMode.NEVER:
            reason = "an empty page before its scripts have run, which the source's settings rule out"
            return Unreachable(reason=reason, status=fetched.status, is_retryable=False)
        return await self._run_scripts(entry, fetched)

    async def _render_always(self, entry: FrontierEntry, visit: Visit) -> Visit:
        """Render a page that needs a browser by its URL (a route) or by the source's settings."""
        if isinstance(visit, Redirected) and "#" in entry.url:
            return replace(visit, to=with_route(visit.to, entry.url))
        if isinstance(visit, Fetched) and is_html(visit.content_type):
            return await self._run_scripts(entry, visit)
        return visit

    async def _run_scripts(self, entry: FrontierEntry, fetched: Fetched) -> Visit:
        """Render a page at its final URL, without the source's secrets in the result."""
        page = fetched.final_url or entry.url.partition("#")[0]
        visit = await self._browser.render(with_route(page, entry.url), fetched)
        if isinstance(visit, Redirected) and self._contains_secret(visit.to):
            return Refused(reason=f"its scripts lead to {self._client.redact(visit.to)}", status=visit.status)
        return replace(visit, body=self._client.redact_bytes(visit.body)) if isinstance(visit, Fetched) else visit

    def _contains_secret(self, url: str) -> bool:
        return self._client.redact_bytes(url.encode()) != url.encode()

    async def _reject_fake_page(self, entry: FrontierEntry, fetched: Fetched) -> Visit:
        """Return the page, or a failed visit for a log-in form or a soft 404."""
        if "html" in fetched.content_type and is_login_form(fetched.body):
            if entry.base_version is None and is_login_url(entry.url):
                return Refused(reason=LOGIN_REASON, status=fetched.status)
            return Unreachable(reason=LOGIN_REASON, status=fetched.status, is_retryable=False)
        url = fetched.final_url or entry.url
        soft_404 = await self._soft_404_of(origin_of(url)) if entry.url != self._root else None
        return _soft_404_visit(entry, fetched.status) if soft_404 and soft_404.matches(fetched.body, url) else fetched

    async def _soft_404_of(self, origin: str) -> Soft404 | None:
        """Return a site's soft 404, probed once a crawl; None where it sends 404, or the probe failed."""
        probe = self._soft_404s.get(origin)
        if probe is None:
            probe = self._soft_404s[origin] = asyncio.create_task(self._probe_soft_404(origin))
        return await asyncio.shield(probe)

    async def _probe_soft_404(self, origin: str) -> Soft404 | None:
        folder = folder_of(self._root) if self._root.startswith(f"{origin}/") else f"{origin}/"
        response = await self._polite_client.request(folder + PROBE_NAME)
        if not isinstance(response, HttpResponse):
            return None
        if response.status in REDIRECT_STATUSES:
            return Soft404.from_redirect(response.location)
        return Soft404.from_page(response.body, response.url) if response.status in OK_STATUSES else None

    async def _follow_redirects(self, entry: FrontierEntry, response: HttpResponse) -> Visit:
        """Follow temporary redirects to their end. Only a permanent one of the page itself moves the page."""
        first, seen, spent = response, {response.url}, response.elapsed
        while True:
            to, status = response.location, response.status
            if to is None:
                return Unreachable(reason="redirects to nowhere", status=status, is_retryable=False)
            shown = self._client.redact(to)
            if to in seen:
                return Unreachable(reason=f"redirects in a circle, by {shown}", status=status, is_retryable=False)
            is_trap = self._scope.is_trap(to)
            outside = self._scope.why_excluded(to) is not None and not is_trap
            if is_login_redirect(to, outside=outside) and not is_login_url(entry.url):
                return Unreachable(reason=LOGIN_REASON, status=status, is_retryable=False)
            if outside or self._contains_secret(to):
                return Refused(reason=f"redirects out of the source to {shown}", status=status)
            if entry.url != self._root and len(seen) == 1:
                soft_404 = await self._soft_404_of(origin_of(entry.url))
                if soft_404 and soft_404.redirects_to == to:
                    return _soft_404_visit(entry, status)
            if first.status in PERMANENT_REDIRECTS:
                return Redirected(to=to, status=status)
            if is_trap:
                return Refused(reason=f"{self._scope.why_excluded(to)}: redirects to {shown}", status=status)
            if len(seen) > MAX_REDIRECTS:
                return Unreachable(
                    reason=f"redirects more than {MAX_REDIRECTS} times", status=status, is_retryable=False
                )
            seen.add(to)
            # No validators: the stored ones belong to the redirect target of the last visit.
            seconds_left = max(0.001, self._client.timeouts.total - spent)
            following = await self._polite_client.request(to, seconds=seconds_left)
            if isinstance(following, FailedRequest):
                return self._to_visit(following)
            if not isinstance(following, HttpResponse):
                return following
            if following.status not in REDIRECT_STATUSES:
                visit = self._to_visit(following)
                return replace(visit, validators=Validators(), final_url=to) if isinstance(visit, Fetched) else visit
            response = following
            spent += response.elapsed

    def _to_visit(self, response: HttpResponse | FailedRequest) -> Visit:
        if isinstance(response, HttpResponse) and self._access.headers:
            response = response._replace(body=self._client.redact_bytes(response.body))
        return make_visit(response, now=self._now, robots_agent=self._robots_agent)


def _soft_404_visit(entry: FrontierEntry, status: int | None) -> Visit:
    """A soft 404 deletes nothing; but a URL that never was a page need not be tried again."""
    if entry.base_version is None:
        return Refused(reason=SOFT_404_REASON, status=status)
    return Unreachable(reason=SOFT_404_REASON, status=status, is_retryable=False)
