"""Hostile and damaged office documents and e-books."""

import asyncio
import io
import struct
import zipfile
from functools import cache

from hypothesis import given
from hypothesis import strategies as st

from kept.extract.office import docx, epub, pptx, xlsx
from kept.extract.reader import guess_content_type
from kept.extract.reader_pool.pool import ReaderPool
from kept.extract.sections import Extraction, Unreadable
from tests import office_files
from tests.office_files import package, relations, xml, zipped

DEEP = 200_000
WORD = "word/document.xml"
GOOD = office_files.docx("<w:p><w:r><w:t>good words</w:t></w:r></w:p>")
BLANKS = " " * 20_000_000
ENTITIES = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
LAUGHS = f'<!DOCTYPE d [<!ENTITY e0 "ha">{ENTITIES}]><d>&e11;</d>'
OUTSIDE = '<!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/passwd">]><d>&x;</d>'


def nested(*tags: str, deep: int = DEEP) -> str:
    """Return nested elements, each a little different, so that they do not compress like a zip bomb."""
    opening = "".join("".join(f"<{tag} n='{n * 7919 % 1_000_003}'>" for tag in tags) for n in range(deep))
    return opening + "".join(f"</{tag}>" for tag in reversed(tags)) * deep


def patched(body: bytes, signature: bytes, offset: int, new: bytes, name: bytes = WORD.encode()) -> bytes:
    """Return the zip with some bytes of one part's header replaced."""
    at = body.index(signature)
    size = 46 if signature == b"PK\x01\x02" else 30
    while body[at + size : at + size + len(name)] != name:
        at = body.index(signature, at + 4)
    return body[: at + offset] + new + body[at + offset + len(new) :]


def with_flipped_bit(body: bytes) -> bytes:
    """Return the zip with one bit of its data flipped."""
    at = body.index(WORD.encode()) + len(WORD) + 40
    return body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]


