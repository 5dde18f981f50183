"""Read manual pages, also compressed ones: the language roff with the macros of man, mdoc and tbl.

extract    the reader; refuses what has the name of a manual page and is none
"""

from __future__ import annotations

import re
import zlib

from kept.extract.man.characters import plain
from kept.extract.man.man_macros import NATIVE, ManWriter
from kept.extract.man.page import ManualPage
from kept.extract.man.roff import read_lines
from kept.extract.sections import Extraction, SectionNode, Unreadable
from kept.extract.text import decode_text

MAX_BYTES = 32 * 1024 * 1024
MAX_RATIO = 200  # unpacked to packed bytes
_GZIP_MAGIC = b"\x1f\x8b"
_SAMPLE_LENGTH = 20_000
_MACRO = re.compile(r"^[.'][ \t]*(TH|Dd|Dt|SH|Sh|so)(?:[ \t]|$)", re.MULTILINE)
_ALIAS = re.compile(r"(?:[.'](?:\\\".*)?\n|[ \t]*\n)*[.']so[ \t]+(\S+)[ \t]*(?:\n|\Z)")


def extract(body: bytes, charset: str | None) -> Extraction | Unreadable:
    if body.startswith(_GZIP_MAGIC):
        unpacked = _gunzip(body)
        if isinstance(unpacked, Unreadable):
            return unpacked
        body = unpacked
    text = decode_text(body, charset)
    if isinstance(text, Unreadable):
        return text
    if not _MACRO.search(text, 0, _SAMPLE_LENGTH):
        return Unreadable(reason="not a manual page, though its name ends like one")
    if (alias := _ALIAS.match(text)) and not text[alias.end() :].strip():
        return _alias_page(alias[1])
    if re.search(r"^[.'][ \t]*(?:Dd|Dt|Sh)\b", text, re.MULTILINE) and not re.search(
        r"^[.'][ \t]*TH\b", text, re.MULTILINE
    ):
        from kept.extract.man.mdoc_macros import MDOC_NATIVE, MdocWriter

        page = ManualPage()
        MdocWriter(page).read(read_lines(text, MDOC_NATIVE))
    else:
        page = ManualPage()
        ManWriter(page).read(read_lines(text, NATIVE))
    return page.writer.to_extraction(_title(page.title))


def _alias_page(target: str) -> Extraction:
    """Return the page of a name that only refers to another page."""
    name, _, section = plain(target).rpartition("/")[2].removesuffix(".gz").rpartition(".")
    words = f"See {name}({section})." if name else f"See {target}."
    return Extraction(title="", markdown=words, tree=SectionNode(content=words))


def _title(title: str) -> str:
    """Return the title of a page: LS(1) is ls(1), and Git::Repo(3) keeps its capitals."""
    name, _, section = title.partition("(")
    return f"{name.lower()}({section}" if section and name.isupper() and len(name) > 1 else title


def _gunzip(body: bytes) -> bytes | Unreadable:
    limit = min(MAX_BYTES, max(1024 * 1024, MAX_RATIO * len(body)))
    unpacker = zlib.decompressobj(wbits=31)
    try:
        text = unpacker.decompress(body, limit + 1)
    except zlib.error:
        return Unreadable(reason="a damaged gzip file")
    if len(text) > limit:
        return Unreadable(reason="it unpacks to more than a manual page can be")
    return text if unpacker.eof else Unreadable(reason="a gzip file that is cut off")
