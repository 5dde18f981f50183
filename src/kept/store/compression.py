"""Compression of Markdown and lists of links and places: zstd."""

import json
import sys
from collections.abc import Iterable

from kept.model.document import Place

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


ZstdError = zstd.ZstdError  # the compressed data is damaged


# Level 1: one percent larger than the default, in two thirds of the time. A new compressor a text would be slower.
_compressor = zstd.ZstdCompressor(1)


def compress(text: str) -> bytes:
    return _compressor.compress(text.encode(), _compressor.FLUSH_FRAME)


def compress_all(texts: Iterable[str]) -> list[bytes]:
    return [compress(text) for text in texts]


def decompress(compressed: bytes) -> str:
    return zstd.decompress(compressed).decode()


def compress_links(links: Iterable[str]) -> bytes:
    text = "\n".join(links)
    return compress(text) if text else b""


def decompress_links(compressed: bytes) -> tuple[str, ...]:
    return tuple(decompress(compressed).split("\n")) if compressed else ()


def compress_places(places: Iterable[Place]) -> bytes:
    rows = [list(place) for place in places]
    return compress(json.dumps(rows, separators=(",", ":"))) if rows else b""


def decompress_places(compressed: bytes) -> tuple[Place, ...]:
    return tuple(map(Place._make, json.loads(decompress(compressed)))) if compressed else ()
