"""Zips of XML, which is what office programs and e-books write: their parts, read within limits.

    opened      bytes -> what a reader makes of the package in them, or why it cannot be read
    Package     its parts by name, as XML or as bytes, and what each one refers to

Nothing is unpacked beyond a total, or from a part that shrank more than documents do; document types, and with them
entities, are refused, as the formats themselves refuse them. Names lead nowhere but into the package.
"""

from __future__ import annotations

import io
import posixpath
import re
import zlib
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, NamedTuple, NoReturn, TypeAlias
from urllib.parse import unquote
from xml.etree.ElementTree import Element, ParseError, XMLParser, XMLPullParser
from xml.parsers import expat
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from kept.extract.sections import Extraction, Unreadable

MAX_PARTS = 20_000
MAX_TOTAL_BYTES = 64 * 1024 * 1024  # of all parts that are read
MAX_PART_BYTES = 24 * 1024 * 1024
MAX_COMPRESSION_RATIO = 200  # times; parts of a megabyte and less may shrink as they like

RELATIONSHIP_NAMESPACE = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"

_MEGABYTE = 1024 * 1024
_CHUNK = 64 * 1024
_OLE_MAGIC = (
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # what office programs wrote before 2007, and write around what they encrypt
)
_STRICT_NAMESPACE = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/")
_TRANSITIONAL_NAMESPACE = rb"http://schemas.openxmlformats.org/\1/2006/"

ContainerReader: TypeAlias = Callable[["ZipContainer"], Extraction | Unreadable]


class DamagedContainer(Exception):
    """The package is not what it should be. Says what is wrong with it, to follow the name of its format."""


class Relationship(NamedTuple):
    kind: str  # the last word of its type: "hyperlink", "footnotes"
    target: str  # the name of a part, or a URL
    is_external: bool


def read_container(body: bytes, format_name: str, read: ContainerReader) -> Extraction | Unreadable:
    """What `read` makes of the package. `what` begins the sentence that says why there is nothing: "a docx file"."""
    if body.startswith(_OLE_MAGIC):
        return Unreadable(reason=f"{format_name} that is encrypted, or was written in the format before 2007")
    try:
        with ZipFile(io.BytesIO(body)) as archive:
            return read(ZipContainer(archive))
    except DamagedContainer as error:
        return Unreadable(reason=f"{format_name} {error}")
    except RecursionError:
        return Unreadable(reason=f"{format_name} whose elements are nested too deep")
    except (BadZipFile, ParseError, zlib.error, EOFError, OSError, ValueError, NotImplementedError) as error:
        return Unreadable(reason=f"{format_name} that does not open: {error}"[:200])


