"""Pick a reader for a page by its content type or, where that is uninformative, by its name.

    parse_page            bytes -> ParsedPage, or Unreadable with the reason
    guess_content_type    the type of a file by its name; None for what is not documentation
    pipeline_signature    identifies the readers and their settings: when it changes, pages are read again

A reader is a module with `extract(body, charset) -> Extraction | Unreadable`, imported when the first page of its type
comes. The one for HTML also takes the region of the page to read.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple, Protocol, cast
from urllib.parse import unquote

from kept.extract.page_kind import recognise_kind
from kept.extract.sections import DEFAULT_SECTION_RULES, Extraction, SectionRules, Unreadable, build_content
from kept.model.companions import NO_COMPANIONS, Companions
from kept.model.document import RENDERED_CONTENT_TYPE, SECTIONS_PER_CONTENT, ParsedPage
from kept.model.package import PYTHON_MODULE_TYPE
from kept.model.source import DEFAULT_REGION, Region
from kept.model.url import resolve_link, resolve_links

__all__ = ["SectionRules", "Unreadable", "guess_content_type", "parse_page", "pipeline_signature"]

SAMPLE_BYTES = 200_000
MAX_LOADING_TEXT_LENGTH = 40
"""Characters of Markdown. A rendered page with more than these has content, and not just "Loading …"."""


class ExtractFunction(Protocol):
    def __call__(self, body: bytes, charset: str | None, **options: Any) -> Extraction | Unreadable: ...


class ReaderSpec(NamedTuple):
    module: str
    version: int  # raise it when the same bytes would give another result
    library: str = ""  # a library whose releases may change the result, too
    delegates_to: str = ""  # the type whose reader it uses


_OPEN_XML = "application/vnd.openxmlformats-officedocument"

_READERS = {
    "application/json": ReaderSpec("json_data", 2),
    "application/epub+zip": ReaderSpec("office.epub", 1, delegates_to="text/html"),
    "application/pdf": ReaderSpec("pdf", 2, "pypdfium2"),
    f"{_OPEN_XML}.presentationml.presentation": ReaderSpec("office.pptx", 1, delegates_to="text/markdown"),
    f"{_OPEN_XML}.spreadsheetml.sheet": ReaderSpec("office.xlsx", 1),
    f"{_OPEN_XML}.wordprocessingml.document": ReaderSpec("office.docx", 1, delegates_to="text/markdown"),
    "application/x-ipynb+json": ReaderSpec("notebook", 1, delegates_to="text/markdown"),
    "application/yaml": ReaderSpec("yaml_data", 1, "PyYAML"),
    "text/asciidoc": ReaderSpec("asciidoc.reader", 1),
    "text/html": ReaderSpec("html.reader", 6, "selectolax"),
    "text/markdown": ReaderSpec("markdown.reader", 3, "markdown-it-py"),
    "text/plain": ReaderSpec("text", 3, delegates_to="text/x-rst"),
    PYTHON_MODULE_TYPE: ReaderSpec("python_docs", 1),
    "text/troff": ReaderSpec("man.reader", 1),
    "text/x-rst": ReaderSpec("rst.reader", 1, "docutils", delegates_to="text/html"),
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
    "text/prs.fallenstein.rst": "text/x-rst",
    "text/x-asciidoc": "text/asciidoc",
    "text/x-org": "text/plain",
    **dict.fromkeys(("application/x-troff-man", "application/x-troff", "text/x-troff", "text/x-man"), "text/troff"),
}

# Types that servers send when they know no better; then the name of the page decides.
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
    **dict.fromkeys(("adoc", "asciidoc"), "text/asciidoc"),
    **dict.fromkeys(("rst", "rest"), "text/x-rst"),
    **dict.fromkeys(("txt", "text", "org", "textile", "pod"), "text/plain"),
}
_TYPES_BY_NAME = {
    **dict.fromkeys(("llms.txt", "llms-full.txt"), "text/markdown"),
    **dict.fromkeys(
        ("readme", "changelog", "changes", "news", "history", "contributing", "install", "upgrading", "faq", "manual"),
        "text/plain",
    ),
}
# foo.1, foo.3pm.gz, ld.so.8; but not libfoo.so.1 and app.log.2. The reader refuses what is no manual page inside.
_MANUAL_PAGE_NAME = re.compile(r"(?!lib.*\.so\.\d|.*\.log\.\d).+\.[1-9n][a-z]{0,8}(?:\.gz)?")


def parse_page(
    body: bytes,
    *,
    content_type: str,
    url: str,
    rules: SectionRules = DEFAULT_SECTION_RULES,
    region: Region = DEFAULT_REGION,
    companions: Companions = NO_COMPANIONS,
) -> ParsedPage | Unreadable:
    """Return the content and links of a page, or why it cannot be read. `content_type` is as the origin gave it."""
    declared, charset = _parse_content_type(content_type)
    kind = _effective_type(declared, url)
    if kind not in _READERS:
        return Unreadable(reason=f"there is no reader for {declared or 'a page of unknown type'}")
    if "/_sources/" in url and kind != "text/html":
        return Unreadable(reason="what Sphinx built a page from, which is kept as that page")
    options: dict[str, Any] = {"region": region} if kind == "text/html" else {}
    if kind in ("text/plain", "text/x-rst", "text/asciidoc"):
        options |= {"url": url, "companions": companions}
    if kind == PYTHON_MODULE_TYPE:
        options["url"] = url
    extraction = load_extractor(kind)(body, charset, **options)
    if isinstance(extraction, Unreadable):
        return extraction
    content = build_content(
        extraction.title,
        extraction.markdown,
        extraction.tree,
        rules,
        extraction.places,
        extraction.kind or recognise_kind(extraction.title, extraction.markdown, extraction.tree, url),
    )
    if len(content.sections) > SECTIONS_PER_CONTENT:
        return Unreadable(reason=f"it would take more than {SECTIONS_PER_CONTENT:,} sections")
    base = resolve_link(extraction.base_href, url) or url if extraction.base_href else url
    is_rendered = content_type == RENDERED_CONTENT_TYPE
    hrefs = extraction.hrefs if is_rendered else [href for href in extraction.hrefs if href[0] != "#"]
    alternates = set(resolve_links(extraction.alternate_hrefs, base)) - {url} if extraction.alternate_hrefs else set()
    canonical = _resolve_other_page(extraction.canonical, base, url) or _conventional_canonical(kind, url)
    links = resolve_links(hrefs, base, keep_routes=is_rendered)
    return ParsedPage(
        content=content,
        links=tuple([link for link in links if link not in alternates] if alternates else links),
        canonical=None if is_rendered else canonical,  # all routes of a single-page application declare the same
        moved_to=_resolve_other_page(extraction.moved_to, base, url),
        robots_directives=extraction.robots_directives,
        is_js_shell=_is_still_js_shell(extraction, is_rendered),
    )


def _conventional_canonical(kind: str, url: str) -> str | None:
    """Return the URL that sites use for the same page by convention: where both are kept, one is a duplicate."""
    if not url.startswith("http"):
        return None
    if kind == "text/markdown" and url.endswith(".md"):
        return url.removesuffix(".md")
    folder, _, name = url.rpartition("/")
    return f"{folder}/" if name in ("index.html", "index.htm") else None


def _is_still_js_shell(extraction: Extraction, is_rendered: bool) -> bool:
    """Return whether the page needs its scripts to run; if they have run, whether they produced hardly any text."""
    if not is_rendered:
        return extraction.is_js_shell
    return not extraction.markdown or (extraction.is_js_shell and len(extraction.markdown) <= MAX_LOADING_TEXT_LENGTH)


def _resolve_other_page(href: str | None, base: str, url: str) -> str | None:
    """Return the URL that a link leads to; None if it is the page itself, or no URL."""
    target = resolve_link(href, base) if href else None
    return None if target == url else target


_DATA_TYPES = {"json": "application/json", "yaml": "application/yaml", "yml": "application/yaml"}
_API_DESCRIPTION_NAME = re.compile(r"openapi|swagger|asyncapi|(?:^|[-_.])oas[23]?$")


def is_restructured_text(body: bytes, content_type: str, url: str) -> bool:
    """Return whether a page is read as reStructuredText, by its type and name, or else by its text."""
    kind = _effective_type(_parse_content_type(content_type)[0], url)
    if kind == "text/plain":
        from kept.extract.rst.recognition import looks_like_rst

        return looks_like_rst(body[:SAMPLE_BYTES].decode("utf-8", "replace"))
    return kind == "text/x-rst"


def is_asciidoc(body: bytes, content_type: str, url: str) -> bool:
    """Return whether a page is read as AsciiDoc, by its type and name, or else by its text."""
    kind = _effective_type(_parse_content_type(content_type)[0], url)
    if kind == "text/plain":
        from kept.extract.asciidoc.lines import looks_like_asciidoc

        return looks_like_asciidoc(body[:SAMPLE_BYTES].decode("utf-8", "replace"))
    return kind == "text/asciidoc"


def guess_content_type(name: str) -> str | None:
    """Return the content type of a file with this name; None if it is not documentation that Kept can read."""
    name = name.rpartition("/")[2].lower()
    stem, dot, extension = name.rpartition(".")
    if not (dot and stem):
        return _TYPES_BY_NAME.get(name)
    if extension in _DATA_TYPES:  # other JSON and YAML files are not documentation
        return _DATA_TYPES[extension] if _API_DESCRIPTION_NAME.search(stem) else None
    known = _TYPES_BY_NAME.get(name) or _TYPES_BY_EXTENSION.get(extension)
    return known or ("text/troff" if _MANUAL_PAGE_NAME.fullmatch(name) else None)


def pipeline_signature(rules: SectionRules = DEFAULT_SECTION_RULES, region: Region = DEFAULT_REGION) -> str:
    """Return a short hash of everything but the bytes that decides what a page is read as."""
    readers = [f"{kind} {_reader_version(kind)}" for kind in sorted(_READERS)]
    settings = [str(rules), *([str(region)] if region != DEFAULT_REGION else [])]
    return hashlib.sha256("\n".join([*readers, *settings]).encode()).hexdigest()[:16]


def _reader_version(kind: str) -> str:
    reader = _READERS[kind]
    library = f" {reader.library} {installed_version(reader.library)}" if reader.library else ""
    return f"{reader.version}{library}" + (f" {_reader_version(reader.delegates_to)}" if reader.delegates_to else "")


@cache
def installed_version(library: str) -> str:
    from importlib.metadata import version  # slow to import, and only crawls need it

    return version(library)


@cache
def load_extractor(kind: str) -> ExtractFunction:
    """Import the reader of a content type and return its extract function."""
    return cast(ExtractFunction, import_module(f"kept.extract.{_READERS[kind].module}").extract)


def _effective_type(declared: str, url: str) -> str:
    if declared in _UNINFORMATIVE_TYPES:
        path = url.partition("#")[0].partition("?")[0]
        return guess_content_type(unquote(path.rpartition("/")[2])) or declared
    return _TYPE_ALIASES.get(declared, declared)


def _parse_content_type(value: str) -> tuple[str, str | None]:
    """Return the type in lower case and the declared charset, if any."""
    declared, *parameters = value.split(";")
    charset = None
    for parameter in parameters:
        name, _, label = parameter.partition("=")
        if name.strip().lower() == "charset":
            charset = label.strip().strip("\"'") or None
    return declared.strip().lower(), charset
