"""PDF."""

import pytest

from kept.extract.pdf import extract
from kept.extract.sections import Extraction, Unreadable


def make_pdf(*pages: str) -> bytes:
    """Return a minimal PDF without a cross-reference table, which readers rebuild."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>"]
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects.append(f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>")
    objects.append("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    for number, words in enumerate(pages):
        drawn = f"BT /F1 12 Tf 72 700 Td ({words}) Tj ET" if words else ""
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * number} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>"
        )
        objects.append(f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream")
    body = "".join(f"{number} 0 obj\n{content}\nendobj\n" for number, content in enumerate(objects, start=1))
    return f"%PDF-1.4\n{body}trailer\n<< /Root 1 0 R /Size {len(objects) + 1} >>\n%%EOF\n".encode()


def test_each_page_is_a_section_with_an_anchor_that_browsers_open() -> None:
    extraction = extract(make_pdf("High water at six.", "", "Low water at noon."), None)
    assert isinstance(extraction, Extraction)
    assert extraction.markdown == "## Page 1\n\nHigh water at six.\n\n## Page 3\n\nLow water at noon."
    assert [section.anchor for section in extraction.tree.children] == ["page=1", "page=3"]


@pytest.mark.parametrize(
    "body", [b"", b"%PDF-1.4\n", b"<html>", make_pdf(""), make_pdf("One.", "Two.").replace(b"6 0 obj", b"9 0 obj")]
)
def test_a_file_without_text_is_unreadable(body: bytes) -> None:
    assert isinstance(extract(body, None), Unreadable)
