"""Values of the HTTP client: headers, timeouts, secret headers, responses and failures."""

import re
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple, TypeAlias

from kept.model.url import resolve_link
from kept.origins.web.http.address_policy import Endpoint

_COOKIE = re.compile(r"=([^;\s]+)")
_NOT_UTF8 = re.compile("[\udc80-\udcff]")  # a byte of a header that is not UTF-8


class Headers(Mapping[str, str]):
    """Response headers by case-insensitive name: the first value of each; ``get_all`` returns every one."""

    __slots__ = ("_by_name", "_pairs")

    def __init__(self, pairs: Sequence[tuple[bytes, bytes]] = ()) -> None:
        self._pairs = pairs
        self._by_name = {name.rstrip().lower(): value for name, value in reversed(pairs)}

    def __getitem__(self, name: str) -> str:
        return _decode_header(self._by_name[name.lower().encode()])

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower().encode() in self._by_name

    def __iter__(self) -> Iterator[str]:
        return map(_decode_header, self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def get_all(self, name: str) -> list[str]:
        wanted = name.lower().encode()
        return [_decode_header(value) for one, value in self._pairs if one.rstrip().lower() == wanted]

    def pairs(self) -> list[tuple[str, str]]:
        """Return all headers in order."""
        return [(_decode_header(name), _decode_header(value)) for name, value in self._pairs]


def _decode_header(value: bytes) -> str:
    return value.rstrip(b" \t").decode("utf-8", "surrogateescape")


WantsBody: TypeAlias = Callable[[int, Headers], bool]  # whether to read the body, by status and headers


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Time limits of a request, in seconds."""

    connect: float = 10.0
    read: float = 30.0  # to the first byte, and between any two
    total: float = 120.0


@dataclass(frozen=True, slots=True, repr=False)
class SecretHeaders:
    """Headers that are sent to one endpoint only. Their values are never shown."""

    endpoint: Endpoint | None = None
    headers: tuple[tuple[str, str], ...] = ()

    def redact(self, text: str) -> str:
        for part in self._fragments(6):
            text = text.replace(part, "***")
        return text

    def page_redactions(self) -> list[bytes]:
        """Return the secrets to remove from pages that repeat request headers. Short ones could be any word."""
        return [part.encode() for part in self._fragments(16)]

    def _fragments(self, shortest: int) -> list[str]:
        parts = [part for _, value in self.headers for part in _secret_fragments(value)]
        return [part for part in dict.fromkeys(parts) if len(part) >= shortest]

    def __repr__(self) -> str:
        return f"SecretHeaders({', '.join(name for name, _ in self.headers)})"


def _secret_fragments(value: str) -> Iterator[str]:
    """Yield a value and its secret parts: the token of "Bearer …", values of cookies, the password of a login."""
    yield value
    yield from value.split()[-1:]
    yield from _COOKIE.findall(value)
    if value[:6].lower() == "basic ":
        with suppress(ValueError):
            yield b64decode(value[6:]).decode().partition(":")[2]


class HttpResponse(NamedTuple):  # one per page: creating a frozen dataclass takes three times as long
    """A response. The body is empty where it was not wanted."""

    url: str
    status: int
    headers: Headers
    body: bytes = b""
    elapsed: float = 0.0  # seconds to the first byte

    @property
    def location(self) -> str | None:
        """Return the redirect target in canonical form; None without a valid one."""
        location = _NOT_UTF8.sub(lambda byte: f"%{ord(byte[0]) & 0xFF:02X}", self.headers.get("Location", ""))
        return resolve_link(location, self.url)


class FailureKind(Enum):
    """Why there is no response."""

    FORBIDDEN = auto()  # by the address policy
    TOO_LARGE = auto()
    DECOMPRESSION_BOMB = auto()
    PERMANENT = auto()  # a retry would not help
    TEMPORARY = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedRequest:
    """A request without a usable response. The reason is for people, and holds no secret."""

    url: str
    kind: FailureKind
    reason: str
    status: int | None = None
    elapsed: float = 0.0


def is_ok(status: int, headers: Headers) -> bool:
    return status == 200
