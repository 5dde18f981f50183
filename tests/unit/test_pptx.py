"""Presentations."""

from kept.extract.office.pptx import extract
from kept.extract.sections import Extraction
from tests.office_files import pptx, shape

LINK = '<a:p><a:r><a:rPr b="1"><a:hlinkClick r:id="l"/></a:rPr><a:t>tables</a:t></a:r></a:p>'
DEEPER = '<a:p><a:pPr lvl="1"/><a:r><a:t>deeper</a:t></a:r></a:p>'
PLAIN = "<a:p><a:pPr><a:buNone/></a:pPr><a:r><a:t>no item</a:t></a:r></a:p>"
NUMBERED = '<a:p><a:pPr><a:buAutoNum type="arabicPeriod"/></a:pPr><a:r><a:t>{}</a:t></a:r></a:p>'
CODE = '<a:p><a:r><a:rPr><a:latin typeface="Consolas"/></a:rPr><a:t>{}</a:t></a:r></a:p>'
PICTURE = '<p:pic><p:nvPicPr><p:cNvPr id="3" name="x" descr="A harbour"/></p:nvPicPr></p:pic>'


def cell(text: str) -> str:
    return f"<a:tc><a:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></a:txBody></a:tc>"


TABLE = (
    '<p:graphicFrame><a:graphic><a:graphicData><a:tbl><a:tblPr firstRow="1"/>'
    f"<a:tr>{cell('Port')}{cell('m')}</a:tr><a:tr>{cell('Kiel')}{cell('0.1')}</a:tr>"
    "</a:tbl></a:graphicData></a:graphic></p:graphicFrame>"
)

EXPECTED = """## Tides

For sailors

**Notes**

Say hello.

## Ports

- first
  - deeper
- [**tables**](https://example.org/l)

no item

1. one
2. two

```python
def tide():
    pass
```

| Port | m |
| --- | --- |
| Kiel | 0.1 |

![A harbour]()

## Slide 4

alone"""


def test_slides_become_sections_with_their_notes() -> None:
    body = pptx(
        shape("For sailors", placeholder="subTitle") + shape("Tides", placeholder="ctrTitle"),
        shape("Ports", placeholder="title")
        + shape("first", DEEPER, LINK, PLAIN, placeholder="")
        + f"<p:grpSp>{shape(NUMBERED.format('one'), NUMBERED.format('two'))}</p:grpSp>"
        + shape(CODE.format("def tide():"), CODE.format("    pass"))
        + TABLE
        + PICTURE
        + shape("2", placeholder="sldNum"),
        shape("Hidden", placeholder="title"),
        shape("alone"),
        notes={1: shape("Say hello.", placeholder="body") + shape("1", placeholder="sldNum")},
        hidden=(3,),
        title="The deck",
    )
    extraction = extract(body, None)
    assert isinstance(extraction, Extraction), extraction
    assert extraction.markdown == EXPECTED
    assert extraction.title == "The deck"
    assert extraction.hrefs == ["https://example.org/l"]
    assert [(node.heading, node.anchor) for node in extraction.tree.children] == [
        ("Tides", "tides"), ("Ports", "ports"), ("Slide 4", "slide-4"),
    ]  # fmt: skip


def test_a_presentation_without_a_title_takes_that_of_its_first_slide() -> None:
    extraction = extract(pptx(shape("Tides", placeholder="title")), None)
    assert isinstance(extraction, Extraction)
    assert extraction.title == "Tides"
