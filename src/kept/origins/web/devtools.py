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

BROWSER_PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
START_SECONDS = 30.0
STOP_SECONDS = 5.0
MAX_MESSAGE_BYTES = 256 * 1024 * 1024
SCRIPT_MEMORY_MB = 512  # megabytes of a page's objects
PROCESS_MEMORY_MB = 1024  # megabytes of everything else that one of its processes may hold

BrowserEventHandler: TypeAlias = Callable[[str, dict[str, Any]], None]  # name and facts

# The pipe is what was standard input and output: a shell puts them where Chromium looks for them.
_START_SCRIPT = f'ulimit -d {PROCESS_MEMORY_MB * 1024}; exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null'

_NO_NETWORK_FLAGS = (
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
_COMMON_FLAGS = (
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
    f"--js-flags=--max-old-space-size={SCRIPT_MEMORY_MB}",
    "--lang=en-US",
)


class BrowserUnavailable(Exception):
    """There is none, or it does not start: the sentence says what to do."""


class BrowserLost(Exception):
    """The browser is gone, or no longer answers."""


class BrowserCommandFailed(Exception):
    """The browser says that it cannot do what it was told."""


def find_browser(program: str = "") -> str:
    """The program to start: the one that is named, else the first that is installed. Raises NoBrowser."""
    if program:
        if found := shutil.which(program):
            return found
        raise BrowserUnavailable(f"the browser that the settings name, {program}, is not there")
    for name in BROWSER_PROGRAMS:
        if found := shutil.which(name):
            return found
    raise BrowserUnavailable("install Chromium (or name another one: crawl.browser in the settings)")


class DevTools:
    """``await DevTools.start(program)``, then calls and events until ``close()``."""

    def __init__(self, process: asyncio.subprocess.Process, profile: "tempfile.TemporaryDirectory[str]") -> None:
        self._process = process
        self._profile = profile
        self._pending_calls: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._event_handlers: dict[str, BrowserEventHandler] = {}
        self._last_call_id = 0
        self._reader_task = asyncio.create_task(self._read_messages())

    @classmethod
    async def start(cls, program: str) -> "DevTools":
        profile = tempfile.TemporaryDirectory(prefix="kept-browser-", ignore_cleanup_errors=True)
        # Only root has to do without the sandbox: Chromium does not start otherwise.
        as_root = ["--no-sandbox"] if os.geteuid() == 0 else []
        process = await asyncio.create_subprocess_exec(
            *(
                "/bin/sh",
                "-c",
                _START_SCRIPT,
                program,
                *_NO_NETWORK_FLAGS,
                *_COMMON_FLAGS,
                *as_root,
                f"--user-data-dir={profile.name}",
            ),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            # Nothing of ours: no secret that the environment holds, no proxy, no time zone that a page could show.
            env={"PATH": os.environ.get("PATH", os.defpath), "HOME": profile.name, "LANG": "C.UTF-8", "TZ": "UTC"},
            start_new_session=True,
            limit=MAX_MESSAGE_BYTES,
        )
        started = cls(process, profile)
        try:
            async with asyncio.timeout(START_SECONDS):
                await started.call("Browser.getVersion")
        except (TimeoutError, BrowserLost):
            await started.close()
            raise BrowserUnavailable(f"{program} does not start; does it by hand?") from None
        except BaseException:
            await started.close()
            raise
        return started

    @property
    def process_id(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return not self._reader_task.done()

    async def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """What the browser answers. Raises Declined or BrowserLost."""
        if not self.is_alive:
            raise BrowserLost
        self._last_call_id += 1
        number = self._last_call_id
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._pending_calls[number] = answer
        message = {"id": number, "method": method, "params": parameters} | ({"sessionId": session} if session else {})
        assert self._process.stdin is not None, "it was made with a pipe"
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\0")
            await self._process.stdin.drain()
            return await answer
        except ConnectionError:
            raise BrowserLost from None
        finally:
            self._pending_calls.pop(number, None)

    def set_event_handler(self, session: str, handler: BrowserEventHandler | None) -> None:
        """Has ``event`` called for everything that happens in a session; None: for nothing any more."""
        if handler:
            self._event_handlers[session] = handler
        else:
            self._event_handlers.pop(session, None)

    async def close(self) -> None:
        if self._process.returncode is None:  # otherwise the number may be somebody else's by now
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)  # a session of its own: its processes, and only those
        await self._process.wait()
        self._reader_task.cancel()
        await asyncio.gather(self._reader_task, return_exceptions=True)
        for _ in range(20):  # its last processes may still be writing
            await asyncio.to_thread(self._profile.cleanup)
            if not os.path.exists(self._profile.name):
                break
            await asyncio.sleep(0.05)

    async def _read_messages(self) -> None:
        assert self._process.stdout is not None, "it was made with a pipe"
        try:
            while True:
                message = json.loads((await self._process.stdout.readuntil(b"\0"))[:-1])
                if (number := message.get("id")) is not None:
                    self._complete_call(number, message)
                elif event := self._event_handlers.get(message.get("sessionId", "")):
                    event(message["method"], message["params"])
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, ValueError):
            pass  # it is gone, or says what cannot be understood: either way no longer of use
        finally:
            for waiting in self._pending_calls.values():
                if not waiting.done():
                    waiting.set_exception(BrowserLost())

    def _complete_call(self, number: int, message: dict[str, Any]) -> None:
        waiting = self._pending_calls.get(number)
        if waiting is None or waiting.done():
            return
        if "error" in message:
            waiting.set_exception(BrowserCommandFailed(message["error"].get("message", "")))
        else:
            waiting.set_result(message.get("result", {}))
