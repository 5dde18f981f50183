"""The page that the macros of man and mdoc write: paragraphs, code, lists and named entries, by indentation.

Both sets of macros indent in levels, each with at most one open item. An item at the outermost level that names
something (an option, a function, a variable) becomes an entry with an anchor; deeper ones become list items.
"""

from __future__ import annotations

import re
from typing import Final

from kept.extract.html.markdown_text import code_span, escape_link_target, escape_markdown
from kept.extract.man.characters import BOLD, ITALIC, ROMAN, FontRun, split_runs
from kept.extract.markup_writer import AnchorNames, MarkupWriter

MAX_TERM_LENGTH = 200
MAX_LEVELS = 50  # of indentation
LINE_BREAK: Final = FontRun("\n", ROMAN)

_LITERAL = re.compile(r"[-_./=<>()\[\]{}$*:\\@|#~^+\d]")
_REFERENCE_TAIL = re.compile(r"\([0-9n][a-zA-Z]*\)")
_BULLETS = frozenset("•·*o-+—–○□✓∙")
_NUMBERED = re.compile(r"\(?(\d{1,4}|[a-z])[.)]{1,2}")
_ENTRY_NAME = re.compile(r"[-+\\]?[\w$./@%&:<\[\"'^~{-]")
_OPTION = re.compile(r"--?[^\W_]|\+[^\W_]")
_FIRST_WORD = re.compile(r"[^\s,=|\[(]+")


class _Level:
    __slots__ = ("depth", "has_entry", "has_item")

    def __init__(self, depth: int) -> None:
        self.depth = depth  # of the writer when the level began
        self.has_item = False
        self.has_entry = False


class ManualPage:
    """A page as far as it has been read, with its current paragraph, code block and indentation."""

    def __init__(self) -> None:
        self.writer = MarkupWriter()
        self.title = ""
        self.anchors = AnchorNames("~")
        self.runs: list[FontRun] = []  # of the current paragraph
        self.code: list[str] | None = None  # lines, where the text is not filled
        self.language = ""
        self.font = ROMAN
        self.glue = True  # no space before the next piece of text
        self.opens_paragraph = False  # the paragraph is the first after .PP: may be the term of what is indented next
        self._links: list[tuple[int, str]] = []  # of the paragraph: index of the first run after the link, its target
        self._levels = [_Level(0)]
        self._deeper = 0  # levels that are open below the last one that counts

    # Text

    def add_text(self, line: str, *, glue: bool = False) -> None:
        """Add a line of text, with its escapes, behind a space unless the line before says otherwise."""
        runs, self.font = split_runs(line, self.font)
        self.add_runs(runs, glue=glue)
        self.glue = line.endswith("\\c")

    def add_runs(self, runs: list[FontRun], *, glue: bool = False) -> None:
        if not (glue or self.glue) and self.runs:
            self.runs.append(FontRun(" ", ROMAN))
        self.glue = False
        self.runs += runs

    def add_link(self, start: int, href: str) -> None:
        """Make the paragraph's text since the run `start` a link."""
        if not self.runs[start:]:
            self.add_runs([FontRun(href.removeprefix("mailto:"), ROMAN)])
        words = "".join([run.text for run in self.runs[start:]]).strip()
        space = " " if start and not self.runs[start - 1].text.endswith((" ", "(", "\n")) else ""
        del self.runs[start:]
        self.writer.hrefs.append(href)
        markdown = f"{space}[{escape_markdown(words)}]({escape_link_target(href)})"
        self.runs.append(FontRun(markdown, "markdown"))

    def take_runs(self) -> list[FontRun]:
        runs, self.runs, self.glue = self.runs, [], True
        return runs

    def break_line(self) -> None:
        if self.code is None and self.runs and self.runs[-1] is not LINE_BREAK:
            self.runs.append(LINE_BREAK)
            self.glue = True
        self.opens_paragraph = False

    def flush(self) -> None:
        """Write the current paragraph or the lines of code."""
        runs = self.take_runs()
        if self.code is not None:
            if runs:
                self.code.append(plain_text(runs))
            return
        if runs:
            self.writer.add_paragraph(render_runs(runs))
        self.opens_paragraph = False

    def end_line(self) -> None:
        """End an input line: where text is not filled, it is a line of code."""
        if self.code is not None and not self.glue:
            self.code.append(plain_text(self.take_runs()))

    def open_code(self, language: str = "") -> None:
        if self.code is None:
            self.flush()
            self.code, self.language = [], language

    def close_code(self) -> None:
        if self.code is not None:
            self.flush()
            lines, self.code = self.code, None
            indents = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
            margin = min(indents, default=0)
            self.writer.add_code("\n".join([line[margin:].rstrip() for line in lines]), self.language)

    # Structure

    def add_heading(self, level: int, runs: list[FontRun]) -> None:
        self.flush()
        self.close_code()
        text = " ".join(plain_text(runs).split())
        self._levels, self._deeper = [_Level(0)], 0
        self.font = ROMAN
        if text:
            anchor = self.anchors.unique("_".join(text.split()))
            self.writer.add_heading(level, escape_markdown(text), text=text, anchor=anchor)

    def begin_paragraph(self) -> None:
        """Begin a paragraph, which ends the item of this level."""
        self.flush()
        if self.code is not None:
            self.code.append("")
            return
        self._close_item()
        self.opens_paragraph = True

    def add_space(self) -> None:
        """End the paragraph, but not the item that it is in."""
        self.flush()
        if self.code is not None:
            self.code.append("")

    def begin_item(self, tag: list[FontRun]) -> None:
        """Begin an item of a list, whose tag may be a bullet, a number or a term."""
        self.flush()
        self.close_code()
        self._close_item()
        level = self._levels[-1]
        text = " ".join(plain_text(tag).split())
        is_inside = any(each.has_item for each in self._levels[:-1])
        level.has_item = True
        if text in _BULLETS:
            self.writer.open_item("-")
        elif numbered := _NUMBERED.fullmatch(text):
            self.writer.open_item(f"{numbered[1]}." if numbered[1].isdigit() else "-")
        elif not text:
            self.writer.open_item("-")
        elif not self.writer.depth and _names_something(text, tag):
            level.has_entry = True
            self.writer.add_entry(code_span(text), text=text, anchor=self.anchors.unique(_entry_anchor(text)))
        else:
            if is_inside:
                self.writer.open_item("-")
            self.writer.add_paragraph(f"**{escape_markdown(text)}**")

    def indent(self) -> None:
        """Begin a level inside the current item; a line of its own before it is the term of what is indented."""
        if self.code is None and self.opens_paragraph and self.runs and _may_be_term(self.runs):
            self.begin_item(self.take_runs())
        self.flush()
        if len(self._levels) < MAX_LEVELS:
            self._levels.append(_Level(self.writer.depth))
        else:
            self._deeper += 1

    def outdent(self) -> None:
        self.flush()
        if self._deeper:
            self._deeper -= 1
        elif len(self._levels) > 1:
            if self.code is None:
                self._close_item()
            self.writer.close_to(self._levels.pop().depth)
            self.opens_paragraph = False

    def finish(self) -> None:
        self.flush()
        self.close_code()

    def _close_item(self) -> None:
        level = self._levels[-1]
        self.writer.close_to(level.depth)
        if level.has_entry:
            self.writer.end_entry()
        level.has_item = level.has_entry = False


