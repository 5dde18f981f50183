"""Write a document tree as HTML of the kind that Sphinx makes, for the HTML reader.

Only text, structure, languages, ids and links are written: no styles, no attributes of the page's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape
from typing import Any, Final

from docutils import nodes
from selectolax.lexbor import LexborHTMLParser

from kept.extract.html.generator_rules import RAW_TEXT_TAGS
from kept.extract.rst.links import LinkTargets
from kept.extract.rst.nodes import ModuleTarget

_SIMPLE_TAGS: Final[dict[str, str]] = {
    "strong": "strong", "emphasis": "em", "title_reference": "cite", "subscript": "sub",
    "superscript": "sup", "bullet_list": "ul", "list_item": "li", "block_quote": "blockquote", "description": "dd",
    "definition": "dd", "definition_list": "dl", "Description": "dd", "field_list": "dl", "field_name": "dt",
    "field_body": "dd", "option_list": "dl", "inline": "span", "legend": "div",
    "attribution": "p",
}  # fmt: skip
_SILENT: Final = frozenset({
    "comment", "substitution_definition", "pending", "meta", "decoration", "docinfo", "colspec", "Invisible",
})  # fmt: skip
_DROPPED_FIELDS: Final = frozenset({"orphan", "tocdepth", "nocomments", "nosearch", "hide-toc", "hide-navigation"})
_BREAKS: Final = re.compile(r"\s+")
_DASHES: Final = re.compile(r"(?<!-)---(?!-)|(?<= )--(?= )")


def _dashes(text: str) -> str:
    """Return a text with dashes for hyphens, as Sphinx shows them. Quotation marks stay as they are typed."""
    text = text.replace("\0", "")
    return _DASHES.sub(lambda match: "—" if len(match[0]) == 3 else "–", text) if "--" in text else text


class HtmlWriter:
    """Writes one document. The links between pages come from ``links``."""

    def __init__(self, document: nodes.document, links: LinkTargets, language: str = "") -> None:
        self._document = document
        self._links = links
        self._level = 0
        self._language = language  # of code blocks that name none
        self._out: list[str] = []
        self.title = ""
        self.hrefs: list[str] = []

    def write(self) -> str:
        """Return the page as HTML."""
        self._children(self._document)
        return "".join(self._out)

    # Walking

    def _write(self, node: nodes.Node) -> None:
        if isinstance(node, nodes.Text):
            self._out.append(escape(_dashes(node)))
            return
        name = type(node).__name__
        if name in _SILENT:
            return
        handler: Callable[[Any], None] | None = getattr(self, f"_{name}", None)
        if handler is not None:
            handler(node)
        elif tag := _SIMPLE_TAGS.get(name):
            self._element(tag, node)
        else:
            self._children(node)

    def _children(self, node: Any) -> None:
        for child in node.children:
            self._write(child)

    def _element(self, tag: str, node: Any, attributes: str = "") -> None:
        ids = node.get("ids", ())
        own = f' id="{escape(ids[0])}"' if ids else ""
        self._out.append(f"<{tag}{own}{attributes}>")
        self._anchors(ids[1:])
        self._children(node)
        self._out.append(f"</{tag}>")

    def _anchors(self, ids: Any) -> None:
        self._out += [f'<span id="{escape(id_)}"></span>' for id_ in ids]

    # Structure

    def _section(self, node: nodes.section) -> None:
        self._level += 1
        ids = list(node["ids"])
        if len(node) > 1 and isinstance(node[1], ModuleTarget):
            ids = [*node[1]["ids"], *ids]
            node[1]["ids"] = []
        title = node.next_node(nodes.title)
        if title is not None and title.parent is node and ids:
            title["kept_id"] = ids[0]
            ids = ids[1:]
        self._out.append("<section>")
        self._anchors(ids)
        self._children(node)
        self._out.append("</section>")
        self._level -= 1

    def _title(self, node: nodes.title) -> None:
        if isinstance(node.parent, nodes.section):
            id_ = node.get("kept_id", "")
            tag = f"h{min(self._level, 6)}"
            self._out.append(f'<{tag} id="{escape(id_)}">')
            self._children(node)
            self._out.append(f'<a class="headerlink" href="#{escape(id_)}">¶</a></{tag}>' if id_ else f"</{tag}>")
            self.title = self.title or " ".join(_dashes(node.astext()).split())
        elif isinstance(node.parent, nodes.table):
            self._element("caption", node)
        else:
            self._element("p", node, ' class="admonition-title"')

    def _subtitle(self, node: nodes.Node) -> None:
        self._element("p", node)

    def _paragraph(self, node: nodes.Node) -> None:
        self._element("p", node)

    def _topic(self, node: nodes.Element) -> None:
        if "contents" not in node["classes"]:
            self._element("div", node, ' class="admonition"')

    def _sidebar(self, node: nodes.Node) -> None:
        self._element("div", node, ' class="admonition"')

    def _admonition(self, node: nodes.Node) -> None:
        self._element("div", node, ' class="admonition"')

    def _rubric(self, node: nodes.Node) -> None:
        self._element("p", node, ' class="title"')

    def _VersionNote(self, node: nodes.Element) -> None:
        first = node[0] if node.children and isinstance(node[0], nodes.paragraph) else None
        self._out.append(f"<div><p><span>{escape(node['label'])}{':' if node.children else '.'} </span>")
        if first is not None:
            self._children(first)
        self._out.append("</p>")
        for child in node.children[1 if first is not None else 0 :]:
            self._write(child)
        self._out.append("</div>")

    def _Panel(self, node: nodes.Element) -> None:
        if node["label"]:
            self._out.append(f'<p class="title">{escape(node["label"])}</p>')
        self._children(node)

    def _PageList(self, node: nodes.Element) -> None:
        items = [(title, self._links.page(target, title)) for title, target in node["entries"]]
        self.hrefs += [link.href for _, link in items if link.href]
        if node["hidden"]:
            return
        targets = [target for _, target in node["entries"]]
        shown = [(link, link.title or target) for (_, link), target in zip(items, targets, strict=True) if link.href]
        if node["caption"]:
            self._out.append(f'<p class="title">{escape(node["caption"])}</p>')
        if shown:
            entries = [f'<li><a href="{escape(link.href)}">{escape(title)}</a></li>' for link, title in shown]
            self._out.append(f"<ul>{''.join(entries)}</ul>")

    # Lists

    def _enumerated_list(self, node: nodes.Element) -> None:
        self._element("ol", node, f' start="{int(node["start"])}"' if str(node.get("start", "")).isdecimal() else "")

    def _definition_list_item(self, node: nodes.Node) -> None:
        self._children(node)

    def _term(self, node: nodes.Element) -> None:
        self._element("dt", node)

    def _classifier(self, node: nodes.Node) -> None:
        self._out.append(" : ")
        self._element("em", node)

    def _field(self, node: nodes.Element) -> None:
        if node[0].astext().lower() not in _DROPPED_FIELDS or node.parent.parent is not self._document:
            self._children(node)

    def _option_group(self, node: nodes.Element) -> None:
        self._out.append("<dt><code>" + ", ".join(escape(option.astext()) for option in node.children) + "</code></dt>")

    def _option_list_item(self, node: nodes.Node) -> None:
        self._children(node)

    def _line_block(self, node: nodes.Element) -> None:
        self._out.append("<p>")
        for line in node.findall(nodes.line):
            self._children(line)
            self._out.append("<br>")
        self._out.append("</p>")

    # Documented objects

    def _ObjectDescription(self, node: nodes.Element) -> None:
        self._element("dl", node, f' class="{node["domain"]} {node["objtype"].replace(":", "-")}"')

    def _Signature(self, node: nodes.Element) -> None:
        self._element("dt", node, ' class="sig sig-object"')

    # Code, formulas, raw markup

    def _literal(self, node: nodes.Element) -> None:
        self._out.append(f"<code>{escape(node.astext())}</code>")

    def _literal_block(self, node: nodes.Element) -> None:
        language = node.get("language")
        if language is None:
            code_of = [name for name in node["classes"] if name != "code"]
            language = (code_of[0] if "code" in node["classes"] and code_of else "") or self._language
        text = node.astext()
        language = language or ("python" if text.startswith(">>> ") else "default")
        self._anchors(node["ids"])
        self._out.append(f'<div class="highlight-{escape(language)}"><pre>{escape(text)}')
        self._out.append("</pre></div>")

    def _HighlightChange(self, node: nodes.Element) -> None:
        self._language = node["language"]

    def _doctest_block(self, node: nodes.Element) -> None:
        self._out.append(f'<div class="highlight-python"><pre>{escape(node.astext())}</pre></div>')

    def _math(self, node: nodes.Node) -> None:
        self._out.append(f'<span class="math">\\({escape(node.astext())}\\)</span>')

    def _math_block(self, node: nodes.Element) -> None:
        self._anchors(node["ids"])
        self._out.append(f'<div class="math">\\[{escape(node.astext())}\\]</div>')

    def _raw(self, node: nodes.Element) -> None:
        if node.get("format") != "html":
            return
        fragment = LexborHTMLParser(node.astext())
        fragment.strip_tags([*RAW_TEXT_TAGS, "form", "base", "meta", "link"])
        self._out.append(f"<div>{fragment.body.inner_html if fragment.body else ''}</div>")

    def _image(self, node: nodes.Element) -> None:
        uri, alt = node.get("uri", ""), node.get("alt", "")
        self._out.append(f'<img alt="{escape(alt)}" src="{escape(uri)}">')

    def _caption(self, node: nodes.Node) -> None:
        self._element("p", node, ' class="caption"')

    # Tables

    def _row(self, node: nodes.Element) -> None:
        self._out.append("<tr>")
        tag = "th" if isinstance(node.parent, nodes.thead) else "td"
        cells: list[Any] = list(node.children)
        for cell in cells:
            spans = f' colspan="{cell["morecols"] + 1}"' if cell.get("morecols") else ""
            spans += f' rowspan="{cell["morerows"] + 1}"' if cell.get("morerows") else ""
            self._element(tag, cell, spans)
        self._out.append("</tr>")

    def _table(self, node: nodes.Element) -> None:
        self._element("table", node)

    # References

    def _reference(self, node: nodes.Element) -> None:
        href = node.get("refuri", "")
        if "refid" in node:
            href = f"#{node['refid']}"
        elif not href and node.get("refname"):
            target = self._document.nameids.get(node["refname"])
            href = f"#{target}" if target else ""
        self._link(href, lambda: self._children(node))

    def _link(self, href: str, write_text: Callable[[], None]) -> None:
        if href:
            self._out.append(f'<a href="{escape(href)}">')
        write_text()
        if href:
            self._out.append("</a>")

    def _CrossReference(self, node: nodes.Element) -> None:
        link = self._links.find(node["role"], node["target"], node["context"])
        text = escape(node.astext() if node["is_explicit"] or not link.title else link.title)
        self._anchors(node["ids"])
        self._link(link.href, lambda: self._out.append(f"<code>{text}</code>" if node["is_code"] else text))

    def _ModuleTarget(self, node: nodes.Element) -> None:
        self._anchors(node["ids"])

    def _target(self, node: nodes.Element) -> None:
        self._anchors(node["ids"])
        self._children(node)

    def _footnote_reference(self, node: nodes.Element) -> None:
        self._link(
            f"#{node['refid']}" if "refid" in node else "", lambda: self._out.append(f"[{escape(node.astext())}]")
        )

    _citation_reference = _footnote_reference

    def _footnote(self, node: nodes.Element) -> None:
        self._out.append("<div>")
        self._anchors(node["ids"])
        label = node.next_node(nodes.label)
        body = [child for child in node.children if not isinstance(child, nodes.label)]
        self._out.append(f"<p>[{escape(label.astext()) if label is not None else ''}] ")
        if body and isinstance(body[0], nodes.paragraph):
            self._children(body.pop(0))
        self._out.append("</p>")
        for child in body:
            self._write(child)
        self._out.append("</div>")

    _citation = _footnote

    # What docutils could not read is kept as text

    def _problematic(self, node: nodes.Node) -> None:
        self._out.append(escape(_BREAKS.sub(" ", node.astext())))

    def _system_message(self, node: nodes.Element) -> None:
        for block in node.children:
            if isinstance(block, nodes.literal_block):
                self._literal_block(block)
