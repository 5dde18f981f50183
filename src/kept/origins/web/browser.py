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
from kept.model.document import RENDERED, Validators
from kept.model.frontier import Fetched, Redirected, Refused, Unreachable, Visit
from kept.model.url import canonical, canonical_route
from kept.origins.web.devtools import TO_END, BrowserLost, Declined, DevTools, NoBrowser, find_browser
from kept.origins.web.egress import Egress
from kept.origins.web.exchange import Answer, Trouble

log = Log(__name__)

TABS = 2
LONGEST = 30.0  # seconds, for one page
QUIET = 0.5  # seconds without a request
STILL = 0.25  # seconds without a change
MOST_REQUESTS = 300  # of one page
MOST_BYTES = 64 * 1024 * 1024  # of one page's scripts and data
LARGEST = 8 * 1024 * 1024  # of one of them: several are under way at once
REMEMBERED = 32 * 1024 * 1024  # bytes of scripts, which the pages of a site share

_ANSWERED = ("Script", "XHR", "Fetch")
_PASSED_ON = ("accept", "origin", "referer")  # of the headers that a page's request has
_OURS = ("connection", "content-encoding", "content-length", "keep-alive", "set-cookie", "transfer-encoding")

# Run in a world of its own, where the page's scripts cannot have changed what these words mean.
_TAKE = """(() => {{
    const html = String(document.documentElement?.outerHTML ?? "");
    return [String(document.readyState), location.href, html.length, html.length > {most} ? "" : html];
}})()"""


class Browser:
    """A Chromium for one crawl: started when it is first needed, and again when it died."""

    def __init__(
        self,
        egress: Egress,
        *,
        program: str = "",
        seconds: float,
        most: int,
        at_once: int,
        follows: Callable[[str], bool],
    ) -> None:
        self._program = program
        self._follows = follows
        self._seconds = min(seconds, LONGEST)
        self._most = most
        self._supply = _Supply(egress, at_once)
        self._tabs = asyncio.Semaphore(TABS)
        self._starting = asyncio.Lock()
        self._devtools: DevTools | None = None
        self._missing: NoBrowser | None = None

    async def render(self, url: str, fetched: Fetched) -> Visit:
        """What the page becomes. Nothing of the server's validators: they speak of the page before its scripts."""
        status = fetched.status
        async with self._tabs:
            try:
                devtools = await self._started()
                async with asyncio.timeout(self._seconds):
                    return await self._open(devtools, url, fetched)
            except NoBrowser as error:
                reason = f"an empty page before its scripts have run, and no browser to run them: {error}"
                return Unreachable(reason=reason, status=status, retry=False)
            except _TooMuch:
                return Unreachable(
                    reason="its scripts take more memory than a page may take", status=status, retry=False
                )
            except TimeoutError:
                reason = f"its scripts did not come to rest within {self._seconds:g} s"
                return Unreachable(reason=reason, status=status, retry=False)
            except (BrowserLost, Declined) as error:
                log.warning("browser failed", url=url, error=repr(error))
                return Unreachable(reason="the browser failed while it ran the page's scripts", status=status)

    async def close(self) -> None:
        devtools, self._devtools = self._devtools, None
        if devtools:
            await devtools.close()

    async def _started(self) -> DevTools:
        async with self._starting:
            if self._devtools and not self._devtools.is_alive:
                await self.close()
            if self._missing:
                raise self._missing
            try:
                self._devtools = self._devtools or await DevTools.start(find_browser(self._program))
            except NoBrowser as error:
                self._missing = error  # what cannot be started once is not tried for every page
                raise
            return self._devtools

    async def _open(self, devtools: DevTools, url: str, fetched: Fetched) -> Visit:
        made = await devtools.call("Target.createBrowserContext", disposeOnDetach=True)
        context = made["browserContextId"]
        try:
            await devtools.call("Browser.setDownloadBehavior", behavior="deny", browserContextId=context)
            made = await devtools.call("Target.createTarget", url="about:blank", browserContextId=context)
            target = made["targetId"]
            made = await devtools.call("Target.attachToTarget", targetId=target, flatten=True)
            tab = _Tab(devtools, made["sessionId"], target, self._supply, url, fetched, self._follows)
            try:
                return await tab.run(most=self._most, ends=monotonic() + self._seconds * 2 / 3)
            finally:
                await tab.leave()
        finally:
            await self._dispose(devtools, context)

    async def _dispose(self, devtools: DevTools, context: str) -> None:
        """Ends the page whatever it is doing. A browser that cannot is ended itself."""
        try:
            async with asyncio.timeout(TO_END):
                await devtools.call("Target.disposeBrowserContext", browserContextId=context)
        except (TimeoutError, Declined):
            await devtools.close()
        except BrowserLost:
            pass


