"""Workbooks and number formats."""

import pytest

from kept.extract.office.cell_formats import parse_number_format
from kept.extract.office.xlsx import MAX_ROWS, extract
from kept.extract.sections import Extraction, Unreadable
from tests.office_files import xlsx, xml

STYLES = xml(
    "styleSheet",
    '<numFmts><numFmt numFmtId="164" formatCode="[$€-407] #,##0.00"/></numFmts><cellXfs><xf numFmtId="0"/>'
    '<xf numFmtId="14"/><xf numFmtId="9"/><xf numFmtId="164"/></cellXfs>',
)
STRINGS = xml(
    "sst",
    "<si><t>Port</t></si><si><r><t>Ki</t></r><r><t>el</t></r><rPh><t>key</t></rPh></si><si><t>a|b\nc</t></si>",
)
CELLS = """<dimension ref="B2:G3"/><sheetData>
<row r="2"><c r="B2" t="s"><v>0</v></c><c r="C2" t="inlineStr"><is><t>Since</t></is></c>
<c r="G2" t="str"><v>more</v></c></row>
<row r="3"><c r="B3" t="s"><v>1</v></c><c r="C3" s="1"><v>45000</v></c><c r="D3" s="2"><v>0.5</v></c>
<c r="E3" s="3"><v>-1234.5</v></c><c r="F3" t="b"><v>1</v></c><c r="G3"><f>1+1</f><v>2</v></c>
<c r="H3" t="s"><v>2</v></c>
</row></sheetData><hyperlinks><hyperlink ref="B3" r:id="l"/></hyperlinks>"""

EXPECTED = r"""## Ports

| Port | Since |  |  |  | more |  |
| --- | --- | --- | --- | --- | --- | --- |
| [Kiel](https://example.org/l) | 2023-03-15 | 50% | -€ 1,234.50 | TRUE | 2 | a\|b<br>c |"""


def _extract(body: bytes) -> Extraction:
    extraction = extract(body, None)
    assert isinstance(extraction, Extraction), extraction
    return extraction


def test_sheets_become_tables_of_displayed_values() -> None:
    row = '<sheetData><row r="1"><c r="A1"><v>1</v></c></row></sheetData>'
    body = xlsx(
        {"Ports": CELLS, "Empty": "<sheetData/>", "Old": row},
        hidden=("Old",),
        title="Harbours",
        styles=STYLES,
        sharedStrings=STRINGS,
    )
    extraction = _extract(body)
    assert extraction.markdown == EXPECTED
    assert extraction.title == "Harbours"
    assert extraction.hrefs == ["https://example.org/l"]
    assert [(node.heading, node.anchor) for node in extraction.tree.children] == [("Ports", "ports")]


def test_a_long_sheet_is_cut_with_a_note() -> None:
    rows = "".join(f'<row r="{n}"><c r="A{n}"><v>{n}</v></c></row>' for n in range(1, 2_001))
    extraction = _extract(xlsx({"Long": f'<dimension ref="A1:A2000"/><sheetData>{rows}</sheetData>'}))
    assert f"\n| {MAX_ROWS} |\n" in extraction.markdown
    assert f"| {MAX_ROWS + 1} |" not in extraction.markdown
    assert extraction.markdown.endswith("*Only the first 1,000 of 2,000 rows are kept.*")


def test_cells_with_invalid_references_are_blank() -> None:
    cells = (
        '<row><c t="s"><v>99999999</v></c><c t="s"><v>x</v></c><c s="77"><v>nan</v></c><c r="ZZZ1"><v>1</v></c></row>'
    )
    extraction = extract(xlsx({"S": f"<sheetData>{cells}</sheetData>"}, sharedStrings=STRINGS), None)
    assert isinstance(extraction, Extraction)
    assert extraction.markdown == "## S\n\n|  |  | nan |\n| --- | --- | --- |"
    assert extract(xlsx({}), None) == Unreadable(reason="an empty workbook")


@pytest.mark.parametrize(
    ("code", "stored", "shown"),
    [
        ("", "3", "3"),
        ("General", "0.1", "0.1"),
        ("General", "0.30000000000000004", "0.3"),
        ("General", "123456789012", "123456789012"),
        ("0.00", "2.5", "2.50"),
        ("#,##0", "1234567.8", "1,234,568"),
        ("0.0%", "0.256", "25.6%"),
        ('"$"#,##0.00', "-5", "-$5.00"),
        ('0 "kWh"', "7", "7 kWh"),
        ("#,##0;[Red]-#,##0", "-1000", "-1,000"),
        ("0.00E+00", "12345", "12345"),
        ("# ?/?", "0.5", "0.5"),
        ("yyyy-mm-dd", "45000", "2023-03-15"),
        ("d/m/yy h:mm", "45000.5", "2023-03-15 12:00"),
        ("dd.mm.yyyy", "1", "1900-01-01"),
        ("dd.mm.yyyy", "61", "1900-03-01"),
        ("h:mm:ss AM/PM", "0.75", "18:00:00"),
        ("[h]:mm", "1.5", "36:00"),
        ("mmm yyyy", "1e300", "1e300"),
        ("yyyy", "-4", "-4"),
        ("0.00", "1e300", "1e300"),
        ("0.00", "words", "words"),
        ("@", "7", "7"),
    ],
)
def test_numbers_are_formatted(code: str, stored: str, shown: str) -> None:
    assert parse_number_format(code)(stored) == shown


def test_dates_may_count_from_1904() -> None:
    assert parse_number_format("yyyy-mm-dd", since_1904=True)("0") == "1904-01-01"
