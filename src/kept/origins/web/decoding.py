"""Unpacking what a server packed (gzip, deflate, br, zstd), never further than a limit.

A few kilobytes can unpack to gigabytes. So bytes are unpacked piece by piece, each piece is bounded, and it ends as
soon as there is too much of it: in all, or in proportion to what came over the wire.
"""

import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Protocol, cast

import brotli  # type: ignore[import-untyped]

try:  # twice as fast as zlib, where there is a wheel of it
    from isal import isal_zlib as gunzip
except ImportError:
    import zlib as gunzip  # type: ignore[no-redef]

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

# br and zstd are understood, but not asked for: unpacking them takes two to five times as long, and a crawl's own
# processor is scarcer than its wire.
ACCEPTED = "gzip, deflate"

PIECE = 256 * 1024
RATIO = 200  # text packs to a tenth, tables of zeros to a fiftieth; a bomb is 1,000 and more
UNSUSPICIOUS = 4 * 1024 * 1024  # below this, no ratio is a danger
MEMBERS = 1_024  # of one gzip or zstd body; each costs little to send and more to begin
_WINDOW_LOG = 23  # 8 MB: all that a zstd-encoded body may ask for (RFC 9659)
_DAMAGED: tuple[type[Exception], ...] = (zlib.error, cast(Any, gunzip).error, zstd.ZstdError, EOFError)


class Undecodable(Exception):
    """The bytes are not what the server says they are, or end too early."""


class TooLarge(Exception):
    """There is more of it than the limit."""


class Bomb(Exception):
    """It is packed as no honest document would be: the sentence says how."""


class Decoder:
    """Takes a body as it comes, keeps it unpacked. Raises Undecodable, TooLarge or Bomb as soon as that is certain."""

    def __init__(self, encoding: str, limit: int) -> None:
        self._limit = limit
        self._taken = 0
        self._made = 0
        self._pieces: list[bytes] = []
        self._unpacker = _unpacker(encoding.strip().lower()) if encoding else None

    def feed(self, data: bytes) -> None:
        self._taken += len(data)
        if self._unpacker is None:
            self._keep(data)
            return
        for piece in self._unpacker.feed(data):
            self._keep(piece)

    def body(self) -> bytes:
        """All of it, once everything was fed."""
        if self._unpacker is not None and self._taken and not self._unpacker.complete:
            raise Undecodable("ends too early")
        return self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)

    def so_far(self) -> bytes:
        """What was unpacked, up to the limit, whether complete or not."""
        return b"".join(self._pieces)[: self._limit]

    def _keep(self, piece: bytes) -> None:
        self._made += len(piece)
        if self._made > self._limit:
            self._pieces.append(piece)
            raise TooLarge
        if self._made > UNSUSPICIOUS and self._made > RATIO * self._taken:
            raise Bomb(f"unpacks to more than {RATIO} times its size")
        self._pieces.append(piece)


def unpack_gzip(data: bytes) -> Iterator[bytes]:
    """The pieces of a gzip file, as bounded as a Decoder's. The caller counts them."""
    unpacker = _Zlib(31)
    for start in range(0, len(data), PIECE):  # what is left over is copied again and again
        yield from unpacker.feed(data[start : start + PIECE])
    if not unpacker.complete:
        raise Undecodable("ends too early")


class _Unpacker(Protocol):
    @property
    def complete(self) -> bool: ...

    def feed(self, data: bytes) -> Iterator[bytes]: ...


def _unpacker(encoding: str) -> _Unpacker | None:
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
            raise Bomb("packed more than once")
        case _:
            raise Undecodable(f"unknown encoding {encoding[:40]!r}")


class _Members:
    """One packed stream after the other, as gzip and zstd allow."""

    begins: bytes  # how another one begins; anything else after the first is padding

    def __init__(self, begin: Callable[[], Any]) -> None:
        self._begin = begin
        self._stream: Any = begin()
        self._members = 1
        self._rest = b""

    @property
    def complete(self) -> bool:
        return bool(self._stream.eof)

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._stream.eof:
                data = self._rest + data
                self._rest = b""
                if len(data) < len(self.begins) and self.begins.startswith(data):
                    self._rest = data
                    return
                if not data.startswith(self.begins):
                    return
                self._members += 1
                if self._members > MEMBERS:
                    raise Bomb(f"packed in more than {MEMBERS:,} parts")
                self._stream = self._begin()
            try:
                yield from self._unpack(data)
            except _DAMAGED as error:
                raise Undecodable("damaged") from error
            data = self._stream.unused_data if self._stream.eof else b""

    def _unpack(self, data: bytes) -> Iterator[bytes]:
        raise NotImplementedError


class _Zlib(_Members):
    begins = b"\x1f\x8b"

    def __init__(self, window: int) -> None:
        super().__init__(lambda: gunzip.decompressobj(window))

    def _unpack(self, data: bytes) -> Iterator[bytes]:
        while True:
            piece = self._stream.decompress(data, PIECE)
            if piece:
                yield piece
            data = self._stream.unconsumed_tail
            # A full piece may have left something behind, even where all input was taken.
            if self._stream.eof or (not data and len(piece) < PIECE):
                return


class _Deflate:
    """zlib's format as the standard says, or the bare one that some servers send instead."""

    def __init__(self) -> None:
        self._chosen: _Zlib | None = None

    @property
    def complete(self) -> bool:
        return self._chosen is not None and self._chosen.complete

    def feed(self, data: bytes) -> Iterator[bytes]:
        if self._chosen is None and data:
            self._chosen = _Zlib(15 if data[0] & 0x0F == 8 else -15)
        return self._chosen.feed(data) if self._chosen else iter(())


class _Zstd(_Members):
    begins = b"\x28\xb5\x2f\xfd"

    def __init__(self) -> None:
        options = {int(zstd.DecompressionParameter.window_log_max): _WINDOW_LOG}
        super().__init__(lambda: zstd.ZstdDecompressor(options=options))

    def _unpack(self, data: bytes) -> Iterator[bytes]:
        while not self._stream.eof:
            piece = self._stream.decompress(data, PIECE)
            if piece:
                yield piece
            if self._stream.needs_input:
                return
            data = b""


class _Brotli:
    def __init__(self) -> None:
        self._stream = brotli.Decompressor()

    @property
    def complete(self) -> bool:
        return bool(self._stream.is_finished())

    def feed(self, data: bytes) -> Iterator[bytes]:
        try:
            while not self._stream.is_finished():
                piece = self._stream.process(data, output_buffer_limit=PIECE)
                if piece:
                    yield piece
                if self._stream.can_accept_more_data():
                    return
                data = b""
        except brotli.error as error:
            raise Undecodable("damaged") from error
