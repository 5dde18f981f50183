"""Measure what the HTML reader, and its peers, keep of manuals of many generators.

    python bench/reading_unseen.py [--pages 25] [--manual haddock] [--peers] [--missing] [--cache FOLDER]

The expected items are taken from the original page's DOM by the selectors of `unseen_manuals`, without the reader.

headings    a heading of the result has exactly the words of the original's
members     documented objects that are no h1–h6 in the page: the id of each is the anchor of a section (Kept only)
code        a code block of the result has exactly the words of the original, and no blank lines that it has not
rows        the words of a table's row stand together, in their order
recall      words of the content that are in the result; precision: words of the result that are content
ms          milliseconds a page

Peers are measured where they are installed: trafilatura, html-to-markdown and markdownify beside Python, and
@mozilla/readability with linkedom in the folder that KEPT_BENCH_NODE names.
"""

from __future__ import annotations

import argparse
import html
import json
import os
import random
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from selectolax.lexbor import LexborHTMLParser, LexborNode

sys.path.insert(0, str(Path(__file__).resolve().parent))

from unseen_manuals import UNSEEN_MANUALS, UnseenManual, fetch_manual

from kept.extract.html.reader import extract
from kept.extract.sections import SectionNode, Unreadable

KINDS = ("headings", "members", "code", "rows", "recall", "precision")
IGNORED = "script, style, noscript, template, svg, button, head, input, select, textarea, iframe"
BLOCKS = re.compile(
    r"</?(?:p|div|td|th|tr|li|dt|dd|dl|ul|ol|table|h[1-6]|pre|section|article|blockquote|header|footer|nav|caption|br|"
    r"hr|sup|sub|tbody|thead|summary|details|main|aside|figure|figcaption|body|center)\b",
    re.IGNORECASE,
)
BLOCKS_IN_ROWS = "tr table, tr h1, tr h2, tr h3, tr h4, tr h5, tr h6, tr pre, tr ul, tr ol, tr dl"
WORD = re.compile(r"[^\W_]+")
FENCE = re.compile(
    r"^([ >]*(?:(?:[-*+]|\d+[.)]) +)*)(`{3,}|~{3,})[^`\n]*\n(.*?)^[ >]*\2[ \t]*$", re.DOTALL | re.MULTILINE
)
HEADING = re.compile(r"^[ >]*(?:[-*] +)?#{1,6} +(.*)$", re.MULTILINE)
LINK_TARGET = re.compile(r"\]\((?:<[^<>\n]*>|[^()\s]|\([^()\n]*\))*(?:\s+\"[^\"\n]*\")?\)")
LIST_NUMBER = re.compile(r"^([ >]*)\d+[.)] ", re.MULTILINE)
NOTE_TITLE = re.compile(r"^[ >]*\*\*(.+)\*\*$", re.MULTILINE)  # of a note, whose headings readers make bold lines
IMAGE = re.compile(r"!\[(?:[^\[\]\n]|\[[^\[\]\n]*\])*\](?=\()" + LINK_TARGET.pattern[2:])
ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")


def words(text: str) -> list[str]:
    return WORD.findall(text.replace("*", "").replace("`", "").replace("\u200b", "").replace("\xad", ""))


@dataclass(frozen=True)
class Items:
    """What a page has, or what a reader made of it."""

    headings: list[str]
    code: list[tuple[str, int]]  # words, and number of blank lines
    rows: list[str]
    words: list[str]
    anchors: set[str] = field(default_factory=set)


# ── The original ──────────────────────────────────────────────────────────────────────────────────────────────────────


def dom_text(node: LexborNode) -> str:
    """Return the text of an element, with a line break where a block begins or ends."""
    return LexborHTMLParser("<body>" + BLOCKS.sub(r"\n\g<0>", node.html or "")).text()


def dom_items(page: str, manual: UnseenManual) -> Items | None:
    region = LexborHTMLParser(page).css_first(manual.region)
    if region is None:
        return None
    for node in region.css("span.sep"):
        node.replace_with(" ")
    for selector in (IGNORED, manual.outside, manual.marks):
        for node in region.css(selector) if selector else ():
            if node.mem_id != region.mem_id:
                node.decompose()
    return Items(
        headings=joined(dom_text(node) for node in region.css(manual.headings)),
        code=[block for node in region.css(manual.code) if (block := code_block(dom_text(node)))[0]],
        rows=joined(dom_text(node) for node in data_rows(region, manual.layout)),
        words=words(dom_text(region)),
        anchors={name for node in region.css(manual.members) if (name := anchor(node))} if manual.members else set(),
    )


