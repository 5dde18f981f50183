"""Text and lists of links, packed small."""

import sys
from collections.abc import Iterable

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


ZstdError = zstd.ZstdError  # what is packed is damaged


def pack(text: str) -> bytes:
    return zstd.compress(text.encode(), 3)


def unpack(packed: bytes) -> str:
    return zstd.decompress(packed).decode()


def pack_links(links: Iterable[str]) -> bytes:
    text = "\n".join(links)
    return pack(text) if text else b""


def unpack_links(packed: bytes) -> tuple[str, ...]:
    return tuple(unpack(packed).split("\n")) if packed else ()
