"""Picks a reader for a page, by what its origin says it is and, where that says little, by its name.

    read               bytes -> a Reading, or why there is none
    content_type_of    the type of a file, by its name; None for what is no documentation
    signature          what the readers are today: when it changes, pages are read again

A reader is a module with `extract(body, charset) -> Extracted | Unreadable`, loaded when the first page of its kind
comes. The one for HTML is told which region of the page to read, too.
"""

from __future__ import annotations

import hashlib
import os
import sys
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import NamedTuple, Protocol, cast
from urllib.parse import unquote

from kept.extract.sections import DEFAULT_SECTION_RULES, Extraction, SectionRules, Unreadable, build_content
from kept.model.document import RENDERED_CONTENT_TYPE, SECTIONS_PER_CONTENT, ParsedPage
from kept.model.source import DEFAULT_REGION, Region
from kept.model.url import resolve_link, resolve_links

__all__ = ["SectionRules", "Unreadable", "guess_content_type", "parse_page", "pipeline_signature"]

MAX_LOADING_TEXT_LENGTH = 40
"""Characters of Markdown: when its scripts have run, a page with more than these is one ("Loading …" is none)."""


class ExtractFunction(Protocol):
    def __call__(self, body: bytes, charset: str | None, **told: Region) -> Extraction | Unreadable: ...


class ReaderSpec(NamedTuple):
    module: str
    version: int  # raised when it would make something else of the same bytes
    library: str = ""  # whose releases may, too
    delegates_to: str = ""  # the kind whose reader it hands parts on to


_OPEN_XML = "application/vnd.openxmlformats-officedocument"

_READERS = {
    "application/json": ReaderSpec("json_data", 2),
    "application/epub+zip": ReaderSpec("office.epub", 1, delegates_to="text/html"),
    "application/pdf": ReaderSpec("pdf", 1, "pypdfium2"),
    f"{_OPEN_XML}.presentationml.presentation": ReaderSpec("office.pptx", 1, delegates_to="text/markdown"),
    f"{_OPEN_XML}.spreadsheetml.sheet": ReaderSpec("office.xlsx", 1),
    f"{_OPEN_XML}.wordprocessingml.document": ReaderSpec("office.docx", 1, delegates_to="text/markdown"),
    "application/x-ipynb+json": ReaderSpec("notebook", 1, delegates_to="text/markdown"),
    "application/yaml": ReaderSpec("yaml_data", 1, "PyYAML"),
    "text/html": ReaderSpec("html.reader", 5, "selectolax"),
    "text/markdown": ReaderSpec("markdown.reader", 3, "markdown-it-py"),
    "text/plain": ReaderSpec("text", 2),
}

_TYPE_ALIASES = {
    "application/vnd.oai.openapi+json": "application/json",
    "application/openapi+json": "application/json",
    "application/vnd.aai.asyncapi+json": "application/json",
    **dict.fromkeys(("text/yaml", "text/x-yaml", "text/vnd.yaml", "application/x-yaml"), "application/yaml"),
    **dict.fromkeys(("application/vnd.oai.openapi", "application/vnd.oai.openapi+yaml"), "application/yaml"),
    **dict.fromkeys(("application/openapi+yaml", "application/vnd.aai.asyncapi+yaml"), "application/yaml"),
    "application/vnd.ms-powerpoint.presentation.macroenabled.12": f"{_OPEN_XML}.presentationml.presentation",
    "application/vnd.ms-excel.sheet.macroenabled.12": f"{_OPEN_XML}.spreadsheetml.sheet",
    "application/vnd.ms-word.document.macroenabled.12": f"{_OPEN_XML}.wordprocessingml.document",
    "application/x-pdf": "application/pdf",
    "application/xhtml+xml": "text/html",
    "text/x-markdown": "text/markdown",
    "text/mdx": "text/markdown",
    "text/x-rst": "text/plain",
    "text/prs.fallenstein.rst": "text/plain",
    "text/asciidoc": "text/plain",
    "text/x-asciidoc": "text/plain",
    "text/x-org": "text/plain",
}

# Servers say these when they do not know, or know no better. The name of the page then does.
_UNINFORMATIVE_TYPES = frozenset({
    "", "text/plain", "application/json", "application/octet-stream", "binary/octet-stream", "unknown/unknown",
})  # fmt: skip

_TYPES_BY_EXTENSION = {
    "ipynb": "application/x-ipynb+json",
    "pdf": "application/pdf",
    "epub": "application/epub+zip",
    **dict.fromkeys(("docx", "docm"), f"{_OPEN_XML}.wordprocessingml.document"),
    **dict.fromkeys(("pptx", "pptm"), f"{_OPEN_XML}.presentationml.presentation"),
    **dict.fromkeys(("xlsx", "xlsm"), f"{_OPEN_XML}.spreadsheetml.sheet"),
    **dict.fromkeys(("html", "htm", "xhtml"), "text/html"),
    **dict.fromkeys(("md", "markdown", "mdown", "mkd", "mkdn", "mdx", "qmd", "rmd"), "text/markdown"),
    **dict.fromkeys(("txt", "text", "rst", "rest", "adoc", "asciidoc", "org", "textile", "pod"), "text/plain"),
}
_TYPES_BY_NAME = {
    # Of all the JSON and YAML that lies about, only this is documentation.
    **dict.fromkeys(("openapi.json", "swagger.json", "asyncapi.json"), "application/json"),
    **dict.fromkeys(("openapi.yaml", "openapi.yml", "swagger.yaml", "swagger.yml"), "application/yaml"),
    **dict.fromkeys(("asyncapi.yaml", "asyncapi.yml"), "application/yaml"),
    **dict.fromkeys(("llms.txt", "llms-full.txt"), "text/markdown"),
    **dict.fromkeys(
        ("readme", "changelog", "changes", "news", "history", "contributing", "install", "upgrading", "faq", "manual"),
        "text/plain",
    ),
}


