"""Read Markdown: its title, its headings with their anchors, and its links.

    extract               the reader
    split_front_matter    separates the metadata between lines of --- or +++ from the text
    HeadingSlugs          the anchors that GitHub and most renderers give to headings

The text is kept without its front matter, with the additions of dialects as plain Markdown (extract/dialects), and with
the languages of code where they can be guessed. The result does not depend on the URL: the same text is the same
content everywhere.
"""

from __future__ import annotations

import html
import re
import unicodedata
from json import JSONDecoder

from kept.extract.code_language import name_languages
from kept.extract.dialects.block_additions import to_plain_markdown
from kept.extract.markdown.commonmark import parse_outline
from kept.extract.markdown.inline import approximate_plain_text, find_links, plain_text
from kept.extract.markdown.outline import MarkdownHeading, Outline
from kept.extract.sections import MAX_HEADING_LENGTH, Extraction, SectionNode, Unreadable, build_section_tree
from kept.extract.text import decode_text


def extract(body: bytes, charset: str | None) -> Extraction | Unreadable:
    text = decode_text(body, charset)
    if isinstance(text, Unreadable):
        return text
    title, markdown = split_front_matter(text)
    markdown = name_languages(to_plain_markdown(markdown).strip("\n"))
    outline = parse_outline(markdown)
    nodes, starts = _section_nodes(markdown, outline.headings)
    return Extraction(
        title=title or _title(markdown, outline, nodes),
        markdown=markdown,
        tree=build_section_tree(nodes, intro=markdown[: starts[0]] if starts else markdown),
        hrefs=_collect_hrefs(outline),
    )


def _title(markdown: str, outline: Outline, nodes: list[SectionNode]) -> str:
    """Return the first heading of level 1, else the first heading, else ''."""
    # Many a README begins with a centred <h1> in HTML and has several '# ' headings after it.
    html_title = _HTML_TITLE.search(
        markdown, 0, min(outline.headings[0].start if nodes else _TITLE_SEARCH_LENGTH, _TITLE_SEARCH_LENGTH)
    )
    if html_title and any(piece.is_html and html_title[0] in piece.source for piece in outline.linkable_texts):
        words = _one_line(html.unescape(_ANY_TAG.sub("", html_title[1])))
        if words:
            return words
    return next((node.heading for node in nodes if node.level == 1), nodes[0].heading if nodes else "")


_HTML_TITLE = re.compile(r"<h1(?:\s[^<>]*)?>(.{1,2000}?)</h1\s*>", re.IGNORECASE | re.DOTALL)
_ANY_TAG = re.compile(r"<[^<>]*>")
_TITLE_SEARCH_LENGTH = 8_000


def _collect_hrefs(outline: Outline) -> list[str]:
    hrefs: dict[str, None] = {}
    for source, is_html in outline.linkable_texts:
        for href in find_links(source, outline.definitions, is_html=is_html):
            if href[0] != "#":
                hrefs[href] = None
    return list(hrefs)


def _one_line(words: str) -> str:
    return " ".join(words.split())[:MAX_HEADING_LENGTH]


# ── Headings ──────────────────────────────────────────────────────────────────────────────────────────────────────────

_MAX_HEADING_SOURCE_LENGTH = 500  # characters of a heading that are read

# Parsing nested brackets takes quadratic time, and a page may have many such headings. Each heading costs its length
# times its number of markup characters; when the budget is spent, approximate_plain_text is used.
_PARSE_BUDGET = 2_000_000

# {#id}, as in Docusaurus, Pandoc, kramdown and MkDocs; the last two may add a colon and classes.
_EXPLICIT_ANCHOR = re.compile(r"\{(?:/\*)?\s*:?\s*#([^\s{}#*]{1,200})[^{}]{0,200}\}$")
_NAMED_ANCHOR = r"<(?:a|span)(?:\s[^<>]{0,200}?)?\s(?:id|name)\s*=\s*[\"']?([^\s\"'<>]{1,200})[\"']?[^<>]{0,200}>"
_ANCHOR_INSIDE = re.compile(_NAMED_ANCHOR, re.IGNORECASE)
_ANCHOR_LINE = re.compile(rf" {{0,3}}(?:{_NAMED_ANCHOR}\s*(?:</(?:a|span)>)?\s*){{1,4}}", re.IGNORECASE)
_ANCHOR_SEARCH_LENGTH = 400