class _TooMuch(Exception):
    """The page's process is gone."""


class _Supply:
    """What pages ask for, through the gate. Scripts are asked for once: the pages of a site share them."""

    def __init__(self, egress: Egress, at_once: int) -> None:
        self._egress = egress
        self._room = asyncio.Semaphore(at_once)
        self._scripts: dict[str, Answer] = {}
        self._remembered = 0

    async def ask(self, url: str, headers: Mapping[str, str], *, most: int, script: bool) -> Answer | Trouble:
        if script and url in self._scripts:
            return self._scripts[url]
        async with self._room:
            answer = await self._egress.ask(url, most=most, headers=headers, wanted=lambda status, headers: True)
        if not isinstance(answer, Answer):
            return answer.trouble
        if script and answer.status == 200 and self._remembered + len(answer.body) <= REMEMBERED:
            self._remembered += len(answer.body)
            self._scripts[url] = answer
        return answer


class _Tab:
    """One page in the browser, and everything that it asks for."""

    def __init__(
        self,
        devtools: DevTools,
        session: str,
        frame: str,
        supply: _Supply,
        url: str,
        fetched: Fetched,
        follows: Callable[[str], bool],
    ) -> None:
        self._devtools = devtools
        self._session = session
        self._frame = frame
        self._supply = supply
        self._url = url
        self._fetched = fetched
        self._follows = follows
        self._is_open = False
        self._sends_to: str | None = None
        self._requests = 0
        self._bytes = 0
        self._busy_at = monotonic()
        self._answering: set[asyncio.Task[None]] = set()
        self._crashed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self, *, most: int, ends: float) -> Visit:
        """The page when it has come to rest, or as it is when that takes too long."""
        self._devtools.hear(self._session, self._happened)
        for domain in ("Inspector", "Page", "Fetch"):  # from here on no request passes us
            await self._call(f"{domain}.enable")
        taking = asyncio.create_task(self._settled(most, ends))
        try:
            waiting: set[asyncio.Future[Any]] = {taking, self._crashed}
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if not taking.done():
                raise _TooMuch
            where, size, html = taking.result()
        finally:
            taking.cancel()
            await asyncio.gather(taking, return_exceptions=True)
        status = self._fetched.status
        if self._sends_to:
            return Redirected(to=self._sends_to, status=status)
        if size > most:
            return Refused(reason=f"larger than {most:,} bytes", by_settings=True, status=status)
        page = canonical(where)
        moved = page if page and page != canonical(self._url) else self._fetched.came_from
        body = f"<!doctype html>\n{html}".encode("utf-8", "replace")
        return Fetched(body=body, content_type=RENDERED, validators=Validators(), status=status, came_from=moved)

    async def leave(self) -> None:
        self._devtools.hear(self._session, None)
        for task in self._answering:
            task.cancel()
        await asyncio.gather(*self._answering, return_exceptions=True)

    async def _settled(self, most: int, ends: float) -> tuple[str, int, str]:
        await self._call("Page.navigate", url=self._url)
        before, still_since = "", monotonic()
        while True:
            await asyncio.sleep(STILL / 2)
            now = monotonic()
            if self._sends_to:
                return "", 0, ""
            quiet = 0.0 if self._answering else now - self._busy_at
            if quiet < QUIET - STILL and now < ends:
                continue
            state, where, size, html = await self._take(most)
            if html != before:
                before, still_since = html, monotonic()
            still = monotonic() - still_since
            if now >= ends or (state == "complete" and quiet >= QUIET and still >= STILL):
                return where, size, html

    async def _take(self, most: int) -> tuple[str, str, int, str]:
        """How far the page is, where it says it is, its length, and itself unless that is too long."""
        made = await self._call("Page.createIsolatedWorld", frameId=self._frame, worldName="kept")
        world = made["executionContextId"]
        expression = _TAKE.format(most=most)
        taken = await self._call("Runtime.evaluate", expression=expression, contextId=world, returnByValue=True)
        state, where, size, html = taken["result"].get("value") or ("", "", 0, "")
        return state, where, size, html

    def _happened(self, name: str, facts: dict[str, Any]) -> None:
        match name:
            case "Fetch.requestPaused":
                self._busy_at = monotonic()
                self._do(self._answer(facts))
            case "Page.javascriptDialogOpening":
                self._do(self._call("Page.handleJavaScriptDialog", accept=False))
            case "Inspector.targetCrashed" | "Inspector.detached" if not self._crashed.done():
                self._crashed.set_result(None)

    def _do(self, work: Coroutine[Any, Any, Any]) -> None:
        async def quietly() -> None:
            with suppress(Declined, BrowserLost):  # the page has gone on, or the browser is gone
                await work
            self._busy_at = monotonic()

        task = asyncio.create_task(quietly())
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def _answer(self, paused: dict[str, Any]) -> None:
        request, kind, number = paused["request"], paused["resourceType"], paused["requestId"]
        self._requests += 1
        if kind == "Document" and paused.get("frameId") == self._frame:
            await self._answer_page(number, request["url"] + request.get("urlFragment", ""))
        elif kind == "Stylesheet":  # scripts may wait for it; how the page looks is nobody's concern
            await self._give(number, 200, [("Content-Type", "text/css"), ("Access-Control-Allow-Origin", "*")], b"")
        elif kind not in _ANSWERED or request["method"] != "GET" or self._requests > MOST_REQUESTS:
            await self._refuse(number, "BlockedByClient")
        else:
            await self._supply_with(number, request, kind)

    async def _answer_page(self, number: str, url: str) -> None:
        """The page itself, once. Where its scripts would go instead is for the crawl to visit."""
        if not self._is_open:
            self._is_open = True
            await self._give(number, 200, [("Content-Type", self._fetched.content_type)], self._fetched.body)
            return
        to = canonical_route(url)
        if to and to != canonical_route(self._url) and self._follows(to):
            self._sends_to = to
        await self._refuse(number, "Aborted")

    async def _supply_with(self, number: str, request: dict[str, Any], kind: str) -> None:
        url, left = canonical(request["url"]), MOST_BYTES - self._bytes
        if url is None or left <= 0:
            await self._refuse(number, "BlockedByClient")
            return
        headers = {name: value for name, value in request["headers"].items() if name.lower() in _PASSED_ON}
        answer = await self._supply.ask(url, headers, most=min(left, LARGEST), script=kind == "Script")
        if isinstance(answer, Trouble):
            await self._refuse(number, "AccessDenied" if answer is Trouble.CLOSED else "Failed")
            return
        self._bytes += len(answer.body)
        kept = [(name, value) for name, value in answer.headers.pairs() if name.lower() not in _OURS]
        await self._give(number, answer.status, kept, answer.body)

    async def _give(self, number: str, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        try:
            await self._call(
                "Fetch.fulfillRequest",
                requestId=number,
                responseCode=status,
                responseHeaders=[{"name": name, "value": value} for name, value in headers],
                body=base64.b64encode(body).decode(),
            )
        except Declined:  # a header or status that no browser takes
            await self._refuse(number, "Failed")

    async def _refuse(self, number: str, reason: str) -> None:
        await self._call("Fetch.failRequest", requestId=number, errorReason=reason)

    async def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return await self._devtools.call(method, self._session, **parameters)
