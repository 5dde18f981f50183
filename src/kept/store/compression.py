"""Compression of Markdown and lists of links: zstd."""

import sys
from collections.abc import Iterable

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
