"""PDF."""

import pytest

from kept.extract.pdf import extract
from kept.extract.sections import Extraction, Unreadable


def make_pdf(*pages: str, outline: tuple[tuple[str, int], ...] = (), title: str = "") -> bytes:
    """Return a minimal PDF without a cross-reference table, which readers rebuild. Lines with `>` are in Courier."""
    after = 4 + 2 * len(pages)
    objects = [f"<< /Type /Catalog /Pages 2 0 R {f'/Outlines {after + 2} 0 R' if outline else ''} >>"]
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects.append(f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>")
    objects.append("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    for number, words in enumerate(pages):
        lines = [f"/F{2 if line[0] == '>' else 1} 12 Tf ({line}) Tj 0 -16 Td" for line in words.split("|") if line]
        drawn = f"BT 72 700 Td {' '.join(lines)} ET" if words else ""
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * number} 0 R "
            f"/Resources << /Font << /F1 3 0 R /F2 {after} 0 R >> >> >>"
        )
        objects.append(f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream")
    objects.append("<< /Type /Font /Subtype /Type1 /BaseFont /Courier >>")
    objects.append(f"<< /Title ({title}) >>")
    objects.append(f"<< /Type /Outlines /First {after + 3} 0 R /Last {after + 2 + len(outline)} 0 R >>")
    for number, (entry, page) in enumerate(outline, start=after + 3):
        following = f"/Next {number + 1} 0 R" if number < after + 2 + len(outline) else ""
        objects.append(
            f"<< /Title ({entry}) /Parent {after + 2} 0 R {following} /Dest [{4 + 2 * page} 0 R /XYZ 0 700 0] >>"
        )
    body = "".join(f"{number} 0 obj\n{content}\nendobj\n" for number, content in enumerate(objects, start=1))
    return (
        f"%PDF-1.4\n{body}trailer\n<< /Root 1 0 R /Info {after + 1} 0 R /Size {len(objects) + 1} >>\n%%EOF\n".encode()
    )


def test_each_page_is_a_section_with_an_anchor_that_browsers_open() -> None:
    extraction = extract(make_pdf("High water at six.", "", "Low water at noon."), None)
    assert isinstance(extraction, Extraction)
    assert extraction.markdown == "## Page 1\n\nHigh water at six.\n\n## Page 3\n\nLow water at noon."
    assert [section.anchor for section in extraction.tree.children] == ["page=1", "page=3"]


def test_the_entries_of_the_outline_are_the_sections() -> None:
    pages = (
        "Harbour Guide 1|About this guide.|2 Tides|High water at six.",
        "Harbour Guide 2|Low water at noon.|>tide --low|>12:00",
        "Harbour Guide 3|Locks|Open daily.",
    )
    document = make_pdf(*pages, outline=(("Tides", 0), ("Locks", 2)), title="untitled")
    extraction = extract(document, None)
    assert isinstance(extraction, Extraction)
    assert extraction.markdown == (
        "About this guide.\n\n# Tides\n\nHigh water at six.\n\nLow water at noon.\n\n```\n>tide --low\n>12:00\n```"
        "\n\n# Locks\n\nOpen daily."
    )
    assert [(section.heading, section.anchor) for section in extraction.tree.children] == [
        ("Tides", "page=1"),
        ("Locks", "page=3"),
    ]
    assert extraction.title == "Tides", "the first heading: the metadata have none"
    place = next(place for place in extraction.places if place.anchor == "page=2")
    assert extraction.markdown[place.start :].startswith("Low water")


@pytest.mark.parametrize(
    "body", [b"", b"%PDF-1.4\n", b"<html>", make_pdf(""), make_pdf("One.", "Two.").replace(b"6 0 obj", b"9 0 obj")]
)
def test_a_file_without_text_is_unreadable(body: bytes) -> None:
    assert isinstance(extract(body, None), Unreadable)
