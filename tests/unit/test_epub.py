"""E-books."""

import pytest

from kept.extract.office.epub import extract
from kept.extract.sections import Extraction, Unreadable
from tests.office_files import epub

ENCRYPTION = (
    '<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><EncryptedData '
    'xmlns="http://www.w3.org/2001/04/xmlenc#"><EncryptionMethod Algorithm="{}"/></EncryptedData></encryption>'
)


def test_chapters_are_one_document_in_reading_order() -> None:
    body = epub({
        "z.xhtml": '<h1 id="ebb">Ebb</h1><a id="page1"/><p>Water goes, see <a href="a.xhtml#spring">later</a> or '
                   '<a href="https://example.org/">there</a> or <a href="a.xhtml">everything</a>.</p>',
        "nav.xhtml": '<nav><ol><li><a href="z.xhtml">Ebb</a></li></ol></nav>',
        "a.xhtml": '<h1 id="flood">Flood</h1><p>Water comes.</p><h2 id="spring">Spring tide</h2><p>Much of it.</p>'
                   '<h2 id="ebb">Back</h2><p>And again.</p>',
    }, title="The  Book")  # fmt: skip
    extraction = extract(body, None)
    assert isinstance(extraction, Extraction), extraction
    assert extraction.title == "The Book"
    assert extraction.markdown == (
        "# Ebb\n\nWater goes, see [later](#spring) or [there](https://example.org/) or everything.\n\n"
        "# Flood\n\nWater comes.\n\n## Spring tide\n\nMuch of it.\n\n## Back\n\nAnd again."
    )
    assert extraction.hrefs == ["https://example.org/"]
    ebb, flood = extraction.tree.children
    assert (ebb.heading, ebb.anchor) == ("Ebb", "ebb")
    assert [(node.heading, node.anchor) for node in flood.children] == [("Spring tide", "spring"), ("Back", None)]


def test_an_encrypted_book_is_unreadable_with_that_reason() -> None:
    locked = epub({"a.xhtml": "<p>x</p>"}, encryption=ENCRYPTION.format("http://www.w3.org/2001/04/xmlenc#aes256-cbc"))
    assert extract(locked, None) == Unreadable(reason="an e-book that is encrypted (DRM)")


def test_a_book_with_obfuscated_fonts_is_read() -> None:
    body = epub({"a.xhtml": "<p>x</p>"}, encryption=ENCRYPTION.format("http://www.idpf.org/2008/embedding"))
    assert isinstance(extract(body, None), Extraction)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (epub({}), "an e-book without text"),
        (epub({"a.xhtml": "<p>x</p>"}, container="<container/>"), "an e-book with no list of its contents"),
    ],
)
def test_a_book_without_a_text_is_unreadable(body: bytes, reason: str) -> None:
    assert extract(body, None) == Unreadable(reason=reason)