def _parts(body: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


PARTS = _parts(office_files.docx(
    '<w:p><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr><w:hyperlink r:id="l"><w:r><w:t>x</w:t></w:r>'
    '</w:hyperlink></w:p><w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val="2"/></w:tcPr></w:tc></w:tr></w:tbl>',
    ("l", "hyperlink", "https://example.org/"),
    numbering=xml("w:numbering", '<w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="0"><w:start w:val="3"/></w:lvl>'
                                 '</w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'),
))  # fmt: skip
NONSENSE = ["", "<", '"', "&x;", "<a>", "999999999999999999999", "-1", "../", "\0", "UTF-7", "<!DOCTYPE a>", "é"]


@cache
def hostile() -> dict[str, tuple[str, bytes, str]]:
    """Return by defect: a file extension, the bytes, and a part of the expected reason."""
    return {
        "a bomb": ("docx", office_files.docx(BLANKS), "as in a zip bomb"),
        "a part too large": ("docx", office_files.docx(BLANKS + BLANKS), "a part of more than 24 MB"),
        "many small bombs": ("pptx", office_files.pptx(*[" " * 1_000_000] * 80), "of more than 64 MB, unpacked"),
        "a lie about its size": ("docx", patched(GOOD, b"PK\x01\x02", 24, struct.pack("<I", 100)), "does not open"),
        "a huge claim": ("docx", patched(GOOD, b"PK\x01\x02", 24, struct.pack("<I", 2**32 - 2)), "a part of more than"),
        "an entity bomb": ("docx", package(WORD, {WORD: LAUGHS}), "a document type"),
        "an entity bomb in two bytes": ("docx", package(WORD, {WORD: LAUGHS.encode("utf-16")}), "a document type"),
        "an entity from outside": ("docx", package(WORD, {WORD: OUTSIDE}), "a document type"),
        "an entity bomb in a sheet": ("xlsx", package("xl/w.xml", {
            "xl/w.xml": xml("workbook", '<sheets><sheet name="s" r:id="s"/></sheets>'),
            "xl/_rels/w.xml.rels": relations(("s", "worksheet", "s.xml")),
            "xl/s.xml": LAUGHS,
        }), "a document type"),
        "a zip in a zip": ("docx", package(WORD, {WORD: GOOD}), "does not parse"),
        "no parts at all": ("docx", zipped({}), "no document in it"),
        "a missing part": ("docx", package(WORD, {}), "no document in it"),
        "a way out": ("docx", package("../../../../etc/passwd", {"../../etc/passwd": "<d/>"}), ""),
        "cut in half": ("docx", GOOD[: len(GOOD) // 2], "does not open"),
        "no zip": ("docx", b"words", "does not open"),
        "a wrong checksum": ("docx", patched(GOOD, b"PK\x01\x02", 16, b"\1\2\3\4"), "does not open"),
        "a bit that flipped": ("docx", with_flipped_bit(GOOD), "does not open"),
        "a password": ("docx", patched(GOOD, b"PK\x01\x02", 8, b"\1\0"), "that is encrypted"),
        "an odd packer": ("docx", patched(GOOD, b"PK\x01\x02", 10, b"\x0c\0"), "compressed by a method"),
        "the old format": ("docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(5_000), "encrypted, or was written"),
        "deep forms": ("docx", office_files.docx(nested("w:sdt", deep=DEEP // 4)), "nested too deep"),
        "deep runs": ("docx", office_files.docx(f"<w:p>{nested('w:smartTag')}</w:p>"), "nested too deep"),
        "deep tables": ("docx", office_files.docx(nested("w:tbl", "w:tr", "w:tc", deep=DEEP // 4)), "too deep"),
        "deep groups": ("pptx", office_files.pptx(nested("p:grpSp", deep=DEEP // 4)), "nested too deep"),
        "deep rows": ("xlsx", office_files.xlsx({"s": nested("row")}), "an empty workbook"),
        "deep words": ("epub", office_files.epub({"a.xhtml": "<div>" * DEEP}), "without text"),
        "not an archive of this kind": ("epub", GOOD, "no list of its contents"),
        "a book inside itself": ("epub", office_files.epub({"../../a.xhtml": ""}), "without text"),
    }  # fmt: skip


def test_every_hostile_container_is_unreadable_with_a_reason_within_the_limits_of_a_reader() -> None:
    async def read_all() -> dict[str, object]:
        pool = ReaderPool(1)
        try:
            cases = {**hostile(), "a valid document": ("docx", GOOD, "")}
            return {
                name: await pool.read(body, guess_content_type(f"a.{kind}") or "", f"https://example.org/a.{kind}")
                for name, (kind, body, _) in cases.items()
            }
        finally:
            await pool.close()

    results = asyncio.run(read_all())
    assert not isinstance(results.pop("a valid document"), Unreadable)
    for name, (_, _, reason) in hostile().items():
        result = results[name]
        assert isinstance(result, Unreadable), name
        assert not result.reason.startswith(("its reader", "reading it")), (name, result)  # the process was not killed
        assert reason in result.reason, (name, result)
        assert "passwd" not in result.reason


def test_part_names_are_case_insensitive() -> None:
    extraction = docx.extract(package("Word/Document.XML", {WORD: xml("w:document", "<w:body/>")}), None)
    assert isinstance(extraction, Extraction)


@given(
    changes=st.dictionaries(st.sampled_from(sorted(PARTS)), st.tuples(st.floats(0, 0.999), st.sampled_from(NONSENSE))),
    missing=st.sets(st.sampled_from(sorted(PARTS)), max_size=2),
)
def test_a_damaged_container_is_read_or_unreadable_and_raises_nothing(
    changes: dict[str, tuple[float, str]], missing: set[str]
) -> None:
    parts = dict(PARTS)
    for name, (where, nonsense) in changes.items():
        at = int(where * len(parts[name]))
        parts[name] = parts[name][:at] + nonsense.encode() + parts[name][at + 3 :]
    kept: dict[str, str | bytes] = {name: part for name, part in parts.items() if name not in missing}
    body = zipped(kept)
    for reader in (docx, pptx, xlsx, epub):
        assert isinstance(reader.extract(body, None), Extraction | Unreadable)