class ZipContainer:
    def __init__(self, archive: ZipFile) -> None:
        infos = archive.infolist()
        if len(infos) > MAX_PARTS:
            raise DamagedContainer(f"of more than {MAX_PARTS:,} parts")
        self._archive = archive
        self._parts = {_normalize_part_name(info.filename): info for info in infos}
        self._bytes_left = MAX_TOTAL_BYTES

    def has_part(self, name: str) -> bool:
        return _normalize_part_name(name) in self._parts

    def read_part(self, name: str) -> bytes | None:
        """The bytes of a part; None if there is none of that name."""
        info = self._parts.get(_normalize_part_name(name))
        if info is None:
            return None
        if info.file_size > MAX_PART_BYTES:
            raise DamagedContainer(f"with a part of more than {MAX_PART_BYTES // _MEGABYTE} MB")
        return b"".join(self._read_chunks(info))

    def read_xml(self, name: str) -> Element | None:
        """A part as a tree whose tags have lost their namespaces; None if there is none of that name."""
        body = self.read_part(name)
        if body is None:
            return None
        _refuse_doctype(body)
        parser = XMLParser()
        parser.feed(_STRICT_NAMESPACE.sub(_TRANSITIONAL_NAMESPACE, body))
        root: Element = parser.close()
        for element in root.iter():
            element.tag = _local_name(element.tag)
        return root

    def iter_elements(self, name: str, *tags: str) -> Iterator[Element]:
        """The elements of these tags in a part of any size, one after the other as they end. Whoever stops early reads
        no further. What a tag holds is whole when it comes, and forgotten behind it.
        """
        info = self._parts.get(_normalize_part_name(name))
        if info is None:
            return
        parser: XMLPullParser[Any] = XMLPullParser(("start", "end"))
        above: list[Element] = []
        open_ = 0
        for number, chunk in enumerate(chain(self._read_chunks(info), (None,))):
            if chunk is None:
                parser.close()  # newer parsers may keep the last elements to themselves until then
            elif number == 0:
                _refuse_doctype(chunk)
                parser.feed(_STRICT_NAMESPACE.sub(_TRANSITIONAL_NAMESPACE, chunk))
            else:
                parser.feed(chunk)
            events: Iterator[Any] = parser.read_events()
            for event, element in events:
                if event == "start":
                    above.append(element)
                    open_ += _local_name(element.tag) in tags
                    continue
                above.pop()
                open_ -= _local_name(element.tag) in tags
                if not open_ and _local_name(element.tag) in tags:
                    for one in element.iter():
                        one.tag = _local_name(one.tag)
                    yield element
                if above and not open_:
                    above[-1].remove(element)

    def relationships(self, name: str) -> dict[str, Relationship]:
        """What a part refers to, by the ids it uses for that. The package itself is the part with no name."""
        folder, _, file = name.rpartition("/")
        found: dict[str, Relationship] = {}
        listed = self.read_xml(posixpath.join(folder, "_rels", f"{file}.rels"))
        for one in listed if listed is not None else ():
            target, external = one.get("Target", ""), one.get("TargetMode") == "External"
            kind = one.get("Type", "").rpartition("/")[2]
            found[one.get("Id", "")] = Relationship(
                kind, target if external else resolve_part_name(folder, target), external
            )
        return found

    def main_part_name(self) -> str:
        """The name of the part that everything else belongs to."""
        found = next((one.target for one in self.relationships("").values() if one.kind == "officeDocument"), "")
        if not self.has_part(found):
            raise DamagedContainer("with no document in it")
        return found

    def title(self) -> str:
        """The title in its properties, which may be blank or left over from another document."""
        place = next((one.target for one in self.relationships("").values() if one.kind == "core-properties"), "")
        about = self.read_xml(place)
        found = about.findtext("title") if about is not None else None
        return " ".join((found or "").split())

    def _read_chunks(self, info: ZipInfo) -> Iterator[bytes]:
        if info.flag_bits & 0x1:
            raise DamagedContainer("that is encrypted")
        if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            raise DamagedContainer("packed in a way that these files are not")
        if info.file_size > _MEGABYTE and info.file_size > MAX_COMPRESSION_RATIO * info.compress_size:
            raise DamagedContainer(f"with a part that shrank to less than a {MAX_COMPRESSION_RATIO}th: a bomb, perhaps")
        with self._archive.open(info) as part:
            while chunk := part.read(_CHUNK):
                self._bytes_left -= len(chunk)
                if self._bytes_left < 0:
                    raise DamagedContainer(f"of more than {MAX_TOTAL_BYTES // _MEGABYTE} MB, unpacked")
                yield chunk


def resolve_part_name(folder: str, target: str) -> str:
    """The name of the part that a part in this folder calls so."""
    path = unquote(target.partition("#")[0])
    return posixpath.normpath(posixpath.join("/", folder, path)).lstrip("/")


def _normalize_part_name(name: str) -> str:
    return name.replace("\\", "/").lstrip("/").lower()


def _local_name(tag: object) -> str:
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


class _FirstElementReached(Exception): ...


def _refuse_doctype(beginning: bytes) -> None:
    """Reads up to the first element, before which a document type has to stand."""

    def first(*_: object) -> NoReturn:
        raise _FirstElementReached

    def refuse(*_: object) -> NoReturn:
        raise DamagedContainer("with a document type in its XML, which may hide a bomb")

    parser = expat.ParserCreate()
    parser.StartElementHandler = first
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(beginning, True)
    except _FirstElementReached:
        return
    except (expat.ExpatError, LookupError) as error:  # the latter for a charset that nobody knows
        raise DamagedContainer(f"with XML that does not parse: {error}") from error
