"""Pages that are nothing before their scripts have run: opened in a Chromium that has no network of its own.

    1. open     a tab in a context of its own, so that no page finds what another left behind
    2. answer   every request, here: the page itself with what was fetched already, scripts and data through the gate
                (``egress``, as everything else); pictures, fonts, frames and whatever is no GET not at all
    3. wait     until it is loaded, no request is under way and the page stands still
    4. take     the page as its scripts made it

So one gate, one set of limits and one place for secrets hold for a browser too: see docs/decisions/0010.
"""

import asyncio
import base64
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from time import monotonic
from typing import Any

from kept.log import Log
from kept.model.document import RENDERED_CONTENT_TYPE, Validators
from kept.model.frontier import Fetched, Redirected, Refused, Unreachable, Visit
from kept.model.url import canonicalize_route_url, canonicalize_url
from kept.origins.web.devtools import (
    STOP_SECONDS,
    BrowserCommandFailed,
    BrowserLost,
    BrowserUnavailable,
    DevTools,
    find_browser,
)
from kept.origins.web.http.client import HttpClient
from kept.origins.web.http.messages import FailureKind, HttpResponse

log = Log(__name__)

MAX_TABS = 2
MAX_PAGE_SECONDS = 30.0  # seconds, for one page
NETWORK_IDLE_SECONDS = 0.5  # seconds without a request
DOM_STABLE_SECONDS = 0.25  # seconds without a change
MAX_REQUESTS = 300  # of one page
MAX_PAGE_BYTES = 64 * 1024 * 1024  # of one page's scripts and data
MAX_RESOURCE_BYTES = 8 * 1024 * 1024  # of one of them: several are under way at once
SCRIPT_CACHE_BYTES = 32 * 1024 * 1024  # bytes of scripts, which the pages of a site share

_LOADED_TYPES = ("Script", "XHR", "Fetch")
_FORWARDED_HEADERS = ("accept", "origin", "referer")  # of the headers that a page's request has
_DROPPED_HEADERS = ("connection", "content-encoding", "content-length", "keep-alive", "set-cookie", "transfer-encoding")

# Run in a world of its own, where the page's scripts cannot have changed what these words mean.
_SNAPSHOT_SCRIPT = """(() => {{
    const html = String(document.documentElement?.outerHTML ?? "");
    return [String(document.readyState), location.href, html.length, html.length > {most} ? "" : html];
}})()"""


class Browser:
    """A Chromium for one crawl: started when it is first needed, and again when it died."""

    def __init__(
        self,
        client: HttpClient,
        *,
        program: str = "",
        seconds: float,
        max_bytes: int,
        max_concurrency: int,
        is_in_scope: Callable[[str], bool],
    ) -> None:
        self._program = program
        self._is_in_scope = is_in_scope
        self._seconds = min(seconds, MAX_PAGE_SECONDS)
        self._max_bytes = max_bytes
        self._resources = _ResourceLoader(client, max_concurrency)
        self._tabs = asyncio.Semaphore(MAX_TABS)
        self._start_lock = asyncio.Lock()
        self._devtools: DevTools | None = None
        self._start_error: BrowserUnavailable | None = None

    async def render(self, url: str, fetched: Fetched) -> Visit:
        """What the page becomes. Nothing of the server's validators: they speak of the page before its scripts."""
        status = fetched.status
        async with self._tabs:
            try:
                devtools = await self._ensure_started()
                async with asyncio.timeout(self._seconds):
                    return await self._render_in_tab(devtools, url, fetched)
            except BrowserUnavailable as error:
                reason = f"an empty page before its scripts have run, and no browser to run them: {error}"
                return Unreachable(reason=reason, status=status, is_retryable=False)
            except _TabCrashed:
                return Unreachable(
                    reason="its scripts take more memory than a page may take", status=status, is_retryable=False
                )
            except TimeoutError:
                reason = f"its scripts did not come to rest within {self._seconds:g} s"
                return Unreachable(reason=reason, status=status, is_retryable=False)
            except (BrowserLost, BrowserCommandFailed) as error:
                log.warning("browser failed", url=url, error=repr(error))
                return Unreachable(reason="the browser failed while it ran the page's scripts", status=status)

    async def close(self) -> None:
        devtools, self._devtools = self._devtools, None
        if devtools:
            await devtools.close()

    async def _ensure_started(self) -> DevTools:
        async with self._start_lock:
            if self._devtools and not self._devtools.is_alive:
                await self.close()
            if self._start_error:
                raise self._start_error
            try:
                self._devtools = self._devtools or await DevTools.start(find_browser(self._program))
            except BrowserUnavailable as error:
                self._start_error = error  # what cannot be started once is not tried for every page
                raise
            return self._devtools

    async def _render_in_tab(self, devtools: DevTools, url: str, fetched: Fetched) -> Visit:
        made = await devtools.call("Target.createBrowserContext", disposeOnDetach=True)
        context = made["browserContextId"]
        try:
            await devtools.call("Browser.setDownloadBehavior", behavior="deny", browserContextId=context)
            made = await devtools.call("Target.createTarget", url="about:blank", browserContextId=context)
            target = made["targetId"]
            made = await devtools.call("Target.attachToTarget", targetId=target, flatten=True)
            tab = _Tab(devtools, made["sessionId"], target, self._resources, url, fetched, self._is_in_scope)
            try:
                return await tab.run(max_bytes=self._max_bytes, deadline=monotonic() + self._seconds * 2 / 3)
            finally:
                await tab.detach()
        finally:
            await self._dispose_context(devtools, context)

    async def _dispose_context(self, devtools: DevTools, context: str) -> None:
        """Ends the page whatever it is doing. A browser that cannot is ended itself."""
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await devtools.call("Target.disposeBrowserContext", browserContextId=context)
        except (TimeoutError, BrowserCommandFailed):
            await devtools.close()
        except BrowserLost:
            pass