def data_rows(region: LexborNode, layout: str) -> list[LexborNode]:
    """Return the rows of tables that hold data, and no blocks that no Markdown table can hold."""
    skipped = set()
    if layout:
        skipped.update(row.mem_id for row in region.css(", ".join(f"{one} tr" for one in layout.split(", "))))
    for block in region.css(BLOCKS_IN_ROWS):
        ancestor = block.parent
        while ancestor is not None and ancestor.mem_id != region.mem_id:
            if ancestor.tag == "tr":
                skipped.add(ancestor.mem_id)
            ancestor = ancestor.parent
    return [row for row in region.css("tr") if row.mem_id not in skipped]


def anchor(node: LexborNode) -> str | None:
    """Return the id or name of an element, or of the nearest one around it or just in it."""
    named = node.css_first("[id], a[name]")
    for one in (node, named, node.parent):
        if one is not None and (name := one.attributes.get("id") or one.attributes.get("name")):
            return name
    return None


def joined(texts: Iterable[str]) -> list[str]:
    return [text for text in (" ".join(words(text)) for text in texts) if text]


def code_block(text: str) -> tuple[str, int]:
    lines = text.strip().split("\n")
    return " ".join(words(text)), sum(not line.strip() for line in lines)


# ── What readers make of it ───────────────────────────────────────────────────────────────────────────────────────────


def markdown_items(markdown: str) -> Items:
    """Return the items of a result in Markdown."""
    code = [
        code_block(re.sub(rf"^[ >]{{0,{len(match[1])}}}", "", match[3], flags=re.MULTILINE))
        for match in FENCE.finditer(markdown)
    ]
    spans = [(" ".join(words(span)), 0) for span in re.findall(r"`+([^`\n]+)`+", markdown)]
    prose = plain(FENCE.sub("\n", LIST_NUMBER.sub(r"\1", markdown)))
    everything = plain(
        FENCE.sub(lambda match: "\n" + match[3].replace("\\", "\\\\") + "\n", LIST_NUMBER.sub(r"\1", markdown))
    )
    return Items(
        headings=joined([*HEADING.findall(prose), *NOTE_TITLE.findall(prose)]),
        code=code + spans,
        rows=[],
        words=words(everything.replace("<br>", " ")),
    )


def plain(markdown: str) -> str:
    """Return the text of Markdown without link targets, images and escapes."""
    return html.unescape(ESCAPED.sub(r"\1", LINK_TARGET.sub("] ", IMAGE.sub(" ", markdown)).replace("] ", "]")))


Reader = Callable[[str], tuple[float, Items]]
"""Returns the seconds that a reader took for a page, and what it made of it."""


def of_kept(page: str) -> tuple[float, Items]:
    began = time.perf_counter()
    found = extract(page.encode(), "utf-8")
    seconds = time.perf_counter() - began
    if isinstance(found, Unreadable):
        return seconds, Items([], [], [], [])
    items = markdown_items(found.markdown)
    items.anchors.update(section.anchor for section in walk(found.tree) if section.anchor)
    return seconds, items


def of_converter(convert: Callable[[str], str | None]) -> Reader:
    def read(page: str) -> tuple[float, Items]:
        began = time.perf_counter()
        markdown = convert(page) or ""
        return time.perf_counter() - began, markdown_items(markdown)

    return read


def walk(node: SectionNode) -> list[SectionNode]:
    return [node, *(below for child in node.children for below in walk(child))]


def peers() -> dict[str, Reader]:
    """Return the readers that are installed."""
    found: dict[str, Reader] = {"kept": of_kept}
    try:
        import trafilatura

        found["trafilatura"] = of_converter(
            lambda page: trafilatura.extract(page, output_format="markdown", include_formatting=True)
        )
    except ImportError:
        pass
    try:
        import html_to_markdown

        found["html-to-markdown"] = of_converter(lambda page: html_to_markdown.convert(page).content)
    except ImportError:
        pass
    try:
        import markdownify

        found["markdownify"] = of_converter(lambda page: markdownify.markdownify(page, heading_style="ATX"))
    except ImportError:
        pass
    if folder := os.environ.get("KEPT_BENCH_NODE"):
        found["readability"] = Readability(folder)
    return found


