"""The way to one target: what every request to it says, and its connections that nobody is using."""

import re
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import TypeAlias

from kept.origins.web.http.address_policy import Endpoint
from kept.origins.web.http.connection import HttpConnection

MAX_IDLE_SECONDS = 15.0  # seconds without use; servers and what stands between give up connections that are idle
HeaderPairs: TypeAlias = Sequence[tuple[str, str]]  # of a header's name and value; a name may be there twice

_DEFAULT_PORTS = {"http": 80, "https": 443}
_INVALID_IN_HEADER = re.compile(r"[\r\n\0]")


class HostPool:
    """``told``: the headers of every request. ``by_proxy``: a proxy is asked, which has to be told the whole URL."""

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
        """ValueError if a header cannot be said."""
        lines, more = self._default_lines, [*headers.items()] if headers else []
        if body is not None:
            more = merge_headers([("Content-Type", "application/octet-stream")], more)
            more.append(("Content-Length", str(len(body))))
        if more:
            anew = any(name.lower() in self._default_names for name, _ in more)
            lines = _header_lines(merge_headers(self._default_headers, more)) if anew else lines + _header_lines(more)
        method, path = "GET" if body is None else "POST", url[url.index("/", 8) :]
        head = f"{method} {self._url_prefix}{path} HTTP/1.1\r\n{lines}\r\n".encode()
        return head if body is None else head + body

    def take_idle(self) -> HttpConnection | None:
        """A connection that was used before; None: there is none to be trusted."""
        while self._idle:
            wire = self._idle.pop()
            if wire.is_open and monotonic() - wire.idle_since < MAX_IDLE_SECONDS:
                return wire
            wire.close()
        return None

    def add(self, connection: HttpConnection) -> None:
        self._connections.add(connection)

    def return_to_pool(self, connection: HttpConnection) -> None:
        connection.idle_since = monotonic()
        self._idle.append(connection)

    def close_expired(self) -> None:
        """Closes what nobody would trust any more."""
        now = monotonic()
        while self._idle and now - self._idle[0].idle_since > MAX_IDLE_SECONDS:
            self._idle.pop(0).close()

    def remove(self, connection: HttpConnection) -> None:
        self._connections.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)

    def close(self) -> None:
        for wire in list(self._connections):
            wire.close()

    @property
    def connection_count(self) -> int:
        return len(self._connections)


def merge_headers(defaults: HeaderPairs, overrides: HeaderPairs) -> list[tuple[str, str]]:
    """Both, and where they have the same names, only ``more``."""
    names = {name.lower() for name, _ in overrides}
    return [pair for pair in defaults if pair[0].lower() not in names] + [*overrides]


def _header_lines(headers: HeaderPairs) -> str:
    lines = [f"{name}: {value}" for name, value in headers]
    if any(map(_INVALID_IN_HEADER.search, lines)):
        raise ValueError("a header cannot be said")  # without what it is: a secret
    return "".join(f"{line}\r\n" for line in lines)


def _host_header(target: Endpoint) -> str:
    """As the Host header has it: the port only where nobody would guess it."""
    host = f"[{target.host}]" if ":" in target.host else target.host.rstrip(".")
    return host if _DEFAULT_PORTS[target.scheme] == target.port else f"{host}:{target.port}"