def plain_text(runs: list[FontRun]) -> str:
    return "".join([run.text for run in runs])


def _may_be_term(runs: list[FontRun]) -> bool:
    text = plain_text(runs).strip()
    return len(text) <= MAX_TERM_LENGTH and "\n" not in text and text[-1:] not in (".", ":", ";")


def _names_something(text: str, tag: list[FontRun]) -> bool:
    if len(text) > MAX_TERM_LENGTH or not _ENTRY_NAME.match(text):
        return False
    first = next(run for run in tag if run.text.strip())
    return first.font in (BOLD, ITALIC) or bool(_OPTION.match(text)) or (" " not in text and text[-1] != ":")


def _entry_anchor(text: str) -> str:
    """Return the anchor of an entry as mandoc makes it: the first word without the dashes of an option."""
    word = text.lstrip("-+\\\"' ")
    match = _FIRST_WORD.match(word)
    return (match[0] if match else word or text).rstrip(".;:\"'")[:80] or text[:80].replace(" ", "_")


# ── Markdown ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def render_runs(runs: list[FontRun]) -> str:
    """Return the text of a paragraph as Markdown."""
    merged: list[FontRun] = []
    for run in runs:
        if merged and merged[-1].font == run.font and run is not LINE_BREAK and merged[-1] is not LINE_BREAK:
            merged[-1] = FontRun(merged[-1].text + run.text, run.font)
        else:
            merged.append(run)
    pieces: list[str] = []
    for index, run in enumerate(merged):
        following = merged[index + 1].text if index + 1 < len(merged) else ""
        pieces.append(_render_run(run, pieces[-1][-1:] if pieces else "", following))
    lines = [" ".join(line.split()) for line in "".join(pieces).split("\n")]
    return "\\\n".join(filter(None, lines))


def _render_run(run: FontRun, before: str, following: str) -> str:
    text = run.text
    if run.font == "markdown":
        return text
    words = text.strip()
    if run.font == ROMAN or not words:
        return escape_markdown(text)
    start = text.find(words)
    left, right = text[:start], text[start + len(words) :]
    if not right and _REFERENCE_TAIL.match(following):
        return escape_markdown(text)  # ls(1)
    touches = bool((not left and before.isalnum()) or (not right and following[:1].isalnum()))
    if run.font == ITALIC:
        if touches or "*" in words:
            return escape_markdown(text)
        return f"{left}*{escape_markdown(words)}*{right}"
    if touches or _LITERAL.search(words):
        return f"{left}{code_span(' '.join(words.split()))}{right}"
    return f"{left}**{escape_markdown(words)}**{right}"