class Readability:
    """@mozilla/readability, in one process for all pages. Its result is HTML."""

    SCRIPT = """
        const {Readability} = require('@mozilla/readability'), {parseHTML} = require('linkedom')
        require('readline').createInterface({input: process.stdin}).on('line', line => {
            const began = process.hrtime.bigint()
            let content = ''
            try { content = (new Readability(parseHTML(JSON.parse(line)).document).parse() || {}).content || '' }
            catch (error) { }
            console.log(JSON.stringify([content, Number(process.hrtime.bigint() - began) / 1e9]))
        })
    """

    def __init__(self, folder: str) -> None:
        self.process = subprocess.Popen(
            ["node", "-e", self.SCRIPT], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self, page: str) -> tuple[float, Items]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(page) + "\n")
        self.process.stdin.flush()
        content, seconds = json.loads(self.process.stdout.readline())
        manual = UnseenManual(package="", pages="", region="body")
        return seconds, dom_items(f"<body>{content}", manual) or Items([], [], [], [])


# ── Comparison ────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Score:
    expected: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    pages: int = 0
    missing: list[str] = field(default_factory=list)
    extra: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)

    def add(self, other: Score) -> None:
        self.expected += other.expected
        self.kept += other.kept
        self.seconds += other.seconds
        self.pages += other.pages

    def compare(self, page: Items, result: Items) -> None:
        headings = Counter(result.headings)
        for text in page.headings:
            self._count("headings", text, headings[text] > 0)
            headings[text] -= 1
        for name in page.anchors:
            self._count("members", name, name in result.anchors)
        blocks: dict[str, list[int]] = {}
        for text, blank_lines in result.code:
            blocks.setdefault(text, []).append(blank_lines)
        spans = f" {' '.join(text for text, _ in result.code if text)} "
        for text, blank_lines in page.code:
            same = blocks.get(text)
            self._count("code", text, min(same) <= blank_lines + 1 if same else f" {text} " in spans)
        stream = f" {' '.join(result.words)} "
        for text in page.rows:
            self._count("rows", text, f" {text} " in stream)
        original, given = Counter(page.words), Counter(result.words)
        common = (original & given).total()
        self.expected += Counter({"recall": original.total(), "precision": given.total()})
        self.kept += Counter({"recall": common, "precision": common})
        self.lost += original - given
        self.extra += given - original

    def _count(self, kind: str, text: str, ok: bool) -> None:
        self.expected[kind] += 1
        self.kept[kind] += ok
        if not ok:
            self.missing.append(f"{kind}: {text[:110]}")


def row(name: str, score: Score) -> str:
    cells = []
    for kind in KINDS:
        expected, kept = score.expected[kind], score.kept[kind]
        of = "" if kind in ("recall", "precision") else f"{kept}/{expected} "
        cells.append(f"{of}{100 * kept / expected:.1f}" if expected else "-")
    milliseconds = f"{1000 * score.seconds / score.pages:.1f}" if score.pages else "-"
    return f"{name:34} {score.pages:>4}" + "".join(f"{cell:>17}" for cell in [*cells, milliseconds])


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--pages", type=int, default=25, help="pages of each manual, chosen at random")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--manual", choices=UNSEEN_MANUALS, action="append")
    arguments.add_argument("--peers", action="store_true", help="measure the installed peers, too")
    arguments.add_argument("--missing", action="store_true", help="list what is missing, lost and leaked")
    arguments.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "kept-bench")
    given = arguments.parse_args()
    readers = peers() if given.peers else {"kept": of_kept}
    totals = {name: Score() for name in readers}
    print(f"{'manual':34} page" + "".join(f"{kind:>17}" for kind in (*KINDS, "ms")))
    for name in given.manual or UNSEEN_MANUALS:
        manual = UNSEEN_MANUALS[name]
        folder = fetch_manual(manual, given.cache)
        paths = sorted(path for path in folder.glob(manual.pages) if path.is_file())
        pages = [
            (path, text, items)
            for path in random.Random(given.seed).sample(paths, min(given.pages, len(paths)))
            if (items := dom_items(text := path.read_text("utf-8", "replace"), manual)) is not None
        ]
        for reader, read in readers.items():
            score = Score()
            for path, text, items in pages:
                seconds, result = read(text)
                score.seconds += seconds
                score.pages += 1
                missing = len(score.missing)
                score.compare(items, result)
                for what in score.missing[missing:] if given.missing else ():
                    print(f"    {path.name}  {what}", file=sys.stderr)
            if given.missing:
                print(
                    f"    lost: {score.lost.most_common(25)}\n    leaked: {score.extra.most_common(25)}",
                    file=sys.stderr,
                )
            totals[reader].add(score)
            print(row(name if reader == "kept" else f"    {reader}", score), flush=True)
    for reader, score in totals.items():
        print(row(f"all: {reader}", score))


if __name__ == "__main__":
    main()
