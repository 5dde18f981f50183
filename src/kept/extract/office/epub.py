"""Read e-books (.epub): the chapters in reading order, each read as HTML, as one document."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree.ElementTree import Element

from kept.extract.html import reader
from kept.extract.html.tags import VOID_TAGS
from kept.extract.office.zip_container import DamagedContainer, ZipContainer, read_container, resolve_part_name
from kept.extract.sections import MAX_HEADING_LENGTH, Extraction, SectionNode, Unreadable

MAX_CHAPTERS = 5_000

_CHAPTER_TYPES = ("application/xhtml+xml", "text/html", "application/x-dtbook+xml")
# Obfuscated fonts do not matter; any other encryption needs a key.
_SCRAMBLED_FONTS = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
# Links inside the book: only their anchors exist in the one document.
_INTERNAL_LINK = re.compile(rb"""(\shref\s*=\s*)(["'])(?![A-Za-z][A-Za-z0-9+.-]*:|//)[^"'#]*(#[^"']*)?\2""")

# XHTML allows <title/>, in which an HTML parser would put the rest of the page.
_SELF_CLOSED = re.compile(rb"<([A-Za-z][\w:.-]*)((?:\s[^<>]*?)?)/>")


def extract(body: bytes, charset: str | None) -> Extraction | Unreadable:
    return read_container(body, "an e-book", _read)


def _read(package: ZipContainer) -> Extraction | Unreadable:
    document_name = _package_document_name(package)
    package_document = package.read_xml(document_name)
    if package_document is None:
        raise DamagedContainer("with no list of its contents")
    _refuse_encrypted(package)
    root = SectionNode()
    texts: list[str] = []
    hrefs: dict[str, None] = {}
    for name in _chapters(package_document, document_name.rpartition("/")[0]):
        page = package.read_part(name)
        chapter = reader.extract(_as_html(page), None) if page else None
        if not isinstance(chapter, Extraction) or not chapter.markdown.strip():
            continue
        texts.append(chapter.markdown)
        intro = chapter.tree.content
        if intro.strip():
            has_own_title = bool(chapter.title) and not chapter.tree.children
            root.children.append(SectionNode(heading=chapter.title if has_own_title else "", level=1, content=intro))
        root.children.extend(chapter.tree.children)
        hrefs |= dict.fromkeys(chapter.hrefs)
    if not texts:
        return Unreadable(reason="an e-book without text")
    title = " ".join((package_document.findtext("metadata/title") or "").split())[:MAX_HEADING_LENGTH]
    links = [href for href in hrefs if href.startswith(("http:", "https:"))]
    return Extraction(title=title, markdown="\n\n".join(texts), tree=_with_unique_anchors(root), hrefs=links)


def _package_document_name(package: ZipContainer) -> str:
    container = package.read_xml("META-INF/container.xml")
    rootfile = container.find("rootfiles/rootfile") if container is not None else None
    if rootfile is None:
        raise DamagedContainer("with no list of its contents")
    return resolve_part_name("", rootfile.get("full-path", ""))


def _refuse_encrypted(package: ZipContainer) -> None:
    encryption = package.read_xml("META-INF/encryption.xml")
    for method in encryption.iter("EncryptionMethod") if encryption is not None else ():
        if method.get("Algorithm") not in _SCRAMBLED_FONTS:
            raise DamagedContainer("that is encrypted (DRM)")


def _chapters(package_document: Element, folder: str) -> list[str]:
    """Return the part names of the chapters in reading order, without the navigation document."""
    items = {item.get("id", ""): item for item in package_document.findall("manifest/item")}
    order = [items.get(one.get("idref", "")) for one in package_document.findall("spine/itemref")]
    if len(order) > MAX_CHAPTERS:
        raise DamagedContainer(f"of more than {MAX_CHAPTERS:,} chapters")
    pages = [
        resolve_part_name(folder, item.get("href", ""))
        for item in order
        if item is not None
        and item.get("media-type") in _CHAPTER_TYPES
        and "nav" not in item.get("properties", "").split()
    ]
    return list(dict.fromkeys(pages))


def _as_html(page: bytes) -> bytes:
    return _INTERNAL_LINK.sub(_anchor_only, _SELF_CLOSED.sub(_expand_self_closed, page))


def _expand_self_closed(tag: re.Match[bytes]) -> bytes:
    return tag[0] if tag[1].decode("latin-1").lower() in VOID_TAGS else b"<%b%b></%b>" % (tag[1], tag[2], tag[1])


def _anchor_only(link: re.Match[bytes]) -> bytes:
    return link[1] + link[2] + link[3] + link[2] if link[3] and len(link[3]) > 1 else b""


def _with_unique_anchors(tree: SectionNode) -> SectionNode:
    """Return the tree with each anchor on its first section only: several chapters may use the same."""
    used: set[str] = set()

    def deduplicate(node: SectionNode) -> SectionNode:
        anchor = node.anchor if node.anchor not in used else None
        if anchor is not None:
            used.add(anchor)
        return replace(node, anchor=anchor, children=[deduplicate(child) for child in node.children])

    return deduplicate(tree)
