"""Middleware that decides which requests are allowed, and finds out whose they are.

    HostCheckMiddleware   Host and Origin: refuses pages of other sites and DNS rebinding
    AuthMiddleware        keys, their scopes, and requests per minute

Plain ASGI, so that it covers everything: pages, API, MCP and streams.
"""

import asyncio
import base64
import binascii
import ipaddress
import math
import re
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import quote

from fastapi import Response
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kept.errors import StoreError
from kept.model.key import ApiKey, KeyScope
from kept.model.source import Authority
from kept.server.connections import address_block
from kept.server.problems import problem_response
from kept.server.proxies import TrustedProxies, is_forwarded
from kept.service import keys
from kept.service.access import Principal, Quota
from kept.service.context import Services
from kept.settings import Settings

LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})
SECURITY_HEADERS = {"x-content-type-options": "nosniff", "cross-origin-resource-policy": "same-origin"}
FREE_PATHS = re.compile(r"/healthz|/readyz|/static/.*")  # without a key and without a rate limit
PUBLIC_PATHS = re.compile(r"/login|/logout|/api/v1/hooks/[^/]+")  # without a key; hooks are signed instead
KEY_COOKIE = "kept_key"
KEY_CHECK_SECONDS = 2.0  # while an answer is being sent
READ_ONLY_POST_PATHS = re.compile(r"/api/v1/try|/mcp(/.*)?")  # these change nothing, or check the scope themselves
_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[^:\[\]@/\s]+)(?::(\d{1,5}))?", re.IGNORECASE)
_ORIGIN = re.compile(r"(https?)://([^/]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedHosts:
    """The names that a request may have in its Host header."""

    bind_host: str
    extra_hosts: frozenset[str]

    @classmethod
    def from_settings(cls, host: str, hosts: str) -> "AllowedHosts":
        return cls(bind_host=_normalize_host(host), extra_hosts=frozenset(name.lower() for name in hosts.split()))

    @property
    def requires_keys(self) -> bool:
        """Whether other machines can reach the server."""
        return not _is_loopback(self.bind_host) or bool(self.extra_hosts - LOOPBACK_HOSTS)

    def allows(self, host: str) -> bool:
        name = _host_name(host)
        if name is None:
            return False
        if name in LOOPBACK_HOSTS or name == self.bind_host or name in self.extra_hosts:
            return True
        return self.bind_host in ("0.0.0.0", "[::]") and _parse_ip(name) is not None  # DNS rebinding needs a name


class HostCheckMiddleware:
    """Refuses requests with an unknown Host, and requests from pages of other sites."""

    def __init__(self, app: ASGIApp, allowed_hosts: AllowedHosts) -> None:
        self._app = app
        self._allowed_hosts = allowed_hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        if scope["type"] != "http":
            return await send({"type": "websocket.close", "code": 1008})

        async def send_with_security_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refusal = self._check_forwarded(scope) or self._check_host_and_origin(scope["method"], Headers(scope=scope))
        return await (refusal or self._app)(scope, receive, send_with_security_headers)

    def _check_forwarded(self, scope: Scope) -> Response | None:
        """Refuse requests of a proxy where no key is needed: it may pass on requests from anywhere as local ones."""
        if self._allowed_hosts.requires_keys or not is_forwarded(scope):
            return None
        return problem_response(
            421,
            "This server is not set up for a proxy. Its operator can name the site in serve.hosts, and give out keys.",
        )

    def _check_host_and_origin(self, method: str, headers: Headers) -> Response | None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._allowed_hosts.allows(hosts[0]):
            return problem_response(
                421, "This server does not answer to this Host. Its operator can allow more names in serve.hosts."
            )
        is_cross_site = method not in ("GET", "HEAD") and headers.get("sec-fetch-site") in ("cross-site", "same-site")
        if is_cross_site or not all(_is_same_origin(origin, hosts[0]) for origin in headers.getlist("origin")):
            return problem_response(403, "Pages of other sites cannot use this server.")
        return None


@dataclass(slots=True)
class _TokenBucket:
    tokens: float
    updated_at: float = field(default_factory=time.monotonic)


class RequestRateLimiter:
    """A token bucket per client: a burst of one minute's requests, then the steady rate."""

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._buckets: dict[str, _TokenBucket] = {}

    def acquire(self, client: str) -> float:
        """Take a token. Returns 0, or the seconds until there is one."""
        if not self._per_minute:
            return 0
        if len(self._buckets) > 10_000:
            self._buckets.clear()
        bucket, now = self._buckets.setdefault(client, _TokenBucket(self._per_minute)), time.monotonic()
        rate = self._per_minute / 60
        bucket.tokens, bucket.updated_at = min(self._per_minute, bucket.tokens + (now - bucket.updated_at) * rate), now
        if bucket.tokens < 1:
            return (1 - bucket.tokens) / rate
        bucket.tokens -= 1
        return 0


class AuthMiddleware:
    """Finds the principal of each request. Requires a key where keys are required, and holds each key to its scope."""

    def __init__(self, app: ASGIApp, services: Services, settings: Settings, *, requires_keys: bool) -> None:
        self._app = app
        self._services = services
        self._requires_keys = requires_keys
        self._proxies = TrustedProxies.from_settings(settings.serve.proxies)
        self._rate_limiter = RequestRateLimiter(settings.serve.requests_per_minute)
        self._permissions = settings.permissions_of(Authority.CALLER)
        serve = settings.serve
        self._quota_locks: dict[str, asyncio.Lock] = {}
        self._quota = Quota(live_jobs=serve.live_jobs, sources=serve.sources, pages=serve.pages)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        principal = await self._authenticate(scope)
        if isinstance(principal, Response):
            return await principal(scope, receive, send)
        scope.setdefault("state", {})["principal"] = principal
        if principal.name and (token := self._find_token(scope)):
            send = _RevocableResponse(send, lambda: keys.find_key(self._services.db, token)).send
        return await self._app(scope, receive, send)

    def _find_token(self, scope: Scope) -> str | None:
        headers = Headers(scope=scope)
        token = _credential(headers.get("authorization"))
        if token is None and self._requires_keys:
            token = cookie_parser(headers.get("cookie", "")).get(KEY_COOKIE)
        return token

    async def _authenticate(self, scope: Scope) -> Principal | Response:
        path, token = scope["path"], self._find_token(scope)
        if FREE_PATHS.fullmatch(path):
            return Principal(permissions=self._permissions)
        if PUBLIC_PATHS.fullmatch(path):
            # A proxy that does not name its clients would have one limit for all of them.
            address = self._proxies.client_address(scope)
            client = f"from {address_block(address)}" if address else None
            return self._apply_rate_limit(client, Principal(permissions=self._permissions))
        if token is None:
            if self._requires_keys:
                return _unauthorized(scope, "This server needs a key. Send it as a header, Authorization: Bearer KEY.")
            return Principal(scope=KeyScope.ADMIN, permissions=self._permissions)
        key = await keys.find_key(self._services.db, token)
        if key is None:
            return _unauthorized(scope, "This key is not valid here. 'kept keys list' shows the keys of this server.")
        required = KeyScope.READ if _is_read_only(scope["method"], path) else KeyScope.WRITE
        if not key.scope.allows(required):
            return problem_response(
                403, f"The key '{key.name}' has the scope {key.scope}; this request needs {required}."
            )
        return self._principal_for_key(key)

    def _principal_for_key(self, key: ApiKey) -> Principal | Response:
        if key.scope is KeyScope.ADMIN:
            return Principal(name=key.name, scope=key.scope, permissions=self._permissions)
        lock = self._quota_locks.setdefault(key.name, asyncio.Lock())
        principal = Principal(
            name=key.name, scope=key.scope, permissions=self._permissions, quota=self._quota, quota_lock=lock
        )
        return self._apply_rate_limit(f"key {key.name}", principal)

    def _apply_rate_limit(self, client: str | None, principal: Principal) -> Principal | Response:
        if client and (wait := self._rate_limiter.acquire(client)):
            return problem_response(429, "Too many requests in this minute.", {"Retry-After": str(math.ceil(wait))})
        return principal


class _RevocableResponse:
    """Ends a response that is still being sent when its key has been removed: a stream of events would go on."""

    def __init__(self, send: Send, find_key: Callable[[], Awaitable[ApiKey | None]]) -> None:
        self._send = send
        self._find_key = find_key
        self._checked_at = time.monotonic()
        self._is_ended = False

    async def send(self, message: Message) -> None:
        if self._is_ended:
            return
        if message.get("more_body") and time.monotonic() - self._checked_at > KEY_CHECK_SECONDS:
            with suppress(StoreError):
                self._is_ended = await self._find_key() is None
            self._checked_at = time.monotonic()
            if self._is_ended:
                message = {"type": "http.response.body", "body": b"", "more_body": False}
        await self._send(message)


def _credential(authorization: str | None) -> str | None:
    """Return the bearer token, or the password of basic auth; "" for anything else, None without a header."""
    if authorization is None:
        return None
    scheme, _, value = authorization.partition(" ")
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(value.strip(), validate=True).decode().partition(":")[2]
        except (binascii.Error, ValueError):
            return ""
    return value.strip() if scheme.lower() == "bearer" else ""


def _unauthorized(scope: Scope, detail: str) -> Response:
    """Redirect browsers to the login page; answer programs with 401."""
    if wants_html(scope) and scope["method"] == "GET":
        query = scope["query_string"].decode("latin-1")
        return RedirectResponse(f"/login?to={quote(scope['path'] + (query and f'?{query}'))}", 303)
    return problem_response(401, detail, {"WWW-Authenticate": 'Bearer realm="Kept"', "HX-Redirect": "/login"})


def wants_html(scope: Scope) -> bool:
    """Whether the request comes from a person with a browser."""
    return not scope["path"].startswith(("/api", "/mcp")) and "text/html" in Headers(scope=scope).get("accept", "")


def _is_read_only(method: str, path: str) -> bool:
    return method in ("GET", "HEAD", "OPTIONS") or READ_ONLY_POST_PATHS.fullmatch(path) is not None


def _is_same_origin(origin: str, host: str) -> bool:
    match = _ORIGIN.fullmatch(origin.strip())
    if match is None:
        return False
    default_port = {"http": ":80", "https": ":443"}[match[1].lower()]
    return match[2].lower().removesuffix(default_port) == host.lower().removesuffix(default_port)


def _host_name(host: str) -> str | None:
    match = _AUTHORITY.fullmatch(host)
    return match[1].lower().removesuffix(".") if match else None


def _normalize_host(host: str) -> str:
    return f"[{host.lower()}]" if ":" in host else host.lower()


def _parse_ip(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return None


def _is_loopback(name: str) -> bool:
    address = _parse_ip(name)
    return name == "localhost" or (address is not None and address.is_loopback)
