"""Zip files of XML parts, the container of office documents and e-books, read within limits.

    read_container    bytes -> result of a reader for the container, or why it cannot be read
    ZipContainer      the parts by name, as XML or bytes, and their relationships

The total unpacked size and the compression ratio are limited. Document types, and with them entities, are refused, as
the formats require. Part names cannot lead outside of the container.
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
MAX_COMPRESSION_RATIO = 200  # for parts of more than a megabyte

RELATIONSHIP_NAMESPACE = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"

_MEGABYTE = 1024 * 1024
_CHUNK = 64 * 1024
_OLE_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # formats before 2007, and the wrapper of encrypted files
_STRICT_NAMESPACE = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/")
_TRANSITIONAL_NAMESPACE = rb"http://schemas.openxmlformats.org/\1/2006/"

ContainerReader: TypeAlias = Callable[["ZipContainer"], Extraction | Unreadable]


class DamagedContainer(Exception):
    """The container is invalid. Its message follows the name of the format: "a workbook that is encrypted"."""


class Relationship(NamedTuple):
    kind: str  # the last segment of its type: "hyperlink", "footnotes"
    target: str  # a part name, or a URL if external
    is_external: bool


def read_container(body: bytes, format_name: str, read: ContainerReader) -> Extraction | Unreadable:
    """Return the result of `read`, or why there is none, in a phrase that begins with `format_name`: "a workbook"."""
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
        """Return the bytes of a part; None if there is none with that name."""
        info = self._parts.get(_normalize_part_name(name))
        if info is None:
            return None
        if info.file_size > MAX_PART_BYTES:
            raise DamagedContainer(f"with a part of more than {MAX_PART_BYTES // _MEGABYTE} MB")
        return b"".join(self._read_chunks(info))

    def read_xml(self, name: str) -> Element | None:
        """Return a part as a tree with tags without namespaces; None if there is none with that name."""
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
        """Yield the elements with these tags in a part of any size, each when its end is reached.

        Reads no further than the caller iterates, and frees each element after it.
        """
        info = self._parts.get(_normalize_part_name(name))
        if info is None:
            return
        parser: XMLPullParser[Any] = XMLPullParser(("start", "end"))
        ancestors: list[Element] = []
        open_count = 0
        for number, chunk in enumerate(chain(self._read_chunks(info), (None,))):
            if chunk is None:
                parser.close()  # newer parsers may hold back the last elements until then
            elif number == 0:
                _refuse_doctype(chunk)
                parser.feed(_STRICT_NAMESPACE.sub(_TRANSITIONAL_NAMESPACE, chunk))
            else:
                parser.feed(chunk)
            events: Iterator[Any] = parser.read_events()
            for event, element in events:
                if event == "start":
                    ancestors.append(element)
                    open_count += _local_name(element.tag) in tags
                    continue
                ancestors.pop()
                open_count -= _local_name(element.tag) in tags
                if not open_count and _local_name(element.tag) in tags:
                    for descendant in element.iter():
                        descendant.tag = _local_name(descendant.tag)
                    yield element
                if ancestors and not open_count:
                    ancestors[-1].remove(element)

    def relationships(self, name: str) -> dict[str, Relationship]:
        """Return the relationships of a part by id; of the container itself for ''."""
        folder, _, file = name.rpartition("/")
        relationships: dict[str, Relationship] = {}
        root = self.read_xml(posixpath.join(folder, "_rels", f"{file}.rels"))
        for element in root if root is not None else ():
            target, external = element.get("Target", ""), element.get("TargetMode") == "External"
            kind = element.get("Type", "").rpartition("/")[2]
            relationships[element.get("Id", "")] = Relationship(
                kind, target if external else resolve_part_name(folder, target), external
            )
        return relationships

    def main_part_name(self) -> str:
        """Return the name of the main document part."""
        name = next((one.target for one in self.relationships("").values() if one.kind == "officeDocument"), "")
        if not self.has_part(name):
            raise DamagedContainer("with no document in it")
        return name

    def title(self) -> str:
        """Return the title in its properties, which may be empty or left over from another document."""
        name = next((one.target for one in self.relationships("").values() if one.kind == "core-properties"), "")
        properties = self.read_xml(name)
        title = properties.findtext("title") if properties is not None else None
        return " ".join((title or "").split())

    def _read_chunks(self, info: ZipInfo) -> Iterator[bytes]:
        if info.flag_bits & 0x1:
            raise DamagedContainer("that is encrypted")
        if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            raise DamagedContainer("compressed by a method that these files do not use")
        if info.file_size > _MEGABYTE and info.file_size > MAX_COMPRESSION_RATIO * info.compress_size:
            raise DamagedContainer(f"with a part compressed more than {MAX_COMPRESSION_RATIO} times, as in a zip bomb")
        with self._archive.open(info) as part:
            while chunk := part.read(_CHUNK):
                self._bytes_left -= len(chunk)
                if self._bytes_left < 0:
                    raise DamagedContainer(f"of more than {MAX_TOTAL_BYTES // _MEGABYTE} MB, unpacked")
                yield chunk


def resolve_part_name(folder: str, target: str) -> str:
    """Return the part name that a relative reference from this folder leads to."""
    path = unquote(target.partition("#")[0])
    return posixpath.normpath(posixpath.join("/", folder, path)).lstrip("/")


def _normalize_part_name(name: str) -> str:
    return name.replace("\\", "/").lstrip("/").lower()


def _local_name(tag: object) -> str:
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


class _FirstElementReached(Exception): ...


def _refuse_doctype(beginning: bytes) -> None:
    """Raise DamagedContainer if the XML has a document type, which must be before the first element."""

    def stop(*_: object) -> NoReturn:
        raise _FirstElementReached

    def refuse(*_: object) -> NoReturn:
        raise DamagedContainer("with a document type in its XML, which is not allowed")

    parser = expat.ParserCreate()
    parser.StartElementHandler = stop
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(beginning, True)
    except _FirstElementReached:
        return
    except (expat.ExpatError, LookupError) as error:  # LookupError: an unknown charset
        raise DamagedContainer(f"with XML that does not parse: {error}") from error
