"""The way to one target: what every request to it says, and its connections that nobody is using."""

import re
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import TypeAlias

from kept.origins.web.gate import Target
from kept.origins.web.wire import Wire

TRUSTED_FOR = 15.0  # seconds without use; servers and what stands between give up connections that are idle
Pairs: TypeAlias = Sequence[tuple[str, str]]  # of a header's name and value; a name may be there twice

_PORTS = {"http": 80, "https": 443}
_UNSPEAKABLE = re.compile(r"[\r\n\0]")


class Way:
    """``told``: the headers of every request. ``by_proxy``: a proxy is asked, which has to be told the whole URL."""

    def __init__(self, target: Target, told: Pairs, buffer: memoryview, *, by_proxy: bool = False) -> None:
        host = _host(target)
        self.target = target
        self.buffer = buffer
        self._told = merged([("Host", host)], told)
        self._names = frozenset(name.lower() for name, _ in self._told)
        self._lines = _lines(self._told)
        self._before_path = f"{target.scheme}://{host}" if by_proxy else ""
        self._idle: list[Wire] = []
        self._wires: set[Wire] = set()

    def request(self, url: str, headers: Mapping[str, str] | None, body: bytes | None) -> bytes:
        """ValueError if a header cannot be said."""
        lines, more = self._lines, [*headers.items()] if headers else []
        if body is not None:
            more = merged([("Content-Type", "application/octet-stream")], more)
            more.append(("Content-Length", str(len(body))))
        if more:
            anew = any(name.lower() in self._names for name, _ in more)
            lines = _lines(merged(self._told, more)) if anew else lines + _lines(more)
        method, path = "GET" if body is None else "POST", url[url.index("/", 8) :]
        head = f"{method} {self._before_path}{path} HTTP/1.1\r\n{lines}\r\n".encode()
        return head if body is None else head + body

    def take(self) -> Wire | None:
        """A connection that was used before; None: there is none to be trusted."""
        while self._idle:
            wire = self._idle.pop()
            if wire.is_open and monotonic() - wire.idle_since < TRUSTED_FOR:
                return wire
            wire.close()
        return None

    def add(self, wire: Wire) -> None:
        self._wires.add(wire)

    def put_back(self, wire: Wire) -> None:
        wire.idle_since = monotonic()
        self._idle.append(wire)

    def tidy(self) -> None:
        """Closes what nobody would trust any more."""
        now = monotonic()
        while self._idle and now - self._idle[0].idle_since > TRUSTED_FOR:
            self._idle.pop(0).close()

    def forget(self, wire: Wire) -> None:
        self._wires.discard(wire)
        if wire in self._idle:
            self._idle.remove(wire)

    def close(self) -> None:
        for wire in list(self._wires):
            wire.close()

    @property
    def wires(self) -> int:
        return len(self._wires)


def merged(told: Pairs, more: Pairs) -> list[tuple[str, str]]:
    """Both, and where they have the same names, only ``more``."""
    names = {name.lower() for name, _ in more}
    return [pair for pair in told if pair[0].lower() not in names] + [*more]


def _lines(headers: Pairs) -> str:
    lines = [f"{name}: {value}" for name, value in headers]
    if any(map(_UNSPEAKABLE.search, lines)):
        raise ValueError("a header cannot be said")  # without what it is: a secret
    return "".join(f"{line}\r\n" for line in lines)


def _host(target: Target) -> str:
    """As the Host header has it: the port only where nobody would guess it."""
    host = f"[{target.host}]" if ":" in target.host else target.host.rstrip(".")
    return host if _PORTS[target.scheme] == target.port else f"{host}:{target.port}"
