"""Plain text: what its bytes say, and nothing read into it.

    decode     bytes -> words, or why not; every reader of text begins here
    utf8       the same words in UTF-8, for a parser that wants them so
    extract    the reader: one text, no title, no headings, no links

Text is kept as it came. It is called Markdown like everything else that is kept, and is shown as it stands.
"""

from __future__ import annotations

import codecs
import re

from kept.extract.sections import Extraction, SectionNode, Unreadable


def extract(body: bytes, charset: str | None) -> Extraction | Unreadable:
    text = decode_text(body, charset)
    if isinstance(text, Unreadable):
        return text
    return Extraction(title="", markdown=text, tree=SectionNode(content=text))


# ── From bytes to words ──────────────────────────────────────────────────────────────────────────────────────────────


def decode_text(body: bytes, charset: str | None) -> str | Unreadable:
    """The words in the bytes: newlines are \\n, no byte order mark, nothing blank at the end, and never a NUL.

    A byte order mark is believed first, then the declared charset, then UTF-8, also where a few bytes are damaged; what
    is none of these is windows-1252, as in every browser. Latin-1 is declared for much that is UTF-8, so UTF-8 that
    holds together is believed before it.
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
    """What decode() gives, in UTF-8. Most pages are that already, and nothing of them has to be made anew."""
    plain = body.rstrip()
    # With neither \r nor a byte order mark, and no other blank at the end, there is nothing to normalise.
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
    """The text with \\n for every newline, without a byte order mark at its start and blanks at its end."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.removeprefix("\ufeff").rstrip()


# UTF-32's mark begins with UTF-16's, so it is asked for first.
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


# Python knows more codecs than these, and some of them run for minutes or mean something else altogether ("idna",
# "unicode_escape", "utf-7"): a charset that a server declares may only be one that a browser would know.
_CODECS = frozenset({
    "utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be", "cp866", "cp874", "cp932",
    "cp949", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258", "iso8859-2", "iso8859-3",
    "iso8859-4", "iso8859-5", "iso8859-6", "iso8859-7", "iso8859-8", "iso8859-9", "iso8859-10", "iso8859-13",
    "iso8859-14", "iso8859-15", "iso8859-16", "koi8-r", "koi8-u", "mac-roman", "mac-cyrillic", "gbk", "gb2312",
    "gb18030", "big5", "big5hkscs", "euc_jp", "iso2022_jp", "shift_jis", "euc_kr",
})  # fmt: skip
# Names that browsers know, and Python does not.
_CODEC_ALIASES = {
    "windows-874": "cp874", "tis-620": "cp874", "iso-8859-11": "cp874", "iso-8859-6-i": "iso8859-6",
    "iso-8859-8-i": "iso8859-8", "windows-31j": "cp932", "windows-949": "cp949", "csgb2312": "gb2312",
    "koi8-ru": "koi8-u",
}  # fmt: skip
# What is called by these names is written in larger ones, as browsers know: one such character, and nothing would fit.
_CODEC_SUPERSETS = {
    "gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932", "euc_kr": "cp949", "big5": "big5hkscs",
    "iso8859-9": "cp1254",
}  # fmt: skip
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_:.-]{1,39}")


def _known_codec(label: str) -> str | None:
    """Python's name for a declared charset. None for unknown ones, and for Latin-1, which UTF-8 goes before."""
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
        damaged = text.count("\ufffd")
        if damaged * 10 <= len(text) - damaged - len(text.encode("ascii", "ignore")):
            return text
    return _try_decode(body, "cp1252") or body.decode("latin-1")  # the former leaves five bytes undefined


def _try_decode(body: bytes, codec: str) -> str | None:
    try:
        return body.decode(codec)
    except (UnicodeError, ValueError):
        return None


# Controls that no text has. Tabs, newlines, form feeds, backspaces and escapes (coloured terminal output) it may have.
_CONTROL_BYTES = bytes(set(range(32)) - set(b"\b\t\n\v\f\r\x1b")) + b"\x7f"
_SAMPLE_BYTES = 64 * 1024


def _looks_binary(body: bytes) -> bool:
    if b"\0" in body:
        return True
    sample = body[:_SAMPLE_BYTES]
    controls = len(sample) - len(sample.translate(None, _CONTROL_BYTES))
    return controls * 50 > len(sample)
