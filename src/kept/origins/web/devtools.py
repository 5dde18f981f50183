"""A Chromium, and the conversation with it: the DevTools protocol over a pipe, so that no port is open to others.

What the browser may do by itself is decided here, once: nothing. No name resolves, every connection goes to a proxy
that is not there, no peer-to-peer traffic is allowed. Whoever talks to it answers its requests (``browser``).
"""

import asyncio
import json
import os
import shutil
import signal
import tempfile
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeAlias

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
TO_START = 30.0
TO_END = 5.0
LONGEST_MESSAGE = 256 * 1024 * 1024
SCRIPT_MEMORY = 512  # megabytes of a page's objects
MEMORY = 1024  # megabytes of everything else that one of its processes may hold

Event: TypeAlias = Callable[[str, dict[str, Any]], None]  # name and facts

# The pipe is what was standard input and output: a shell puts them where Chromium looks for them.
_START = f'ulimit -d {MEMORY * 1024}; exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null'

_ALONE = (
    "--proxy-server=http://nowhere.invalid:9",
    "--proxy-bypass-list=<-loopback>",  # loopback too goes to the proxy
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--disable-quic",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-sync",
    "--no-pings",
)
_PLAIN = (
    "--headless",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--no-default-browser-check",
    "--password-store=basic",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-breakpad",
    "--disable-remote-fonts",
    "--mute-audio",
    "--block-new-web-contents",
    "--deny-permission-prompts",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--blink-settings=imagesEnabled=false",
    f"--js-flags=--max-old-space-size={SCRIPT_MEMORY}",
    "--lang=en-US",
)


class NoBrowser(Exception):
    """There is none, or it does not start: the sentence says what to do."""


class BrowserLost(Exception):
    """The browser is gone, or no longer answers."""


class Declined(Exception):
    """The browser says that it cannot do what it was told."""


def find_browser(named: str = "") -> str:
    """The program to start: the one that is named, else the first that is installed. Raises NoBrowser."""
    if named:
        if found := shutil.which(named):
            return found
        raise NoBrowser(f"the browser that the settings name, {named}, is not there")
    for name in PROGRAMS:
        if found := shutil.which(name):
            return found
    raise NoBrowser("install Chromium (or name another one: crawl.browser in the settings)")


class DevTools:
    """``await DevTools.start(program)``, then calls and events until ``close()``."""

    def __init__(self, process: asyncio.subprocess.Process, profile: "tempfile.TemporaryDirectory[str]") -> None:
        self._process = process
        self._profile = profile
        self._asked: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._events: dict[str, Event] = {}
        self._number = 0
        self._listening = asyncio.create_task(self._listen())

    @classmethod
    async def start(cls, program: str) -> "DevTools":
        profile = tempfile.TemporaryDirectory(prefix="kept-browser-", ignore_cleanup_errors=True)
        # Only root has to do without the sandbox: Chromium does not start otherwise.
        as_root = ["--no-sandbox"] if os.geteuid() == 0 else []
        process = await asyncio.create_subprocess_exec(
            *("/bin/sh", "-c", _START, program, *_ALONE, *_PLAIN, *as_root, f"--user-data-dir={profile.name}"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            # Nothing of ours: no secret that the environment holds, no proxy, no time zone that a page could show.
            env={"PATH": os.environ.get("PATH", os.defpath), "HOME": profile.name, "LANG": "C.UTF-8", "TZ": "UTC"},
            start_new_session=True,
            limit=LONGEST_MESSAGE,
        )
        started = cls(process, profile)
        try:
            async with asyncio.timeout(TO_START):
                await started.call("Browser.getVersion")
        except (TimeoutError, BrowserLost):
            await started.close()
            raise NoBrowser(f"{program} does not start; does it by hand?") from None
        except BaseException:
            await started.close()
            raise
        return started

    @property
    def process_id(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return not self._listening.done()

    async def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """What the browser answers. Raises Declined or BrowserLost."""
        if not self.is_alive:
            raise BrowserLost
        self._number += 1
        number = self._number
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._asked[number] = answer
        message = {"id": number, "method": method, "params": parameters} | ({"sessionId": session} if session else {})
        assert self._process.stdin is not None, "it was made with a pipe"
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\0")
            await self._process.stdin.drain()
            return await answer
        except ConnectionError:
            raise BrowserLost from None
        finally:
            self._asked.pop(number, None)

    def hear(self, session: str, event: Event | None) -> None:
        """Has ``event`` called for everything that happens in a session; None: for nothing any more."""
        if event:
            self._events[session] = event
        else:
            self._events.pop(session, None)

    async def close(self) -> None:
        if self._process.returncode is None:  # otherwise the number may be somebody else's by now
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)  # a session of its own: its processes, and only those
        await self._process.wait()
        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)
        for _ in range(20):  # its last processes may still be writing
            await asyncio.to_thread(self._profile.cleanup)
            if not os.path.exists(self._profile.name):
                break
            await asyncio.sleep(0.05)

    async def _listen(self) -> None:
        assert self._process.stdout is not None, "it was made with a pipe"
        try:
            while True:
                message = json.loads((await self._process.stdout.readuntil(b"\0"))[:-1])
                if (number := message.get("id")) is not None:
                    self._answered(number, message)
                elif event := self._events.get(message.get("sessionId", "")):
                    event(message["method"], message["params"])
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, ValueError):
            pass  # it is gone, or says what cannot be understood: either way no longer of use
        finally:
            for waiting in self._asked.values():
                if not waiting.done():
                    waiting.set_exception(BrowserLost())

    def _answered(self, number: int, message: dict[str, Any]) -> None:
        waiting = self._asked.get(number)
        if waiting is None or waiting.done():
            return
        if "error" in message:
            waiting.set_exception(Declined(message["error"].get("message", "")))
        else:
            waiting.set_result(message.get("result", {}))
