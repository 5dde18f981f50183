"""Starts Chromium and speaks the DevTools protocol with it over a pipe, so that no port is open to other programs.

The browser has no network access of its own: no name resolves, every connection goes to a proxy that does not exist,
peer-to-peer traffic is disabled. Its requests are fulfilled by the caller (``browser``).
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
SCRIPT_MEMORY_MB = 512  # of a page's JavaScript heap
PROCESS_MEMORY_MB = 1024  # of other memory of each of its processes

BrowserEventHandler: TypeAlias = Callable[[str, dict[str, Any]], None]  # event name and parameters

# Chromium expects the pipe at file descriptors 3 and 4: a shell moves standard input and output there.
_START_SCRIPT = f'ulimit -d {PROCESS_MEMORY_MB * 1024}; exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null'

_NO_NETWORK_FLAGS = (
    "--proxy-server=http://nowhere.invalid:9",
    "--proxy-bypass-list=<-loopback>",  # also for loopback
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
    """There is no browser, or it does not start; the message says what to do."""


class BrowserLost(Exception):
    """The browser has ended, or no longer responds."""


class BrowserCommandFailed(Exception):
    """The browser rejected a command."""


def find_browser(program: str = "") -> str:
    """Return the path of the named browser, or of the first that is installed. Raises BrowserUnavailable."""
    if program:
        if path := shutil.which(program):
            return path
        raise BrowserUnavailable(f"the browser that the settings name, {program}, is not there")
    for name in BROWSER_PROGRAMS:
        if path := shutil.which(name):
            return path
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
        # Chromium does not start as root with its sandbox.
        sandbox_flags = ["--no-sandbox"] if os.geteuid() == 0 else []
        process = await asyncio.create_subprocess_exec(
            *(
                "/bin/sh",
                "-c",
                _START_SCRIPT,
                program,
                *_NO_NETWORK_FLAGS,
                *_COMMON_FLAGS,
                *sandbox_flags,
                f"--user-data-dir={profile.name}",
            ),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            # Not our environment: it may hold secrets, a proxy, and a time zone that a page could show.
            env={"PATH": os.environ.get("PATH", os.defpath), "HOME": profile.name, "LANG": "C.UTF-8", "TZ": "UTC"},
            start_new_session=True,
            limit=MAX_MESSAGE_BYTES,
        )
        devtools = cls(process, profile)
        try:
            async with asyncio.timeout(START_SECONDS):
                await devtools.call("Browser.getVersion")
        except (TimeoutError, BrowserLost):
            await devtools.close()
            raise BrowserUnavailable(f"{program} does not start; does it by hand?") from None
        except BaseException:
            await devtools.close()
            raise
        return devtools

    @property
    def process_id(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return not self._reader_task.done()

    async def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result. Raises BrowserCommandFailed or BrowserLost."""
        if not self.is_alive:
            raise BrowserLost
        self._last_call_id += 1
        call_id = self._last_call_id
        result: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._pending_calls[call_id] = result
        message = {"id": call_id, "method": method, "params": parameters} | ({"sessionId": session} if session else {})
        assert self._process.stdin is not None, "stdin and stdout are pipes"
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\0")
            await self._process.stdin.drain()
            return await result
        except ConnectionError:
            raise BrowserLost from None
        finally:
            self._pending_calls.pop(call_id, None)

    def set_event_handler(self, session: str, handler: BrowserEventHandler | None) -> None:
        """Call ``handler`` for every event of a session; None removes it."""
        if handler:
            self._event_handlers[session] = handler
        else:
            self._event_handlers.pop(session, None)

    async def close(self) -> None:
        if self._process.returncode is None:  # otherwise the process id may belong to another process
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)  # in a session of its own, so only its processes
        await self._process.wait()
        self._reader_task.cancel()
        await asyncio.gather(self._reader_task, return_exceptions=True)
        for _ in range(20):  # its last processes may still be writing to the profile
            await asyncio.to_thread(self._profile.cleanup)
            if not os.path.exists(self._profile.name):
                break
            await asyncio.sleep(0.05)

    async def _read_messages(self) -> None:
        assert self._process.stdout is not None, "stdin and stdout are pipes"
        try:
            while True:
                message = json.loads((await self._process.stdout.readuntil(b"\0"))[:-1])
                if (call_id := message.get("id")) is not None:
                    self._complete_call(call_id, message)
                elif handler := self._event_handlers.get(message.get("sessionId", "")):
                    handler(message["method"], message["params"])
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, ValueError):
            pass  # the browser has ended, or sends invalid messages
        finally:
            for result in self._pending_calls.values():
                if not result.done():
                    result.set_exception(BrowserLost())

    def _complete_call(self, call_id: int, message: dict[str, Any]) -> None:
        result = self._pending_calls.get(call_id)
        if result is None or result.done():
            return
        if "error" in message:
            result.set_exception(BrowserCommandFailed(message["error"].get("message", "")))
        else:
            result.set_result(message.get("result", {}))
