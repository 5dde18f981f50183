"""Read plain text, and decode the bytes of any text format.

    decode_text       bytes -> str, or why not; every reader of text begins here
    decode_to_utf8    the same as UTF-8 bytes, for a parser that takes those
    extract           the reader: one section, no title, no headings, no links

The text is kept unchanged, in the field for Markdown; unless it is reStructuredText or AsciiDoc.
"""

from __future__ import annotations

import codecs
import re

from kept.extract.asciidoc.lines import looks_like_asciidoc
from kept.extract.rst.recognition import looks_like_rst
from kept.extract.sections import Extraction, SectionNode, Unreadable
from kept.model.companions import NO_COMPANIONS, Companions


def extract(
    body: bytes, charset: str | None, url: str = "", companions: Companions = NO_COMPANIONS
) -> Extraction | Unreadable:
    text = decode_text(body, charset)
    if isinstance(text, Unreadable):
        return text
    if looks_like_asciidoc(text):
        from kept.extract.asciidoc.reader import read_asciidoc  # it decodes with this module

        return read_asciidoc(text, companions)
    if looks_like_rst(text):
        from kept.extract.rst.reader import extract_text  # it decodes with this module

        return extract_text(text, url, companions)
    return Extraction(title="", markdown=text, tree=SectionNode(content=text))


# ── Decoding ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def decode_text(body: bytes, charset: str | None) -> str | Unreadable:
    """Return the text: newlines are \\n, no byte order mark, no whitespace at the end, never a NUL.

    The encoding is that of a byte order mark, else the declared charset, else UTF-8, also with a few invalid bytes,
    else windows-1252, as in browsers. Valid UTF-8 wins over a declared Latin-1, which is often wrong.
    """
    mark, codec = _byte_order_mark(body)
    if not codec:
        declared = _known_codec(charset) if charset else None
        if declared not in _WIDE_CODECS and _looks_binary(body):
            return Unreadable(reason="binary data, not text")
        codec = declared or "utf-8"
    if codec in _WIDE_CODECS:
        text = _try_decode(body[mark:], codec)
        if text is None:
            return Unreadable(reason=f"not the {codec} text it is declared to be")
    else:
        text = _first_that_decodes(body[mark:], codec)
    if b"\0" in body and "\0" in text:
        return Unreadable(reason="binary data, not text")
    return normalize_text(text)


def decode_to_utf8(body: bytes, charset: str | None) -> bytes | Unreadable:
    """Return decode_text() as UTF-8, without decoding the pages that need no change, which are most."""
    plain = body.rstrip()
    # Without \r, a byte order mark and trailing non-ASCII whitespace there is nothing to normalize.
    if (
        plain
        and b" " < plain[-1:] < b"\x7f"
        and b"\r" not in plain
        and not _byte_order_mark(body)[1]
        and (not charset or _known_codec(charset) in (None, "utf-8"))
        and not _looks_binary(body)
        and (plain.isascii() or _try_decode(plain, "utf-8") is not None)
    ):
        return plain
    text = decode_text(body, charset)
    return text if isinstance(text, Unreadable) else text.encode("utf-8", "ignore")


def normalize_text(text: str) -> str:
    """Return the text with \\n for every newline, no byte order mark and no whitespace at the end."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.removeprefix("\ufeff").rstrip()


# UTF-32's mark begins with UTF-16's, so it comes first.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_WIDE_CODECS = frozenset({"utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"})


def _byte_order_mark(body: bytes) -> tuple[int, str]:
    for mark, codec in _BYTE_ORDER_MARKS:
        if body.startswith(mark):
            return len(mark), codec
    return 0, ""


# The charsets that browsers support. Some of Python's other codecs take minutes or are no charsets ("idna",
# "unicode_escape", "utf-7").
_CODECS = frozenset({
    "utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be", "cp866", "cp874", "cp932",
    "cp949", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258", "iso8859-2", "iso8859-3",
    "iso8859-4", "iso8859-5", "iso8859-6", "iso8859-7", "iso8859-8", "iso8859-9", "iso8859-10", "iso8859-13",
    "iso8859-14", "iso8859-15", "iso8859-16", "koi8-r", "koi8-u", "mac-roman", "mac-cyrillic", "gbk", "gb2312",
    "gb18030", "big5", "big5hkscs", "euc_jp", "iso2022_jp", "shift_jis", "euc_kr",
})  # fmt: skip
# Labels that browsers support and Python does not.
_CODEC_ALIASES = {
    "windows-874": "cp874", "tis-620": "cp874", "iso-8859-11": "cp874", "iso-8859-6-i": "iso8859-6",
    "iso-8859-8-i": "iso8859-8", "windows-31j": "cp932", "windows-949": "cp949", "csgb2312": "gb2312",
    "koi8-ru": "koi8-u",
}  # fmt: skip
# Browsers decode these as a superset, which many pages use under the smaller name.
_CODEC_SUPERSETS = {
    "gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932", "euc_kr": "cp949", "big5": "big5hkscs",
    "iso8859-9": "cp1254",
}  # fmt: skip
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_:.-]{1,39}")


def _known_codec(label: str) -> str | None:
    """Return Python's name of a declared charset. None if unknown, or Latin-1, before which UTF-8 is tried."""
    if not _LABEL.fullmatch(label):
        return None
    label = label.lower().removeprefix("x-")
    try:
        name = codecs.lookup(_CODEC_ALIASES.get(label, label)).name
    except LookupError:
        return None
    return _CODEC_SUPERSETS.get(name, name) if name in _CODECS else None


def _first_that_decodes(body: bytes, codec: str) -> str:
    candidates = dict.fromkeys((codec, "utf-8"))
    for candidate in candidates:
        text = _try_decode(body, candidate)
        if text is not None:
            return text
    for candidate in candidates:
        text = body.decode(candidate, "replace")
        invalid = text.count("\ufffd")
        if invalid * 10 <= len(text) - invalid - len(text.encode("ascii", "ignore")):
            return text
    return _try_decode(body, "cp1252") or body.decode("latin-1")  # cp1252 leaves five bytes undefined


def _try_decode(body: bytes, codec: str) -> str | None:
    try:
        return body.decode(codec)
    except (UnicodeError, ValueError):
        return None


# Control characters that no text has. Escapes, for example, occur in coloured terminal output.
_CONTROL_BYTES = bytes(set(range(32)) - set(b"\b\t\n\v\f\r\x1b")) + b"\x7f"
_SAMPLE_BYTES = 64 * 1024


def _looks_binary(body: bytes) -> bool:
    if b"\0" in body:
        return True
    sample = body[:_SAMPLE_BYTES]
    controls = len(sample) - len(sample.translate(None, _CONTROL_BYTES))
    return controls * 50 > len(sample)
