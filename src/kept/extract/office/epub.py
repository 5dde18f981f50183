"""E-books (.epub): their chapters in reading order, each read as the HTML page it is, as one document."""

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
# Fonts are scrambled to keep them from being copied; words that are encrypted need a key.
_SCRAMBLED_FONTS = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
# Links to other chapters, and to other parts of the book: only their anchors lead somewhere in what is kept.
_INTERNAL_LINK = re.compile(rb"""(\shref\s*=\s*)(["'])(?![A-Za-z][A-Za-z0-9+.-]*:|//)[^"'#]*(#[^"']*)?\2""")

# In XHTML any element may be empty by a slash at its end; in HTML such a <title/> would swallow the page.
_SELF_CLOSED = re.compile(rb"<([A-Za-z][\w:.-]*)((?:\s[^<>]*?)?)/>")


def extract(body: bytes, charset: str | None) -> Extraction | Unreadable:
    return read_container(body, "an e-book", _read)


def _read(package: ZipContainer) -> Extraction | Unreadable:
    place = _package_document_name(package)
    contents = package.read_xml(place)
    if contents is None:
        raise DamagedContainer("with no list of its contents")
    _refuse_encrypted(package)
    root = SectionNode()
    texts: list[str] = []
    hrefs: dict[str, None] = {}
    for name in _chapters(contents, place.rpartition("/")[0]):
        page = package.read_part(name)
        found = reader.extract(_as_html(page), None) if page else None
        if not isinstance(found, Extraction) or not found.markdown.strip():
            continue
        texts.append(found.markdown)
        before = found.tree.content
        if before.strip():
            titled = bool(found.title) and not found.tree.children
            root.children.append(SectionNode(heading=found.title if titled else "", level=1, content=before))
        root.children.extend(found.tree.children)
        hrefs |= dict.fromkeys(found.hrefs)
    if not texts:
        return Unreadable(reason="an e-book without words")
    title = " ".join((contents.findtext("metadata/title") or "").split())[:MAX_HEADING_LENGTH]
    links = [href for href in hrefs if href.startswith(("http:", "https:"))]
    return Extraction(title=title, markdown="\n\n".join(texts), tree=_with_unique_anchors(root), hrefs=links)


def _package_document_name(package: ZipContainer) -> str:
    container = package.read_xml("META-INF/container.xml")
    named = container.find("rootfiles/rootfile") if container is not None else None
    if named is None:
        raise DamagedContainer("with no list of its contents")
    return resolve_part_name("", named.get("full-path", ""))


def _refuse_encrypted(package: ZipContainer) -> None:
    listed = package.read_xml("META-INF/encryption.xml")
    for one in listed.iter("EncryptionMethod") if listed is not None else ():
        if one.get("Algorithm") not in _SCRAMBLED_FONTS:
            raise DamagedContainer("that is encrypted (DRM)")


def _chapters(contents: Element, folder: str) -> list[str]:
    """The names of the pages in reading order, without the list of chapters for programs."""
    items = {item.get("id", ""): item for item in contents.findall("manifest/item")}
    order = [items.get(one.get("idref", "")) for one in contents.findall("spine/itemref")]
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
    """The tree with each anchor on one section only: chapters may use the same, and a link can lead to one place."""
    taken: set[str] = set()

    def once(node: SectionNode) -> SectionNode:
        anchor = node.anchor if node.anchor not in taken else None
        if anchor is not None:
            taken.add(anchor)
        return replace(node, anchor=anchor, children=[once(child) for child in node.children])

    return once(tree)
