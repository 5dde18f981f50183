"""The connection to a real Chromium, also when the browser is missing or dies."""

import asyncio
import os
import shutil
import signal
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from kept.model.frontier import Fetched, Unreachable
from kept.origins.web.browser import Browser
from kept.origins.web.devtools import (
    BROWSER_PROGRAMS,
    BrowserCommandFailed,
    BrowserLost,
    BrowserUnavailable,
    DevTools,
    find_browser,
)
from kept.origins.web.http.client import HttpClient
from kept.origins.web.shared_browser import SharedBrowser

PAGE = Fetched(
    body=b"<div id=app></div><script>app.textContent = 'written by a script'</script>", content_type="text/html"
)

GREEDY = Fetched(
    body=b"<script>const all = []; while (true) all.push(new Array(5e6).fill(1.5))</script>", content_type="text/html"
)


@pytest.fixture
def chromium() -> str:
    if not any(map(shutil.which, BROWSER_PROGRAMS)):
        pytest.skip("there is no Chromium")
    return find_browser()


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(test)


RESTLESS = Fetched(
    body=b"<p id=app></p><script>let n = 0; setInterval(() => app.textContent = n++, 20)</script>",
    content_type="text/html",
)


def make_browser(program: str = "", seconds: float = 20) -> Browser:
    return Browser(
        HttpClient(),
        program=program,
        seconds=seconds,
        max_bytes=1_000_000,
        max_concurrency=4,
        is_in_scope=lambda url: True,
    )


def test_commands_succeed_fail_or_are_lost_with_the_browser(chromium: str) -> None:
    async def test() -> None:
        devtools = await DevTools.start(chromium)
        try:
            assert "Chrom" in (await devtools.call("Browser.getVersion"))["product"]
            with pytest.raises(BrowserCommandFailed, match=r"Browser\.nonsense"):
                await devtools.call("Browser.nonsense")
            os.kill(devtools.process_id, signal.SIGSTOP)
            waiting = asyncio.create_task(devtools.call("Target.createTarget", url="about:blank"))
            os.kill(devtools.process_id, signal.SIGKILL)
            with pytest.raises(BrowserLost):
                await waiting
            with pytest.raises(BrowserLost):
                await devtools.call("Browser.getVersion")
            assert not devtools.is_alive
        finally:
            await devtools.close()

    run(test())


def test_a_browser_survives_its_pages_and_is_restarted_after_a_crash(
    chromium: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    async def test() -> None:
        browser = make_browser()
        died = await DevTools.start(chromium)
        os.kill(died.process_id, signal.SIGSTOP)
        os.kill(died.process_id, signal.SIGKILL)
        with pytest.raises(BrowserLost):
            await died.call("Browser.getVersion")
        shared = SharedBrowser.of("")
        shared._devtools = died
        try:
            rendered = await browser.render("https://docs.test/", PAGE)
            assert isinstance(rendered, Fetched)
            assert b'<div id="app">written by a script</div>' in rendered.body
            assert not rendered.validators
            greedy = await browser.render("https://docs.test/", GREEDY)
            assert isinstance(greedy, Unreachable)
            assert greedy.reason == "its scripts take more memory than a page may take"
            assert isinstance(await browser.render("https://docs.test/", PAGE), Fetched), "it costs that page only"
            impatient = make_browser(seconds=6)
            running = shared._devtools
            restless = await impatient.render("https://docs.test/", RESTLESS)
            assert isinstance(restless, Fetched), "a page that never stands still is taken as it is"
            await impatient.close()
            assert shared._devtools is running, "one browser, until its last user has left"
            assert running is not None
            assert running.is_alive
        finally:
            await browser.close()
        assert shared._devtools is None

    run(test())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("program", ["/nowhere/chromium", "/bin/false"])
def test_a_browser_that_is_missing_or_does_not_start_is_a_reason(program: str) -> None:
    async def test() -> None:
        visit = await make_browser(program).render("https://docs.test/", PAGE)
        assert isinstance(visit, Unreachable)
        assert program in visit.reason
        assert not visit.is_retryable

    run(test())


def test_without_any_browser_the_reason_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(BrowserUnavailable, match="install Chromium"):
        find_browser()
