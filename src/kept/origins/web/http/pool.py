"""The connections to one endpoint, and the headers of every request to it."""

import re
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import TypeAlias

from kept.origins.web.http.address_policy import Endpoint
from kept.origins.web.http.connection import HttpConnection

MAX_IDLE_SECONDS = 15.0  # servers and middleboxes close idle connections
HeaderPairs: TypeAlias = Sequence[tuple[str, str]]  # names and values; a name may occur twice

_DEFAULT_PORTS = {"http": 80, "https": 443}
_INVALID_IN_HEADER = re.compile(r"[\r\n\0]")


class HostPool:
    """``via_proxy``: requests go to a proxy, and so carry the whole URL."""

    def __init__(
        self, endpoint: Endpoint, default_headers: HeaderPairs, read_buffer: memoryview, *, via_proxy: bool = False
    ) -> None:
        host = _host_header(endpoint)
        self.endpoint = endpoint
        self.read_buffer = read_buffer
        self._default_headers = merge_headers([("Host", host)], default_headers)
        self._default_names = frozenset(name.lower() for name, _ in self._default_headers)
        self._default_lines = _header_lines(self._default_headers)
        self._url_prefix = f"{endpoint.scheme}://{host}" if via_proxy else ""
        self._idle: list[HttpConnection] = []
        self._connections: set[HttpConnection] = set()

    def build_request(self, url: str, headers: Mapping[str, str] | None, body: bytes | None) -> bytes:
        """Return the bytes of a request. Raises ValueError for an invalid header."""
        lines, extra = self._default_lines, [*headers.items()] if headers else []
        if body is not None:
            extra = merge_headers([("Content-Type", "application/octet-stream")], extra)
            extra.append(("Content-Length", str(len(body))))
        if extra:
            overrides = any(name.lower() in self._default_names for name, _ in extra)
            if overrides:
                lines = _header_lines(merge_headers(self._default_headers, extra))
            else:
                lines += _header_lines(extra)
        method, path = "GET" if body is None else "POST", url[url.index("/", 8) :]
        head = f"{method} {self._url_prefix}{path} HTTP/1.1\r\n{lines}\r\n".encode()
        return head if body is None else head + body

    def take_idle(self) -> HttpConnection | None:
        """Return an idle connection; None when there is none that is still usable."""
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open and monotonic() - connection.idle_since < MAX_IDLE_SECONDS:
                return connection
            connection.close()
        return None

    def add(self, connection: HttpConnection) -> None:
        self._connections.add(connection)

    def return_to_pool(self, connection: HttpConnection) -> None:
        connection.idle_since = monotonic()
        self._idle.append(connection)

    def close_expired(self) -> None:
        now = monotonic()
        while self._idle and now - self._idle[0].idle_since > MAX_IDLE_SECONDS:
            self._idle.pop(0).close()

    def remove(self, connection: HttpConnection) -> None:
        self._connections.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)

    def close(self) -> None:
        for connection in list(self._connections):
            connection.close()

    @property
    def connection_count(self) -> int:
        return len(self._connections)


def merge_headers(defaults: HeaderPairs, overrides: HeaderPairs) -> list[tuple[str, str]]:
    """Return both, with overrides in place of defaults of the same name."""
    names = {name.lower() for name, _ in overrides}
    return [pair for pair in defaults if pair[0].lower() not in names] + [*overrides]


def _header_lines(headers: HeaderPairs) -> str:
    lines = [f"{name}: {value}" for name, value in headers]
    if any(map(_INVALID_IN_HEADER.search, lines)):
        raise ValueError("a header is not valid")  # without its value: it may be a secret
    return "".join(f"{line}\r\n" for line in lines)


def _host_header(endpoint: Endpoint) -> str:
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host.rstrip(".")
    return host if _DEFAULT_PORTS[endpoint.scheme] == endpoint.port else f"{host}:{endpoint.port}"
