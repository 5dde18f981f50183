"""Renders pages that need their scripts, in a Chromium without network access of its own (decision 10).

    1. open      a tab in a browser context of its own, so that pages share no state
    2. fulfill   every request of the page: the page itself with the fetched body, scripts and data through the
                 source's HTTP client; images, fonts, frames and anything but GET are blocked
    3. wait      until the page is loaded, no request is in flight and the DOM is stable
    4. return    the DOM as HTML

So the address policy, limits and secrets of the HTTP client hold for the browser too.
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
)
from kept.origins.web.http.client import HttpClient
from kept.origins.web.http.messages import FailureKind, HttpResponse
from kept.origins.web.shared_browser import SharedBrowser

log = Log(__name__)

MAX_TABS = 2  # of one crawl
MAX_PAGE_SECONDS = 30.0
NETWORK_IDLE_SECONDS = 0.5
DOM_STABLE_SECONDS = 0.25
MAX_REQUESTS = 300  # of one page
MAX_PAGE_BYTES = 64 * 1024 * 1024  # of one page's scripts and data
MAX_RESOURCE_BYTES = 8 * 1024 * 1024  # of one of them: several are in flight at once
SCRIPT_CACHE_BYTES = 32 * 1024 * 1024  # the pages of a site share scripts

_LOADED_TYPES = ("Script", "XHR", "Fetch")
_FORWARDED_HEADERS = ("accept", "origin", "referer")  # of the page's own request headers
_DROPPED_HEADERS = ("connection", "content-encoding", "content-length", "keep-alive", "set-cookie", "transfer-encoding")

# Runs in an isolated world, where the page's scripts cannot have replaced these functions.
_SNAPSHOT_SCRIPT = """(() => {{
    const html = String(document.documentElement?.outerHTML ?? "");
    return [String(document.readyState), location.href, html.length, html.length > {max_bytes} ? "" : html];
}})()"""


class Browser:
    """The pages of one crawl in the Chromium of this process."""

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
        self._shared: SharedBrowser | None = None  # of the first page's event loop
        self._start_error: BrowserUnavailable | None = None

    async def render(self, url: str, fetched: Fetched) -> Visit:
        """Render a fetched page. The result has no validators: the server's belong to the page before its scripts."""
        status = fetched.status
        self._shared = self._shared or SharedBrowser.of(self._program)
        async with self._tabs, self._shared.tabs:
            try:
                devtools = await self._ensure_started(self._shared)
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
        if self._shared:
            await self._shared.leave(self)

    async def _ensure_started(self, shared: SharedBrowser) -> DevTools:
        if self._start_error:
            raise self._start_error
        try:
            return await shared.start(self)
        except BrowserUnavailable as error:
            self._start_error = error  # not tried again for every page
            raise

    async def _render_in_tab(self, devtools: DevTools, url: str, fetched: Fetched) -> Visit:
        created = await devtools.call("Target.createBrowserContext", disposeOnDetach=True)
        context = created["browserContextId"]
        try:
            await devtools.call("Browser.setDownloadBehavior", behavior="deny", browserContextId=context)
            created = await devtools.call("Target.createTarget", url="about:blank", browserContextId=context)
            target = created["targetId"]
            attached = await devtools.call("Target.attachToTarget", targetId=target, flatten=True)
            tab = _Tab(devtools, attached["sessionId"], target, self._resources, url, fetched, self._is_in_scope)
            try:
                return await tab.run(max_bytes=self._max_bytes, deadline=monotonic() + self._seconds * 2 / 3)
            finally:
                await tab.detach()
        finally:
            await self._dispose_context(devtools, context)

    async def _dispose_context(self, devtools: DevTools, context: str) -> None:
        """Close the page whatever it is doing. A browser that cannot is killed."""
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await devtools.call("Target.disposeBrowserContext", browserContextId=context)
        except (TimeoutError, BrowserCommandFailed):
            await devtools.close()
        except BrowserLost:
            pass


class _TabCrashed(Exception):
    """The page's process has ended."""


class _ResourceLoader:
    """Loads the resources of pages through the HTTP client. Caches scripts, which the pages of a site share."""

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
            response = await self._client.request(
                url, max_bytes=max_bytes, headers=headers, wants_body=lambda status, headers: True
            )
        if not isinstance(response, HttpResponse):
            return response.kind
        if is_script and response.status == 200 and self._cached_bytes + len(response.body) <= SCRIPT_CACHE_BYTES:
            self._cached_bytes += len(response.body)
            self._script_cache[url] = response
        return response