class _TabCrashed(Exception):
    """The page's process is gone."""


class _ResourceLoader:
    """What pages ask for, through the gate. Scripts are asked for once: the pages of a site share them."""

    def __init__(self, client: HttpClient, max_concurrency: int) -> None:
        self._client = client
        self._slots = asyncio.Semaphore(max_concurrency)
        self._script_cache: dict[str, HttpResponse] = {}
        self._cached_bytes = 0

    async def load(
        self, url: str, headers: Mapping[str, str], *, max_bytes: int, is_script: bool
    ) -> HttpResponse | FailureKind:
        if is_script and url in self._script_cache:
            return self._script_cache[url]
        async with self._slots:
            answer = await self._client.request(
                url, max_bytes=max_bytes, headers=headers, wants_body=lambda status, headers: True
            )
        if not isinstance(answer, HttpResponse):
            return answer.kind
        if is_script and answer.status == 200 and self._cached_bytes + len(answer.body) <= SCRIPT_CACHE_BYTES:
            self._cached_bytes += len(answer.body)
            self._script_cache[url] = answer
        return answer


class _Tab:
    """One page in the browser, and everything that it asks for."""

    def __init__(
        self,
        devtools: DevTools,
        session: str,
        frame: str,
        resources: _ResourceLoader,
        url: str,
        fetched: Fetched,
        is_in_scope: Callable[[str], bool],
    ) -> None:
        self._devtools = devtools
        self._session = session
        self._frame = frame
        self._resources = resources
        self._url = url
        self._fetched = fetched
        self._is_in_scope = is_in_scope
        self._is_page_served = False
        self._redirects_to: str | None = None
        self._requests = 0
        self._bytes = 0
        self._last_activity = monotonic()
        self._tasks: set[asyncio.Task[None]] = set()
        self._crashed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self, *, max_bytes: int, deadline: float) -> Visit:
        """The page when it has come to rest, or as it is when that takes too long."""
        self._devtools.set_event_handler(self._session, self._on_event)
        for domain in ("Inspector", "Page", "Fetch"):  # from here on no request passes us
            await self._call(f"{domain}.enable")
        taking = asyncio.create_task(self._wait_until_stable(max_bytes, deadline))
        try:
            waiting: set[asyncio.Future[Any]] = {taking, self._crashed}
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if not taking.done():
                raise _TabCrashed
            where, size, html = taking.result()
        finally:
            taking.cancel()
            await asyncio.gather(taking, return_exceptions=True)
        status = self._fetched.status
        if self._redirects_to:
            return Redirected(to=self._redirects_to, status=status)
        if size > max_bytes:
            return Refused(reason=f"larger than {max_bytes:,} bytes", by_settings=True, status=status)
        page = canonicalize_url(where)
        moved = page if page and page != canonicalize_url(self._url) else self._fetched.final_url
        body = f"<!doctype html>\n{html}".encode("utf-8", "replace")
        return Fetched(
            body=body, content_type=RENDERED_CONTENT_TYPE, validators=Validators(), status=status, final_url=moved
        )

    async def detach(self) -> None:
        self._devtools.set_event_handler(self._session, None)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _wait_until_stable(self, max_bytes: int, deadline: float) -> tuple[str, int, str]:
        await self._call("Page.navigate", url=self._url)
        before, still_since = "", monotonic()
        while True:
            await asyncio.sleep(DOM_STABLE_SECONDS / 2)
            now = monotonic()
            if self._redirects_to:
                return "", 0, ""
            quiet = 0.0 if self._tasks else now - self._last_activity
            if quiet < NETWORK_IDLE_SECONDS - DOM_STABLE_SECONDS and now < deadline:
                continue
            state, where, size, html = await self._snapshot(max_bytes)
            if html != before:
                before, still_since = html, monotonic()
            still = monotonic() - still_since
            if now >= deadline or (
                state == "complete" and quiet >= NETWORK_IDLE_SECONDS and still >= DOM_STABLE_SECONDS
            ):
                return where, size, html

    async def _snapshot(self, max_bytes: int) -> tuple[str, str, int, str]:
        """How far the page is, where it says it is, its length, and itself unless that is too long."""
        made = await self._call("Page.createIsolatedWorld", frameId=self._frame, worldName="kept")
        world = made["executionContextId"]
        expression = _SNAPSHOT_SCRIPT.format(most=max_bytes)
        taken = await self._call("Runtime.evaluate", expression=expression, contextId=world, returnByValue=True)
        state, where, size, html = taken["result"].get("value") or ("", "", 0, "")
        return state, where, size, html

    def _on_event(self, name: str, parameters: dict[str, Any]) -> None:
        match name:
            case "Fetch.requestPaused":
                self._last_activity = monotonic()
                self._start_task(self._handle_request(parameters))
            case "Page.javascriptDialogOpening":
                self._start_task(self._call("Page.handleJavaScriptDialog", accept=False))
            case "Inspector.targetCrashed" | "Inspector.detached" if not self._crashed.done():
                self._crashed.set_result(None)

    def _start_task(self, work: Coroutine[Any, Any, Any]) -> None:
        async def quietly() -> None:
            with suppress(BrowserCommandFailed, BrowserLost):  # the page has gone on, or the browser is gone
                await work
            self._last_activity = monotonic()

        task = asyncio.create_task(quietly())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _handle_request(self, paused: dict[str, Any]) -> None:
        request, kind, number = paused["request"], paused["resourceType"], paused["requestId"]
        self._requests += 1
        if kind == "Document" and paused.get("frameId") == self._frame:
            await self._handle_navigation(number, request["url"] + request.get("urlFragment", ""))
        elif kind == "Stylesheet":  # scripts may wait for it; how the page looks is nobody's concern
            await self._fulfill(number, 200, [("Content-Type", "text/css"), ("Access-Control-Allow-Origin", "*")], b"")
        elif kind not in _LOADED_TYPES or request["method"] != "GET" or self._requests > MAX_REQUESTS:
            await self._fail(number, "BlockedByClient")
        else:
            await self._load_resource(number, request, kind)

    async def _handle_navigation(self, number: str, url: str) -> None:
        """The page itself, once. Where its scripts would go instead is for the crawl to visit."""
        if not self._is_page_served:
            self._is_page_served = True
            await self._fulfill(number, 200, [("Content-Type", self._fetched.content_type)], self._fetched.body)
            return
        to = canonicalize_route_url(url)
        if to and to != canonicalize_route_url(self._url) and self._is_in_scope(to):
            self._redirects_to = to
        await self._fail(number, "Aborted")

    async def _load_resource(self, number: str, request: dict[str, Any], kind: str) -> None:
        url, left = canonicalize_url(request["url"]), MAX_PAGE_BYTES - self._bytes
        if url is None or left <= 0:
            await self._fail(number, "BlockedByClient")
            return
        headers = {name: value for name, value in request["headers"].items() if name.lower() in _FORWARDED_HEADERS}
        answer = await self._resources.load(
            url, headers, max_bytes=min(left, MAX_RESOURCE_BYTES), is_script=kind == "Script"
        )
        if isinstance(answer, FailureKind):
            await self._fail(number, "AccessDenied" if answer is FailureKind.FORBIDDEN else "Failed")
            return
        self._bytes += len(answer.body)
        kept = [(name, value) for name, value in answer.headers.pairs() if name.lower() not in _DROPPED_HEADERS]
        await self._fulfill(number, answer.status, kept, answer.body)

    async def _fulfill(self, number: str, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        try:
            await self._call(
                "Fetch.fulfillRequest",
                requestId=number,
                responseCode=status,
                responseHeaders=[{"name": name, "value": value} for name, value in headers],
                body=base64.b64encode(body).decode(),
            )
        except BrowserCommandFailed:  # a header or status that no browser takes
            await self._fail(number, "Failed")

    async def _fail(self, number: str, reason: str) -> None:
        await self._call("Fetch.failRequest", requestId=number, errorReason=reason)

    async def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return await self._devtools.call(method, self._session, **parameters)
