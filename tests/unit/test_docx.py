"""Word documents."""

import io
import re
import zipfile

import pytest

from kept.extract.office.docx import extract
from kept.extract.sections import Extraction, Unreadable
from tests.office_files import docx, xml, zipped

STYLES = xml(
    "w:styles",
    """
<w:style w:type="paragraph" w:default="1" w:styleId="Standard"><w:name w:val="Normal"/></w:style>
<w:style w:type="paragraph" w:styleId="Titel"><w:name w:val="Title"/></w:style>
<w:style w:type="paragraph" w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style>
<w:style w:type="paragraph" w:styleId="berschrift2"><w:name w:val="heading 2"/>
  <w:basedOn w:val="berschrift1"/></w:style>
<w:style w:type="paragraph" w:styleId="Kapitel"><w:name w:val="Kapitel"/><w:basedOn w:val="berschrift2"/></w:style>
<w:style w:type="paragraph" w:styleId="Verzeichnis1"><w:name w:val="toc 1"/></w:style>
<w:style w:type="paragraph" w:styleId="Zitat"><w:name w:val="Quote"/></w:style>
<w:style w:type="paragraph" w:styleId="Liste"><w:name w:val="List Bullet"/>
  <w:pPr><w:numPr><w:numId w:val="2"/></w:numPr></w:pPr></w:style>
<w:style w:type="paragraph" w:styleId="Quelltext"><w:name w:val="Quelltext"/>
  <w:rPr><w:rFonts w:ascii="Consolas"/></w:rPr></w:style>
<w:style w:type="character" w:styleId="Stark"><w:name w:val="Strong"/><w:rPr><w:b/></w:rPr></w:style>
<w:style w:type="paragraph" w:styleId="A"><w:name w:val="A"/><w:basedOn w:val="B"/></w:style>
<w:style w:type="paragraph" w:styleId="B"><w:name w:val="B"/><w:basedOn w:val="A"/></w:style>
""",
)
NUMBERING = xml(
    "w:numbering",
    """
<w:abstractNum w:abstractNumId="0">
  <w:lvl w:ilvl="0"><w:start w:val="3"/><w:numFmt w:val="decimal"/></w:lvl>
  <w:lvl w:ilvl="1"><w:numFmt w:val="bullet"/></w:lvl>
</w:abstractNum>
<w:abstractNum w:abstractNumId="1"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/></w:lvl></w:abstractNum>
<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>
<w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num>
<w:num w:numId="3"><w:abstractNumId w:val="0"/>
  <w:lvlOverride w:ilvl="0"><w:startOverride w:val="1"/></w:lvlOverride></w:num>
""",
)
FOOTNOTES = xml("w:footnotes", '<w:footnote w:id="5"><w:p><w:r><w:t>Ibid.</w:t></w:r></w:p></w:footnote>')


def p(*runs: str, style: str = "", about: str = "") -> str:
    named = f'<w:pStyle w:val="{style}"/>' if style else ""
    words = "".join(run if run.startswith("<") else r(run) for run in runs)
    return f"<w:p><w:pPr>{named}{about}</w:pPr>{words}</w:p>"


def r(text: str, about: str = "") -> str:
    return f'<w:r><w:rPr>{about}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def item(text: str, number: int, depth: int = 0) -> str:
    return p(text, about=f'<w:numPr><w:ilvl w:val="{depth}"/><w:numId w:val="{number}"/></w:numPr>')


def cell(*blocks: str, about: str = "") -> str:
    return f"<w:tc><w:tcPr>{about}</w:tcPr>{''.join(blocks)}</w:tc>"


def row(*cells: str) -> str:
    return f"<w:tr>{''.join(cells)}</w:tr>"


MONO = '<w:rFonts w:ascii="Courier New"/>'
PICTURE = '<w:r><w:drawing><wp:inline><wp:docPr id="1" name="p" descr="A tide table"/></wp:inline></w:drawing></w:r>'
NOTE = '<w:r><w:footnoteReference w:id="5"/></w:r>'
BOX = "<w:txbxContent>{}</w:txbxContent>"

BODY = "".join([
    p("Tides", style="Titel"),
    p("Ports ..... 3", style="Verzeichnis1"),
    p("Ports & water".replace("&", "&amp;"), style="berschrift1"),
    p("Water is ", r("hi", "<w:b/>"), r("gh ", "<w:b/>"), r("here", "<w:rStyle w:val='Stark'/>"),
      " and snake_case, see ",
      '<w:hyperlink r:id="l1"><w:r><w:t>the *table*</w:t></w:r></w:hyperlink>', r(".", "<w:b w:val='0'/>"), NOTE),
    p("call ", r("tide_at()", MONO), r(" secretly", "<w:vanish/>"), r(" now", "<w:i/>"),
      "<w:del><w:r><w:delText>gone</w:delText></w:r></w:del>", "<w:ins><w:r><w:t> (new)</w:t></w:r></w:ins>"),
    item("third", 1), item("deeper", 1, 1), item("fourth", 1), item("anew", 3),
    p("by style", style="Liste"),
    p("Words between.", style="Zitat"),
    p("if x:", style="Quelltext"), p("    run()", style="Quelltext"),
    p("By chapter", style="Kapitel"),
    p("By outline", about='<w:outlineLvl w:val="2"/>'),
    "<w:tbl>",
    row(cell(p("Port")), cell(p("Height | m"), about='<w:gridSpan w:val="2"/>')),
    row(cell(p("Kiel"), p("Baltic")), cell(p(r("0.1", MONO))), cell(p("low"))),
    "</w:tbl>",
    "<w:tbl>", row(cell(p("in a box"))), "</w:tbl>",
    p(PICTURE),
    p("<mc:AlternateContent><mc:Choice><w:r><w:drawing>" + BOX.format(p("framed")) + "</w:drawing></w:r></mc:Choice>"
      "<mc:Fallback><w:r>" + BOX.format(p("framed again")) + "</w:r></mc:Fallback></mc:AlternateContent>"),
    "<w:sdt><w:sdtContent>" + p("in a form") + "</w:sdtContent></w:sdt>",
    p("# no heading", style="A"),
])  # fmt: skip

