"""Decompresses bodies (gzip, deflate, br, zstd) within limits.

A few kilobytes can unpack to gigabytes. So a body is decompressed in bounded pieces, up to a limit in bytes and in
proportion to its compressed size.
"""

import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Protocol, cast

import brotli  # type: ignore[import-untyped]

try:  # twice as fast as zlib, on platforms with a wheel
    from isal import isal_zlib as gunzip
except ImportError:
    import zlib as gunzip  # type: ignore[no-redef]

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

# br and zstd are supported but not requested: decompressing them takes two to five times as long, and a crawl is
# limited by its processor rather than by its bandwidth.
ACCEPT_ENCODING = "gzip, deflate"

CHUNK_BYTES = 256 * 1024
MAX_RATIO = 200  # text compresses to a tenth, tables of zeros to a fiftieth; a bomb has 1,000 and more
RATIO_CHECKED_ABOVE = 4 * 1024 * 1024  # bytes; smaller bodies are harmless at any ratio
MAX_MEMBERS = 1_024  # of one gzip or zstd body; each is cheap to send and expensive to start
_WINDOW_LOG = 23  # 8 MB, the maximum for a zstd-encoded body (RFC 9659)
_DECOMPRESSION_ERRORS: tuple[type[Exception], ...] = (zlib.error, cast(Any, gunzip).error, zstd.ZstdError, EOFError)


class UndecodableBody(Exception):
    """The body is damaged, incomplete, or in an unknown encoding."""


class BodyTooLarge(Exception):
    """The decompressed body exceeds the limit."""


class DecompressionBomb(Exception):
    """The body is compressed as no document would be; the message says how."""


class BodyDecoder:
    """Decompresses a body as it arrives. Raises UndecodableBody, BodyTooLarge or DecompressionBomb early."""

    def __init__(self, encoding: str, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes_in = 0
        self._bytes_out = 0
        self._chunks: list[bytes] = []
        self._decompressor = _new_decompressor(encoding.strip().lower()) if encoding else None

    def feed(self, data: bytes) -> None:
        self._bytes_in += len(data)
        if self._decompressor is None:
            self._append(data)
            return
        for piece in self._decompressor.feed(data):
            self._append(piece)

    def body(self) -> bytes:
        """Return the complete body. Raises UndecodableBody where it ends too early."""
        if self._decompressor is not None and self._bytes_in and not self._decompressor.is_complete:
            raise UndecodableBody("ends too early")
        return self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)

    def partial_body(self) -> bytes:
        """Return what was decompressed so far, up to the limit."""
        return b"".join(self._chunks)[: self._max_bytes]

    def _append(self, piece: bytes) -> None:
        self._bytes_out += len(piece)
        if self._bytes_out > self._max_bytes:
            self._chunks.append(piece)
            raise BodyTooLarge
        if self._bytes_out > RATIO_CHECKED_ABOVE and self._bytes_out > MAX_RATIO * self._bytes_in:
            raise DecompressionBomb(f"unpacks to more than {MAX_RATIO} times its size")
        self._chunks.append(piece)


def decompress_gzip(data: bytes) -> Iterator[bytes]:
    """Yield the bounded pieces of a gzip file. The caller limits their sum."""
    decompressor = _Zlib(31)
    for start in range(0, len(data), CHUNK_BYTES):  # in chunks, because zlib copies unconsumed input every time
        yield from decompressor.feed(data[start : start + CHUNK_BYTES])
    if not decompressor.is_complete:
        raise UndecodableBody("ends too early")


class _Decompressor(Protocol):
    @property
    def is_complete(self) -> bool: ...

    def feed(self, data: bytes) -> Iterator[bytes]: ...


def _new_decompressor(encoding: str) -> _Decompressor | None:
    match encoding:
        case "" | "identity":
            return None
        case "gzip" | "x-gzip":
            return _Zlib(31)
        case "deflate":
            return _Deflate()
        case "br":
            return _Brotli()
        case "zstd":
            return _Zstd()
        case _ if "," in encoding:
            raise DecompressionBomb("packed more than once")
        case _:
            raise UndecodableBody(f"unknown encoding {encoding[:40]!r}")


class _MultiMember:
    """Concatenated compressed streams, as gzip and zstd allow."""

    magic: bytes  # the start of a further stream; any other data after the first is padding

    def __init__(self, new_stream: Callable[[], Any]) -> None:
        self._new_stream = new_stream
        self._stream: Any = new_stream()
        self._members = 1
        self._pending = b""

    @property
    def is_complete(self) -> bool:
        return bool(self._stream.eof)

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._stream.eof:
                data = self._pending + data
                self._pending = b""
                if len(data) < len(self.magic) and self.magic.startswith(data):
                    self._pending = data
                    return
                if not data.startswith(self.magic):
                    return
                self._members += 1
                if self._members > MAX_MEMBERS:
                    raise DecompressionBomb(f"packed in more than {MAX_MEMBERS:,} parts")
                self._stream = self._new_stream()
            try:
                yield from self._decompress(data)
            except _DECOMPRESSION_ERRORS as error:
                raise UndecodableBody("damaged") from error
            data = self._stream.unused_data if self._stream.eof else b""

    def _decompress(self, data: bytes) -> Iterator[bytes]:
        raise NotImplementedError


class _Zlib(_MultiMember):
    magic = b"\x1f\x8b"

    def __init__(self, window: int) -> None:
        super().__init__(lambda: gunzip.decompressobj(window))

    def _decompress(self, data: bytes) -> Iterator[bytes]:
        while True:
            piece = self._stream.decompress(data, CHUNK_BYTES)
            if piece:
                yield piece
            data = self._stream.unconsumed_tail
            # After a full piece there may be more output, even without input left.
            if self._stream.eof or (not data and len(piece) < CHUNK_BYTES):
                return


class _Deflate:
    """The zlib format of the standard, or the raw one that some servers send instead."""

    def __init__(self) -> None:
        self._zlib: _Zlib | None = None

    @property
    def is_complete(self) -> bool:
        return self._zlib is not None and self._zlib.is_complete

    def feed(self, data: bytes) -> Iterator[bytes]:
        if self._zlib is None and data:
            self._zlib = _Zlib(15 if data[0] & 0x0F == 8 else -15)
        return self._zlib.feed(data) if self._zlib else iter(())


class _Zstd(_MultiMember):
    magic = b"\x28\xb5\x2f\xfd"

    def __init__(self) -> None:
        options = {int(zstd.DecompressionParameter.window_log_max): _WINDOW_LOG}
        super().__init__(lambda: zstd.ZstdDecompressor(options=options))

    def _decompress(self, data: bytes) -> Iterator[bytes]:
        while not self._stream.eof:
            piece = self._stream.decompress(data, CHUNK_BYTES)
            if piece:
                yield piece
            if self._stream.needs_input:
                return
            data = b""


class _Brotli:
    def __init__(self) -> None:
        self._stream = brotli.Decompressor()

    @property
    def is_complete(self) -> bool:
        return bool(self._stream.is_finished())

    def feed(self, data: bytes) -> Iterator[bytes]:
        try:
            while not self._stream.is_finished():
                piece = self._stream.process(data, output_buffer_limit=CHUNK_BYTES)
                if piece:
                    yield piece
                if self._stream.can_accept_more_data():
                    return
                data = b""
        except brotli.error as error:
            raise UndecodableBody("damaged") from error