def _section_nodes(markdown: str, headings: list[MarkdownHeading]) -> tuple[list[SectionNode], list[int]]:
    """Return a node for each heading, and their offsets."""
    slugs = HeadingSlugs()
    budget = _PARSE_BUDGET
    starts: list[int] = []
    named: list[tuple[str, int, str | None]] = []
    for heading in headings:
        source = heading.source[:_MAX_HEADING_SOURCE_LENGTH]
        anchor, start = _anchor_before(markdown, heading.start)
        explicit = _EXPLICIT_ANCHOR.match(source, source.rfind("{")) if source.endswith("}") else None
        if explicit:
            source = source[: explicit.start()].rstrip()
            anchor = explicit[1]
        elif not anchor and "<" in source and (inside := _ANCHOR_INSIDE.search(source)):
            anchor = inside[1]
        budget -= len(source) * sum(map(source.count, "[]*_`<&~"))
        words = plain_text(source) if budget > 0 else approximate_plain_text(source)
        if not explicit:
            slug = slugs.next_slug(words)  # counts even if not used: the next equal heading gets "-1"
            anchor = anchor or slug
        starts.append(start)
        named.append((_one_line(words), heading.level, anchor or None))
    ends = [*starts[1:], len(markdown)]
    nodes = [
        SectionNode(heading=words, level=level, anchor=anchor, content=markdown[start:end])
        for (words, level, anchor), start, end in zip(named, starts, ends, strict=False)
    ]
    return nodes, starts


def _anchor_before(markdown: str, start: int) -> tuple[str, int]:
    """Return the anchor in a line of only <a id="…"></a> above a heading, and the offset of that line."""
    if markdown[max(0, start - 8) : start].rstrip()[-1:] != ">":
        return "", start
    search_start = max(0, start - _ANCHOR_SEARCH_LENGTH)
    before = markdown[search_start:start].rstrip()
    line = before.rfind("\n") + 1
    if line == 0 < search_start:
        return "", start
    match = _ANCHOR_LINE.fullmatch(before, line)
    return (match[1], search_start + line) if match else ("", start)


class HeadingSlugs:
    """Generates the anchors of one page, each once: the second "Usage" is "usage-1"."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def next_slug(self, heading: str) -> str:
        slug = base = slugify(heading)
        while slug in self._counts:
            self._counts[base] += 1
            slug = f"{base}-{self._counts[base]}"
        self._counts[slug] = 0
        return slug


_NOT_IN_ASCII_SLUG = re.compile(r"[^a-z0-9_ -]")


def slugify(heading: str) -> str:
    """Return the anchor of a heading as GitHub does: lower case, only letters, marks, digits, '_' and '-'."""
    lowered = heading.lower()
    if lowered.isascii():
        slug = _NOT_IN_ASCII_SLUG.sub("", lowered)
    else:
        slug = "".join([character for character in lowered if _is_slug_character(character)])
    return slug.replace(" ", "-")


def _is_slug_character(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] in "LM" or category in ("Nd", "Nl", "Pc") or character in " -"


# ── Front matter ──────────────────────────────────────────────────────────────────────────────────────────────────────

_MAX_FRONT_MATTER_LENGTH = 64 * 1024
_FRONT_MATTER = {
    "---": re.compile(r"---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE),
    "+++": re.compile(r"\+\+\+[ \t]*\n(.*?)^\+\+\+[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE),
}
# Text between two thematic breaks is not front matter, each line of which is blank, indented, a list item or a key.
_FRONT_MATTER_LINE = re.compile(r"""\s|\#|-\s|[\]}\[]|["']?[\w@$][^:=\n]{0,100}(?::(?:\s|\Z)|=)|\Z""")
_TITLE = re.compile(r"""^(?:["']?[Tt]itle["']?)[ \t]*[:=][ \t]*(.*(?:\n[ \t]+\S.*)*)""", re.MULTILINE)
_QUOTED = re.compile(r""""((?:[^"\\]|\\.)*)"|'((?:[^']|'')*)'""", re.DOTALL)
_BLOCK_STYLE = re.compile(r"[|>][-+0-9]*[ \t]*(?:\n|\Z)")


def split_front_matter(text: str) -> tuple[str, str]:
    """Return the title in the front matter ('' if there is none), and the text after it."""
    if text.startswith("{") and (json_title := _json_front_matter(text)) is not None:
        return json_title
    pattern = _FRONT_MATTER.get(text[:3])
    block = pattern.match(text, 0, _MAX_FRONT_MATTER_LENGTH) if pattern else None
    if not block or not all(map(_FRONT_MATTER_LINE.match, block[1].split("\n"))):
        return "", text.lstrip("\n")
    title = _TITLE.search(block[1])
    return _one_line(_scalar_text(title[1])) if title else "", text[block.end() :].lstrip("\n")


def _json_front_matter(text: str) -> tuple[str, str] | None:
    """Return the title in front matter that is a JSON object, as Hugo allows, and the text after it."""
    try:
        data, end = JSONDecoder().raw_decode(text[:_MAX_FRONT_MATTER_LENGTH])
    except (ValueError, RecursionError):
        return None
    title = data.get("title")
    if text[end : end + 1] != "\n":
        return None
    return _one_line(title) if isinstance(title, str) else "", text[end:].lstrip("\n")


def _scalar_text(value: str) -> str:
    """Return the text of a YAML or TOML scalar, as far as titles need it."""
    quoted = _QUOTED.match(value)
    if quoted:
        return (
            quoted[1].replace('\\"', '"').replace("\\\\", "\\") if quoted[1] else (quoted[2] or "").replace("''", "'")
        )
    block = _BLOCK_STYLE.match(value)
    if block:
        return value[block.end() :]
    value = value.partition(" #")[0].strip()
    return "" if value in ("null", "~") or value.startswith("#") else value