EXPECTED = r"""# Tides

# Ports & water

Water is **high here** and snake_case, see [the \*table\*](https://example.org/table).[^1]

call `tide_at()` *now* (new)

3. third
   - deeper
4. fourth
1. anew
- by style

> Words between.

```python
if x:
    run()
```

[^1]: Ibid.

## By chapter

### By outline

| Port | Height \| m |  |
| --- | --- | --- |
| Kiel<br>Baltic | `0.1` | low |

in a box

![A tide table]()

framed

in a form

\# no heading"""


LINKED = p('<w:hyperlink r:id="x"><w:r><w:t>here</w:t></w:r></w:hyperlink>')


def strict(body: bytes) -> bytes:
    """Return the same document with the namespaces of the strict variant."""
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    return zipped({
        name: re.sub(rb"http://schemas\.openxmlformats\.org/(wordprocessingml|officeDocument)/2006/",
                     rb"http://purl.oclc.org/ooxml/\1/", part)
        for name, part in parts.items()
    })  # fmt: skip


def _extract(body: bytes) -> Extraction:
    extraction = extract(body, None)
    assert isinstance(extraction, Extraction), extraction
    return extraction


def test_a_document_becomes_markdown() -> None:
    body = docx(
        BODY,
        ("l1", "hyperlink", "https://example.org/table"),
        styles=STYLES,
        numbering=NUMBERING,
        footnotes=FOOTNOTES,
        title="left over",
    )
    extraction = _extract(body)
    assert extraction.markdown == EXPECTED
    assert extraction.title == "Tides"
    assert extraction.hrefs == ["https://example.org/table"]
    ports = extraction.tree.children[1]
    assert (ports.heading, ports.anchor) == ("Ports & water", "ports--water")
    assert [child.heading for child in ports.children] == ["By chapter"]


def test_a_document_without_headings_has_the_title_of_its_properties() -> None:
    assert _extract(docx(p("words"), title="  Tide\n tables ")).title == "Tide tables"


def test_the_strict_variant_of_the_format_is_read_too() -> None:
    body = docx(p("Deep", style="berschrift1") + LINKED, ("x", "hyperlink", "https://example.org/"), styles=STYLES)
    assert _extract(strict(body)).markdown == _extract(body).markdown == "# Deep\n\n[here](https://example.org/)"


def test_hyperlink_fields_are_links() -> None:
    def char(kind: str) -> str:
        return f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>'

    instruction = '<w:r><w:instrText> HYPERLINK "https://example.org/long" </w:instrText></w:r>'
    long = p("a ", char("begin"), instruction, char("separate"), "long", char("end"), " way")
    short = p(
        "<w:fldSimple w:instr=' HYPERLINK &quot;https://example.org/short&quot; '>" + r("short") + "</w:fldSimple>"
    )
    page = p(char("begin"), "<w:r><w:instrText>PAGE</w:instrText></w:r>", char("separate"), "7", char("end"))
    extraction = _extract(docx(long + short + page))
    assert extraction.markdown == "a [long](https://example.org/long) way\n\n[short](https://example.org/short)\n\n7"


def test_a_document_set_in_courier_is_not_code_and_a_list_of_commands_is_a_list() -> None:
    styles = xml(
        "w:styles",
        '<w:style w:type="paragraph" w:default="1" w:styleId="N"><w:name w:val="Normal"/>'
        '<w:rPr><w:rFonts w:ascii="Courier"/></w:rPr></w:style>',
    )
    assert _extract(docx(p("Dear reader,"), styles=styles)).markdown == "Dear reader,"
    items = p(r("ls", MONO), about='<w:numPr><w:numId w:val="2"/></w:numPr>') * 2
    assert _extract(docx(items, numbering=NUMBERING)).markdown == "- `ls`\n- `ls`"


@pytest.mark.parametrize("target", ["javascript:alert(1)", "file:///etc/passwd"])
def test_only_links_to_the_web_are_kept(target: str) -> None:
    extraction = _extract(docx(LINKED, ("x", "hyperlink", target)))
    assert (extraction.markdown, extraction.hrefs) == ("here", [])


def test_a_zip_without_a_document_is_unreadable() -> None:
    assert extract(zipped({"a.txt": "a"}), None) == Unreadable(reason="a Word document with no document in it")
