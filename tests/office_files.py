"""Build office documents and e-books for tests from hand-written XML."""

import io
import zipfile

_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_NAMESPACES = (
    'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
    'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" '
    'xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
    'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math" '
    f'xmlns:r="{_RELATIONS}"'
)
_EXTERNAL = ' TargetMode="External"'
_NAVIGATION = ' properties="nav"'
_SHEET = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'


def zipped(parts: dict[str, str | bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return file.getvalue()


def xml(tag: str, content: str, attributes: str = "") -> str:
    spaces = _NAMESPACES if ":" in tag else f'{_SHEET} xmlns:r="{_RELATIONS}"'
    return f'<?xml version="1.0" encoding="UTF-8"?><{tag} {spaces} {attributes}>{content}</{tag}>'


def relations(*several: tuple[str, str, str]) -> str:
    """Return relationships, each with an id, a kind and a target; targets that are URLs are external."""
    rows = "".join(
        f'<Relationship Id="{name}" Type="{_RELATIONS}/{kind}" Target="{target}"{_EXTERNAL if ":" in target else ""}/>'
        for name, kind, target in several
    )
    return f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{rows}</Relationships>'


def package(main: str, parts: dict[str, str | bytes], *, title: str = "") -> bytes:
    """Return a container whose main part has this name, with a title in its properties."""
    core = f'<c xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{title}</dc:title></c>'
    about = relations(("m", "officeDocument", main), ("c", "metadata/core-properties", "docProps/core.xml"))
    return zipped({"_rels/.rels": about, "docProps/core.xml": core, **parts})


def docx(body: str, *links: tuple[str, str, str], title: str = "", **parts: str) -> bytes:
    """Return a Word document; `parts` are styles, numbering, footnotes."""
    files: dict[str, str | bytes] = {f"word/{name}.xml": content for name, content in parts.items()}
    files["word/document.xml"] = xml("w:document", f"<w:body>{body}</w:body>")
    files["word/_rels/document.xml.rels"] = relations(*links, *((name, name, f"{name}.xml") for name in parts))
    return package("word/document.xml", files, title=title)


def pptx(*slides: str, title: str = "", notes: dict[int, str] | None = None, hidden: tuple[int, ...] = ()) -> bytes:
    """Return a presentation of these slides, each given by its shapes."""
    files: dict[str, str | bytes] = {}
    numbers = range(1, len(slides) + 1)
    for number, shapes in zip(numbers, slides, strict=True):
        show = 'show="0"' if number in hidden else ""
        tree = f"<p:cSld><p:spTree>{shapes}</p:spTree></p:cSld>"
        files[f"ppt/slides/slide{number}.xml"] = xml("p:sld", tree, show)
        note = [("n", "notesSlide", f"../notesSlides/notes{number}.xml")] if number in (notes or {}) else []
        files[f"ppt/slides/_rels/slide{number}.xml.rels"] = relations(
            *note, ("l", "hyperlink", "https://example.org/l")
        )
    for number, shapes in (notes or {}).items():
        files[f"ppt/notesSlides/notes{number}.xml"] = xml("p:notes", f"<p:cSld><p:spTree>{shapes}</p:spTree></p:cSld>")
    listed = "".join(f'<p:sldId id="{255 + number}" r:id="s{number}"/>' for number in numbers)
    files["ppt/presentation.xml"] = xml("p:presentation", f"<p:sldIdLst>{listed}</p:sldIdLst>")
    files["ppt/_rels/presentation.xml.rels"] = relations(
        *((f"s{number}", "slide", f"slides/slide{number}.xml") for number in numbers)
    )
    return package("ppt/presentation.xml", files, title=title)


def shape(*paragraphs: str, placeholder: str | None = None) -> str:
    """Return a shape of a slide; `placeholder` is its type of placeholder."""
    kind = "" if placeholder is None else f'<p:ph type="{placeholder}"/>' if placeholder else "<p:ph/>"
    about = f'<p:nvSpPr><p:cNvPr id="1" name="x"/><p:cNvSpPr/><p:nvPr>{kind}</p:nvPr></p:nvSpPr>'
    words = "".join(one if one.startswith("<a:p>") else f"<a:p><a:r><a:t>{one}</a:t></a:r></a:p>" for one in paragraphs)
    return f"<p:sp>{about}<p:txBody>{words}</p:txBody></p:sp>"


def xlsx(sheets: dict[str, str], *, hidden: tuple[str, ...] = (), title: str = "", **parts: str) -> bytes:
    """Return a workbook of these sheets, by name; `parts` are styles, sharedStrings."""
    files: dict[str, str | bytes] = {f"xl/{name}.xml": content for name, content in parts.items()}
    listed, related = "", [(name, name, f"{name}.xml") for name in parts]
    for number, (name, content) in enumerate(sheets.items(), start=1):
        files[f"xl/worksheets/sheet{number}.xml"] = xml("worksheet", content)
        files[f"xl/worksheets/_rels/sheet{number}.xml.rels"] = relations(("l", "hyperlink", "https://example.org/l"))
        state = ' state="hidden"' if name in hidden else ""
        listed += f'<sheet name="{name}" sheetId="{number}"{state} r:id="s{number}"/>'
        related.append((f"s{number}", "worksheet", f"/xl/worksheets/sheet{number}.xml"))
    files["xl/workbook.xml"] = xml("workbook", f"<sheets>{listed}</sheets>")
    files["xl/_rels/workbook.xml.rels"] = relations(*related)
    return package("xl/workbook.xml", files, title=title)


def epub(chapters: dict[str, str], *, title: str = "A Book", **parts: str) -> bytes:
    """Return an e-book; a chapter is the body of a page. `parts` go into META-INF."""
    files: dict[str, str | bytes] = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="OEBPS/book.opf"/></rootfiles></container>',
        **{f"META-INF/{name}.xml": content for name, content in parts.items()},
    }
    for name, body in chapters.items():
        files[f"OEBPS/{name}"] = (
            '<?xml version="1.0" encoding="utf-8"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml">'
            f"<head><title/></head><body>{body}</body></html>"
        )
    items = "".join(
        f'<item id="{name}" href="{name}" media-type="application/xhtml+xml"'
        f"{_NAVIGATION if name == 'nav.xhtml' else ''}/>"
        for name in sorted(chapters)
    )
    order = "".join(f'<itemref idref="{name}"/>' for name in chapters)
    files["OEBPS/book.opf"] = (
        '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>'
        f"<dc:title>{title}</dc:title></metadata><manifest>{items}</manifest><spine>{order}</spine></package>"
    )
    return zipped(files)