def parse_page(
    body: bytes,
    *,
    content_type: str,
    url: str,
    rules: SectionRules = DEFAULT_SECTION_RULES,
    region: Region = DEFAULT_REGION,
) -> ParsedPage | Unreadable:
    """What the page says and where it leads, or why it cannot be read. `content_type` is as the origin gave it."""
    declared, charset = _parse_content_type(content_type)
    kind = _effective_type(declared, url)
    if kind not in _READERS:
        return Unreadable(reason=f"there is no reader for {declared or 'a page of unknown type'}")
    found = load_extractor(kind)(body, charset, **({"region": region} if kind == "text/html" else {}))
    if isinstance(found, Unreadable):
        return found
    content = build_content(found.title, found.markdown, found.tree, rules)
    if len(content.sections) > SECTIONS_PER_CONTENT:
        return Unreadable(reason=f"it would take more than {SECTIONS_PER_CONTENT:,} sections")
    base = resolve_link(found.base_href, url) or url if found.base_href else url
    rendered = content_type == RENDERED_CONTENT_TYPE
    hrefs = found.hrefs if rendered else [href for href in found.hrefs if href[0] != "#"]
    copies = set(resolve_links(found.alternate_hrefs, base)) - {url} if found.alternate_hrefs else set()
    canonical = _resolve_other_page(found.canonical, base, url)
    canonical = canonical or _conventional_canonical(kind, url)
    links = resolve_links(hrefs, base, keep_routes=rendered)
    return ParsedPage(
        content=content,
        links=tuple([link for link in links if link not in copies] if copies else links),
        canonical=None if rendered else canonical,  # the routes of a page all name the page itself
        moved_to=_resolve_other_page(found.moved_to, base, url),
        robots_directives=found.robots_directives,
        is_js_shell=_is_still_js_shell(found, rendered),
    )


def _conventional_canonical(kind: str, url: str) -> str | None:
    """Where sites have the same page by custom. Nobody goes there for that; but where both are kept, one is enough."""
    if not url.startswith("http"):
        return None
    if kind == "text/markdown" and url.endswith(".md"):
        return url.removesuffix(".md")
    folder, _, name = url.rpartition("/")
    return f"{folder}/" if name in ("index.html", "index.htm") else None


def _is_still_js_shell(found: Extraction, rendered: bool) -> bool:
    """Before its scripts have run, a page is one by its looks; after that, if they brought hardly a word."""
    if not rendered:
        return found.is_js_shell
    return not found.markdown or (found.is_js_shell and len(found.markdown) <= MAX_LOADING_TEXT_LENGTH)


def _resolve_other_page(href: str | None, base: str, url: str) -> str | None:
    """Where this leads, if that is another page."""
    target = resolve_link(href, base) if href else None
    return None if target == url else target


def guess_content_type(name: str) -> str | None:
    """The type that Kept reads a file of this name as; None if it is not documentation that it can read."""
    name = name.rpartition("/")[2].lower()
    stem, dot, ending = name.rpartition(".")
    return _TYPES_BY_NAME.get(name) or (_TYPES_BY_EXTENSION.get(ending) if dot and stem else None)


def pipeline_signature(rules: SectionRules = DEFAULT_SECTION_RULES, region: Region = DEFAULT_REGION) -> str:
    """A short name for everything that decides what content is made of given bytes, except the bytes."""
    readers = [f"{kind} {_reader_version(kind)}" for kind in sorted(_READERS)]
    settings = [str(rules), *([str(region)] if region != DEFAULT_REGION else [])]
    return hashlib.sha256("\n".join([*readers, *settings]).encode()).hexdigest()[:16]


def _reader_version(kind: str) -> str:
    reader = _READERS[kind]
    library = f" {reader.library} {installed_version(reader.library)}" if reader.library else ""
    return f"{reader.version}{library}" + (f" {_reader_version(reader.delegates_to)}" if reader.delegates_to else "")


@cache
def installed_version(library: str) -> str:
    """Its installed version, as its folder says: importlib.metadata loads a parser of letters, which takes 10 ms."""
    begins = f"{library.replace('-', '_')}-".lower()
    for place in sys.path:
        with suppress(OSError):
            for name in os.listdir(place or "."):
                if name.lower().startswith(begins) and name.endswith(".dist-info"):
                    return name[len(begins) : -len(".dist-info")]
    from importlib.metadata import version  # installed in another way

    return version(library)


@cache
def load_extractor(kind: str) -> ExtractFunction:
    """What reads pages of this kind, loaded."""
    return cast(ExtractFunction, import_module(f"kept.extract.{_READERS[kind].module}").extract)


def _effective_type(declared: str, url: str) -> str:
    if declared in _UNINFORMATIVE_TYPES:
        path = url.partition("#")[0].partition("?")[0]
        return guess_content_type(unquote(path.rpartition("/")[2])) or declared
    return _TYPE_ALIASES.get(declared, declared)


def _parse_content_type(value: str) -> tuple[str, str | None]:
    """The type, in lower case, and the charset, if one is declared."""
    declared, *parameters = value.split(";")
    charset = None
    for parameter in parameters:
        name, _, given = parameter.partition("=")
        if name.strip().lower() == "charset":
            charset = given.strip().strip("\"'") or None
    return declared.strip().lower(), charset
