"""Find the headings and the texts with links in Markdown (CommonMark with GitHub's tables).

markdown-it-py's rules parse lists, quotations, tables, HTML blocks and link definitions. Headings, paragraphs and code
are parsed here instead: the library tries a dozen rules on every line and creates tokens that are not needed, which
takes twice the time (docs/decisions/0027). `tests/unit/test_markdown.py` compares the results.

Importing this module imports markdown-it-py, which takes longer than a search: only crawls may import it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from itertools import accumulate
from operator import add
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.parser_block import ParserBlock
from markdown_it.rules_block import StateBlock, blockquote, html_block, list_block, reference, table
from markdown_it.token import Token
from markdown_it.utils import EnvType

from kept.extract.markdown.outline import LinkableText, MarkdownHeading, Outline, is_footnote, parse_line_outline

# In the worst case markdown-it takes 4 µs for a character. Longer pages are change logs and dumps, in nearly all of
# which parse_line_outline finds the same headings.
_MAX_PARSED_LENGTH = 500_000


def parse_outline(text: str) -> Outline:
    """Return the outline of a text whose newlines are all \\n, in time linear in its length."""
    if len(text) <= _MAX_PARSED_LENGTH:
        try:
            return _parse(text)
        except _TooComplex:
            pass
    return parse_line_outline(text)


class _TooComplex(Exception):
    """The text makes markdown-it read the same lines many times."""


def _parse(text: str) -> Outline:
    outline = Outline()
    if text:
        state = _BlockState(text, _parser(), {_OUTLINE_KEY: outline})
        state.md.block.tokenize(state, 0, state.lineMax)
        references = state.env.get("references", {}).items()
        outline.definitions = {label: reference["href"] for label, reference in references if not is_footnote(label)}
    return outline


_OUTLINE_KEY = "kept"  # in the env that markdown-it passes through its rules
_BLANKS = (" ", "\t")
_MAX_NESTING = 20  # of lists and quotations; links in deeper ones are not found


@cache
def _parser() -> MarkdownIt:
    parser = _OutlineParser("zero", {"html": True, "maxNesting": _MAX_NESTING})
    parser.block = _BlockParser()
    return parser


class _OutlineParser(MarkdownIt):
    """Leaves URLs unchanged and unchecked: parse_page resolves them."""

    def normalizeLink(self, url: str) -> str:
        return url

    def validateLink(self, url: str) -> bool:
        return True


class _BlockState(StateBlock):
    """Keeps only the tokens whose content is read; all others are the same object."""

    _discarded_token = Token("", "", 0)

    def __init__(self, text: str, md: MarkdownIt, env: EnvType) -> None:
        super().__init__("", md, env, [])
        self.src = text
        lines = text.split("\n")
        if not lines[-1].strip(" \t"):
            del lines[-1]
        lengths = list(map(len, lines))
        # Start and end of each line, and its indentation in characters and in columns; with an empty line after the
        # last one, as the rules expect.
        self.bMarks = list(accumulate([length + 1 for length in lengths], initial=0))
        self.bMarks[-1] = len(text)
        self.eMarks = [*map(add, self.bMarks, lengths), len(text)]
        self.tShift = [0] * len(self.bMarks)
        self.sCount = [0] * len(self.bMarks)
        self.bsCount = [0] * len(self.bMarks)
        for index, line in enumerate(lines):
            if line[:1] in _BLANKS:
                indent = len(line) - len(line.lstrip(" \t"))
                self.tShift[index] = indent
                self.sCount[index] = len(line[:indent].expandtabs(4))
        self.lineMax = len(lines)
        self.line_budget = 8 * len(lines) + 1_000

    def push(self, ttype: str, tag: str, nesting: Literal[-1, 0, 1]) -> Token:
        if ttype == "inline" or ttype == "html_block":
            return super().push(ttype, tag, nesting)
        self.level += nesting
        return self._discarded_token


_BlockRule = Callable[[StateBlock, int, int, bool], bool]


def _thematic_break(state: StateBlock, startLine: int, endLine: int, silent: bool) -> bool:
    begin, end = state.bMarks[startLine] + state.tShift[startLine], state.eMarks[startLine]
    first = state.src[begin : begin + 1]
    if first not in ("*", "-", "_") or state.is_code_block(startLine):
        return False
    marks = state.src[begin:end].replace(" ", "").replace("\t", "")
    if len(marks) < 3 or marks.strip(first):
        return False
    if not silent:
        state.line = startLine + 1
    return True


def _fence(state: StateBlock, startLine: int, endLine: int, silent: bool) -> bool:
    """Return whether the line is a fence, which ends the block that markdown-it is parsing."""
    # Called first for every line after a quotation that could be a lazy continuation of it. If it is not, it is called
    # again for the next quotation: a page of such lines would take quadratic time.
    if state.parentType == "blockquote" and isinstance(state, _BlockState):
        state.line_budget -= 1
        if state.line_budget < 0:
            raise _TooComplex
    begin = state.bMarks[startLine] + state.tShift[startLine]
    return not state.is_code_block(startLine) and _FENCE.match(state.src, begin, state.eMarks[startLine]) is not None


def _bullet_list(state: StateBlock, startLine: int, endLine: int, silent: bool) -> bool:
    # Most lines that begin with an asterisk are paragraphs that begin in bold.
    after = state.bMarks[startLine] + state.tShift[startLine] + 1
    has_space = after >= state.eMarks[startLine] or state.src[after] in " \t"
    return has_space and list_block(state, startLine, endLine, silent)


# The rules of markdown-it that can begin a block with this character, in its order, and those that can end a paragraph.
# Headings, fences and paragraphs are parsed here; a table may begin with any character.
_RULES_BY_FIRST_CHARACTER: dict[str, tuple[_BlockRule, ...]] = {
    ">": (blockquote,),
    "*": (_thematic_break, _bullet_list),
    "-": (_thematic_break, _bullet_list),
    "_": (_thematic_break,),
    "+": (_bullet_list,),
    **dict.fromkeys("0123456789", (list_block,)),
    "[": (reference,),
    "<": (html_block,),
}
_PARAGRAPH_ENDING_RULES = {first: rules for first, rules in _RULES_BY_FIRST_CHARACTER.items() if first != "["}
_ATX = re.compile(r"#{1,6}(?=[ \t]|$)")
_FENCE = re.compile(r"(`{3,})[^`]*$|(~{3,})")
_UNDERLINE = re.compile(r"(?:=+|-+)[ \t]*$")


class _BlockParser(ParserBlock):
    def __init__(self) -> None:
        super().__init__()
        self.ruler.at("hr", _thematic_break, {"alt": ["paragraph", "reference", "blockquote", "list"]})
        self.ruler.at("fence", _fence, {"alt": ["paragraph", "reference", "blockquote", "list"]})

    def tokenize(self, state: StateBlock, startLine: int, endLine: int) -> None:
        """Parse the blocks of these lines into the outline. Lists and quotations call this for their content."""
        outline: Outline = state.env[_OUTLINE_KEY]
        text, begins, ends, margins, columns = state.src, state.bMarks, state.eMarks, state.tShift, state.sCount
        line = startLine
        while line < endLine:
            state.line = line = state.skipEmptyLines(line)
            if line >= endLine or columns[line] < state.blkIndent:
                break
            if state.level >= _MAX_NESTING:
                state.line = endLine
                break
            token_count = len(state.tokens)
            if columns[line] - state.blkIndent >= 4:
                state.line = _after_code(state, line, endLine)
            elif _may_be_table(state, line, endLine) and table(state, line, endLine, False):
                for token in state.tokens[token_count:]:
                    outline.add_if_linkable(token.content)
            else:
                begin = begins[line] + margins[line]
                first = text[begin]
                if first == "#" and (marks := _ATX.match(text, begin, ends[line])):
                    _add_heading(state, line, marks.end(), outline)
                elif first in "`~" and (fence := _FENCE.match(text, begin, ends[line])):
                    state.line = _after_fence(state, line, endLine, fence[1] or fence[2])
                elif not any(rule(state, line, endLine, False) for rule in _RULES_BY_FIRST_CHARACTER.get(first, ())):
                    _add_paragraph(state, line, endLine, outline)
                elif first == "<":
                    outline.linkable_texts.append(LinkableText(state.tokens[-1].content, is_html=True))
            del state.tokens[token_count:]  # they are in the outline now
            line = state.line
            if line < endLine and begins[line] + margins[line] >= ends[line]:
                state.line = line = line + 1


def _may_be_table(state: StateBlock, line: int, end: int) -> bool:
    if line + 1 >= end:
        return False
    next_start = state.bMarks[line + 1] + state.tShift[line + 1]
    return (
        next_start < state.eMarks[line + 1]
        and state.src[next_start] in "|-:"
        and state.src.find("|", state.bMarks[line], state.eMarks[line]) >= 0
    )


def _add_heading(state: StateBlock, line: int, begin: int, outline: Outline) -> None:
    words = state.src[begin : state.eMarks[line]].rstrip(" \t")
    without_closing_marks = words.rstrip("#")
    if without_closing_marks[-1:] in (" ", "\t"):
        words = without_closing_marks
    words = words.strip()
    state.line = line + 1
    outline.add_if_linkable(words)
    if not state.level and not outline.is_full:
        level = begin - state.bMarks[line] - state.tShift[line]
        outline.headings.append(MarkdownHeading(state.bMarks[line], level, words))


def _after_code(state: StateBlock, line: int, end: int) -> int:
    after = line = line + 1
    while line < end:
        if state.sCount[line] - state.blkIndent >= 4:
            after = line + 1
        elif not state.isEmpty(line):
            break
        line += 1
    return after


def _after_fence(state: StateBlock, line: int, end: int, mark: str) -> int:
    text, begins, ends, margins, columns = state.src, state.bMarks, state.eMarks, state.tShift, state.sCount
    character, least = mark[0], state.blkIndent
    for below in range(line + 1, end):
        begin = begins[below] + margins[below]
        if begin >= ends[below]:
            continue
        if columns[below] < least:
            return below
        if text[begin] == character and columns[below] - least < 4:
            words = text[begin : ends[below]].rstrip(" \t")
            if len(words) >= len(mark) and not words.strip(character):
                return below + 1
    return end


def _add_paragraph(state: StateBlock, start: int, end: int, outline: Outline) -> None:
    """Add a paragraph, or a heading if it is underlined."""
    text, begins, ends, margins, columns = state.src, state.bMarks, state.eMarks, state.tShift, state.sCount
    parent, state.parentType = state.parentType, "paragraph"
    level = 0
    line = start + 1
    while line < state.lineMax:
        begin = begins[line] + margins[line]
        if begin >= ends[line]:
            break
        deeper = columns[line] - state.blkIndent
        if deeper < 4:
            first = text[begin]
            if first in "=-" and deeper >= 0 and line < end and _UNDERLINE.match(text, begin, ends[line]):
                level = 1 if first == "=" else 2
                break
            if columns[line] >= 0 and _ends_paragraph(state, line, begin, first):
                break
        line += 1
    state.parentType = parent
    state.line = line + 1 if level else line

    if state.level or state.blkIndent:
        words = "\n".join([text[begins[each] + margins[each] : ends[each]] for each in range(start, line)]).strip()
    else:
        words = text[begins[start] : ends[line - 1]].strip()
    outline.add_if_linkable(words)
    if level and not state.level and not outline.is_full:
        outline.headings.append(MarkdownHeading(begins[start], level, words))


def _ends_paragraph(state: StateBlock, line: int, begin: int, first: str) -> bool:
    if first == "#":
        if _ATX.match(state.src, begin, state.eMarks[line]):
            return True
    elif first in "`~":
        if _FENCE.match(state.src, begin, state.eMarks[line]):
            return True
    elif any(rule(state, line, state.lineMax, True) for rule in _PARAGRAPH_ENDING_RULES.get(first, ())):
        return True
    return _may_be_table(state, line, state.lineMax) and table(state, line, state.lineMax, True)