class _Tab:
    """One page in the browser, and its requests."""

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
        """Return the page once it is stable, or as it is at the deadline."""
        self._devtools.set_event_handler(self._session, self._on_event)
        for domain in ("Inspector", "Page", "Fetch"):  # from here on every request is intercepted
            await self._call(f"{domain}.enable")
        rendering = asyncio.create_task(self._wait_until_stable(max_bytes, deadline))
        try:
            waiting: set[asyncio.Future[Any]] = {rendering, self._crashed}
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if not rendering.done():
                raise _TabCrashed
            location, size, html = rendering.result()
        finally:
            rendering.cancel()
            await asyncio.gather(rendering, return_exceptions=True)
        status = self._fetched.status
        if self._redirects_to:
            return Redirected(to=self._redirects_to, status=status)
        if size > max_bytes:
            return Refused(reason=f"larger than {max_bytes:,} bytes", by_settings=True, status=status)
        page = canonicalize_url(location)
        final_url = page if page and page != canonicalize_url(self._url) else self._fetched.final_url
        body = f"<!doctype html>\n{html}".encode("utf-8", "replace")
        return Fetched(
            body=body, content_type=RENDERED_CONTENT_TYPE, validators=Validators(), status=status, final_url=final_url
        )

    async def detach(self) -> None:
        self._devtools.set_event_handler(self._session, None)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _wait_until_stable(self, max_bytes: int, deadline: float) -> tuple[str, int, str]:
        await self._call("Page.navigate", url=self._url)
        before, stable_since = "", monotonic()
        while True:
            await asyncio.sleep(DOM_STABLE_SECONDS / 2)
            now = monotonic()
            if self._redirects_to:
                return "", 0, ""
            idle = 0.0 if self._tasks else now - self._last_activity
            if idle < NETWORK_IDLE_SECONDS - DOM_STABLE_SECONDS and now < deadline:
                continue
            state, location, size, html = await self._snapshot(max_bytes)
            if html != before:
                before, stable_since = html, monotonic()
            stable = monotonic() - stable_since
            if now >= deadline or (
                state == "complete" and idle >= NETWORK_IDLE_SECONDS and stable >= DOM_STABLE_SECONDS
            ):
                return location, size, html

    async def _snapshot(self, max_bytes: int) -> tuple[str, str, int, str]:
        """Return the page's ready state, location, length, and HTML (empty where that is too long)."""
        created = await self._call("Page.createIsolatedWorld", frameId=self._frame, worldName="kept")
        world = created["executionContextId"]
        expression = _SNAPSHOT_SCRIPT.format(max_bytes=max_bytes)
        evaluated = await self._call("Runtime.evaluate", expression=expression, contextId=world, returnByValue=True)
        state, location, size, html = evaluated["result"].get("value") or ("", "", 0, "")
        return state, location, size, html

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
        async def run() -> None:
            with suppress(BrowserCommandFailed, BrowserLost):  # the page has moved on, or the browser has ended
                await work
            self._last_activity = monotonic()

        task = asyncio.create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _handle_request(self, paused: dict[str, Any]) -> None:
        request, kind, request_id = paused["request"], paused["resourceType"], paused["requestId"]
        self._requests += 1
        if kind == "Document" and paused.get("frameId") == self._frame:
            await self._handle_navigation(request_id, request["url"] + request.get("urlFragment", ""))
        elif kind == "Stylesheet":  # scripts may wait for it
            await self._fulfill(
                request_id, 200, [("Content-Type", "text/css"), ("Access-Control-Allow-Origin", "*")], b""
            )
        elif kind not in _LOADED_TYPES or request["method"] != "GET" or self._requests > MAX_REQUESTS:
            await self._fail(request_id, "BlockedByClient")
        else:
            await self._load_resource(request_id, request, kind)

    async def _handle_navigation(self, request_id: str, url: str) -> None:
        """Serve the page itself, once. A later navigation by its scripts becomes a redirect for the crawl."""
        if not self._is_page_served:
            self._is_page_served = True
            await self._fulfill(request_id, 200, [("Content-Type", self._fetched.content_type)], self._fetched.body)
            return
        to = canonicalize_route_url(url)
        if to and to != canonicalize_route_url(self._url) and self._is_in_scope(to):
            self._redirects_to = to
        await self._fail(request_id, "Aborted")

    async def _load_resource(self, request_id: str, request: dict[str, Any], kind: str) -> None:
        url, left = canonicalize_url(request["url"]), MAX_PAGE_BYTES - self._bytes
        if url is None or left <= 0:
            await self._fail(request_id, "BlockedByClient")
            return
        headers = {name: value for name, value in request["headers"].items() if name.lower() in _FORWARDED_HEADERS}
        response = await self._resources.load(
            url, headers, max_bytes=min(left, MAX_RESOURCE_BYTES), is_script=kind == "Script"
        )
        if isinstance(response, FailureKind):
            await self._fail(request_id, "AccessDenied" if response is FailureKind.FORBIDDEN else "Failed")
            return
        self._bytes += len(response.body)
        forwarded = [(name, value) for name, value in response.headers.pairs() if name.lower() not in _DROPPED_HEADERS]
        await self._fulfill(request_id, response.status, forwarded, response.body)

    async def _fulfill(self, request_id: str, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        try:
            await self._call(
                "Fetch.fulfillRequest",
                requestId=request_id,
                responseCode=status,
                responseHeaders=[{"name": name, "value": value} for name, value in headers],
                body=base64.b64encode(body).decode(),
            )
        except BrowserCommandFailed:  # a header or status that the browser rejects
            await self._fail(request_id, "Failed")

    async def _fail(self, request_id: str, reason: str) -> None:
        await self._call("Fetch.failRequest", requestId=request_id, errorReason=reason)

    async def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return await self._devtools.call(method, self._session, **parameters)
