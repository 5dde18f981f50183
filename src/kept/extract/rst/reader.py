"""Read reStructuredText: docutils parses it, our tables say what Sphinx's directives and roles mean.

The HTML reader then makes Markdown and sections of it, as it would of the rendered page (decision 36).

    parser        docutils behind closed tables        roles, directives, object_directives, code_directives
    html_writer   the document tree as HTML            links   where references lead
"""

from __future__ import annotations

from dataclasses import replace
from html import escape
from typing import Final

from kept.extract.html import reader as html_reader
from kept.extract.sections import Extraction, SectionNode, Unreadable
from kept.extract.text import decode_text
from kept.model.companions import NO_COMPANIONS, Companions

MAX_LINE_LENGTH: Final = 20_000
"""Characters. A longer line is data; docutils takes time quadratic in it."""


def extract(
    body: bytes, charset: str | None, url: str = "", companions: Companions = NO_COMPANIONS
) -> Extraction | Unreadable:
    text = decode_text(body, charset)
    return text if isinstance(text, Unreadable) else extract_text(text, url, companions)


def extract_text(text: str, url: str, companions: Companions = NO_COMPANIONS) -> Extraction | Unreadable:
    """Read a page that is decoded already."""
    if max(map(len, text.split("\n"))) > MAX_LINE_LENGTH:
        return _as_plain_text(text)
    from kept.extract.rst.html_writer import HtmlWriter  # docutils is slow to import
    from kept.extract.rst.links import LinkTargets
    from kept.extract.rst.page import Page, code_language_name
    from kept.extract.rst.parser import parse

    settings = companions.settings
    page = Page(
        domain=settings.get("primary_domain", "py"),
        default_role=settings.get("default_role", "").replace("None", ""),
        shows_modules=settings.get("add_module_names") != "False",
        files=companions.files,
    )
    try:
        document = parse(text, page)
        writer = HtmlWriter(
            document,
            LinkTargets(document, url, companions),
            code_language_name(settings.get("highlight_language", "")),
        )
        html = writer.write()
    except RecursionError:
        return _as_plain_text(text)
    whole = f"<html><head><title>{escape(writer.title)}</title></head><body><main>{html}</main></body></html>"
    extraction = html_reader.extract(whole.encode("utf-8", "replace"), "utf-8")
    if isinstance(extraction, Unreadable):
        return extraction
    return replace(extraction, hrefs=[*extraction.hrefs, *writer.hrefs], is_js_shell=False)


def _as_plain_text(text: str) -> Extraction:
    return Extraction(title="", markdown=text, tree=SectionNode(content=text))
