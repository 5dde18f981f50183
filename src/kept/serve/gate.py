"""The gate before every door: whose name the request calls, which site sent it, who asks, and how often.

    Guarded   Host and Origin: a page of another site, or a name that somebody bent to this address, gets nothing
    Keyed     the key, what it opens, and how many requests a minute

Plain ASGI, so that everything behind it is behind it: pages, API, MCP, streams.
"""

import asyncio
import base64
import binascii
import ipaddress
import math
import re
import time
from dataclasses import field
from urllib.parse import quote

from fastapi import Response
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kept.model.key import Key, KeyScope
from kept.model.nouns import dataclass
from kept.serve.problems import problem
from kept.service import keys
from kept.service.asking import Asker
from kept.service.house import House
from kept.service.keys import Quota
from kept.service.wishing import Caller
from kept.settings import Settings

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
ALWAYS = {"x-content-type-options": "nosniff", "cross-origin-resource-policy": "same-origin"}
OPEN = re.compile(r"/healthz|/readyz|/login|/logout|/static/.*|/api/v1/hooks/[^/]+")  # a hook is signed instead
COOKIE = "kept_key"  # where a browser keeps the key of its person
READING = re.compile(r"/api/v1/try|/mcp(/.*)?")  # posts that change nothing, or that look at the scope themselves
_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[^:\[\]@/\s]+)(?::(\d{1,5}))?", re.IGNORECASE)
_ORIGIN = re.compile(r"(https?)://([^/]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What the server is called: the names that a request may have in its Host."""

    bound: str
    others: frozenset[str]

    @classmethod
    def of(cls, host: str, hosts: str) -> "Names":
        return cls(bound=_spelled(host), others=frozenset(name.lower() for name in hosts.split()))

    @property
    def need_keys(self) -> bool:
        """Whether somebody else than the people at this machine can get here."""
        return not _is_loopback(self.bound) or bool(self.others - LOOPBACK)

    def knows(self, host: str) -> bool:
        name = _name(host)
        if name is None:
            return False
        if name in LOOPBACK or name == self.bound or name in self.others:
            return True
        return self.bound in ("0.0.0.0", "[::]") and _address(name) is not None  # no page can bend an address


class Guarded:
    """Refuses what calls the server by a name that is not its own, or comes from a page of another site."""

    def __init__(self, app: ASGIApp, names: Names) -> None:
        self._app = app
        self._names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        if scope["type"] != "http":
            return await send({"type": "websocket.close", "code": 1008})

        async def hardened(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in ALWAYS.items():
                    headers.setdefault(name, value)
            await send(message)

        refusal = self._refusal(scope["method"], Headers(scope=scope))
        return await (refusal or self._app)(scope, receive, hardened)

    def _refusal(self, method: str, headers: Headers) -> Response | None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._names.knows(hosts[0]):
            return problem(421, "This server goes by another name. Its operator can add one: serve.hosts.")
        from_afar = method not in ("GET", "HEAD") and headers.get("sec-fetch-site") in ("cross-site", "same-site")
        if from_afar or not all(_is_same(origin, hosts[0]) for origin in headers.getlist("origin")):
            return problem(403, "Pages of other sites cannot use this server.")
        return None


@dataclass(slots=True)
class _Bucket:
    left: float
    at: float = field(default_factory=time.monotonic)


class Rates:
    """How often each may ask: as many as in a minute at once, then as they come back."""

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._buckets: dict[str, _Bucket] = {}

    def wait(self, who: str) -> float:
        """0: now. Otherwise in how many seconds."""
        if not self._per_minute:
            return 0
        if len(self._buckets) > 10_000:
            self._buckets.clear()
        bucket, now = self._buckets.setdefault(who, _Bucket(self._per_minute)), time.monotonic()
        rate = self._per_minute / 60
        bucket.left, bucket.at = min(self._per_minute, bucket.left + (now - bucket.at) * rate), now
        if bucket.left < 1:
            return (1 - bucket.left) / rate
        bucket.left -= 1
        return 0


class Keyed:
    """Finds out who asks. Where keys are needed, nobody gets in without; with one, no further than it opens."""

    def __init__(self, app: ASGIApp, house: House, settings: Settings, *, need_keys: bool) -> None:
        self._app = app
        self._house = house
        self._need_keys = need_keys
        self._rates = Rates(settings.serve.requests_per_minute)
        self._caller = Caller(files=bool(settings.network.allow_files), private=bool(settings.network.allow_private))
        serve = settings.serve
        self._turns: dict[str, asyncio.Lock] = {}
        self._quota = Quota(live_jobs=serve.live_jobs, sources=serve.sources, pages=serve.pages)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        found = await self._asker(scope)
        if isinstance(found, Response):
            return await found(scope, receive, send)
        scope.setdefault("state", {})["asker"] = found
        return await self._app(scope, receive, send)

    async def _asker(self, scope: Scope) -> Asker | Response:
        path, headers = scope["path"], Headers(scope=scope)
        said = _said(headers.get("authorization"))
        if OPEN.fullmatch(path):
            return self._in_time(f"from {(scope.get('client') or ('', 0))[0]}", Asker(caller=self._caller))
        if said is None and self._need_keys:
            said = cookie_parser(headers.get("cookie", "")).get(COOKIE)
        if said is None:
            if self._need_keys:
                return _unknown(scope, "This server needs a key: Authorization: Bearer KEY.")
            return Asker(scope=KeyScope.ADMIN, caller=self._caller)
        key = await keys.find_key(self._house.db, said)
        if key is None:
            return _unknown(scope, "This key opens nothing here. 'kept keys list' shows those that do.")
        wanted = KeyScope.READ if _only_reads(scope["method"], path) else KeyScope.WRITE
        if not key.scope.opens(wanted):
            return problem(403, f"The key '{key.name}' is for {key.scope}; this takes one for {wanted}.")
        return self._of(key)

    def _of(self, key: Key) -> Asker | Response:
        if key.scope is KeyScope.ADMIN:
            return Asker(name=key.name, scope=key.scope, caller=self._caller)
        turn = self._turns.setdefault(key.name, asyncio.Lock())
        asker = Asker(name=key.name, scope=key.scope, caller=self._caller, quota=self._quota, turn=turn)
        return self._in_time(f"key {key.name}", asker)

    def _in_time(self, who: str, asker: Asker) -> Asker | Response:
        if wait := self._rates.wait(who):
            return problem(429, "Too many requests in a minute.", {"Retry-After": str(math.ceil(wait))})
        return asker


def _said(authorization: str | None) -> str | None:
    """The key in a header: a bearer's, or a password. None: there is no such header."""
    if authorization is None:
        return None
    scheme, _, value = authorization.partition(" ")
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(value.strip(), validate=True).decode().partition(":")[2]
        except (binascii.Error, ValueError):
            return ""
    return value.strip() if scheme.lower() == "bearer" else ""


def _unknown(scope: Scope, detail: str) -> Response:
    """A person is led to a form; programs know what a bearer is."""
    if wants_page(scope) and scope["method"] == "GET":
        query = scope["query_string"].decode("latin-1")
        return RedirectResponse(f"/login?to={quote(scope['path'] + (query and f'?{query}'))}", 303)
    return problem(401, detail, {"WWW-Authenticate": 'Bearer realm="Kept"', "HX-Redirect": "/login"})


def wants_page(scope: Scope) -> bool:
    """Whether it is a person who asks, by a browser."""
    return not scope["path"].startswith(("/api", "/mcp")) and "text/html" in Headers(scope=scope).get("accept", "")


def _only_reads(method: str, path: str) -> bool:
    return method in ("GET", "HEAD", "OPTIONS") or READING.fullmatch(path) is not None


def _is_same(origin: str, host: str) -> bool:
    found = _ORIGIN.fullmatch(origin.strip())
    if found is None:
        return False
    usual = {"http": ":80", "https": ":443"}[found[1].lower()]
    return found[2].lower().removesuffix(usual) == host.lower().removesuffix(usual)


def _name(host: str) -> str | None:
    found = _AUTHORITY.fullmatch(host)
    return found[1].lower().removesuffix(".") if found else None


def _spelled(host: str) -> str:
    return f"[{host.lower()}]" if ":" in host else host.lower()


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return None


def _is_loopback(name: str) -> bool:
    address = _address(name)
    return name == "localhost" or (address is not None and address.is_loopback)
