"""Named entries: options, functions in tables, terms, which people look for by name and which are no headings.

    NamedText        an entry: where it begins and ends, its names and their anchors
    find_entries     the entries of a text, from its places and from the first cells of its tables
    find_tables      where the tables of a text are
    plain_text       Markdown without its marks

Only Markdown and positions go in, so that an entry is the same whatever format it was written in.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final, NamedTuple

from kept.model.document import NamedEntry, Place

MAX_NAME_LENGTH: Final = 120

_MARKS: Final = re.compile(r"\\([!-/:-@\[-`{-~])|\[([^\[\]]*)\]\((?:<[^<>]*>|[^()\s]*)\)|\*{1,3}|(?<!\w)_|_(?!\w)|`+")
_LEADING_NAME: Final = re.compile(r"\[?(?:(\*\*)(.+?)\*\*|(`+)(.+?)\3(?!`))")
_TABLE_RULE: Final = re.compile(r"^\|(?:[ ]*:?-{2,}:?[ ]*\|)+[ ]*$", re.MULTILINE)
_FIRST_CELL: Final = re.compile(r"\|[ ]*(.*?)[ ]*(?<!\\)\|")
_FENCE_LINE: Final = re.compile(r"^[ >]*(?:```|~~~)", re.MULTILINE)
_LIST_MARK: Final = re.compile(r"(?:[-*+]|\d{1,9}[.)]) +|> ?")


class NamedText(NamedTuple):
    """A named entry in a text."""

    start: int
    end: int
    names: tuple[NamedEntry, ...]  # with those of the entries in it
    parts: tuple[Place, ...] = ()  # it and the entries in it, each with its own range


def plain_text(markdown: str) -> str:
    """Return a line of Markdown without emphasis, code marks, escapes and link targets."""
    return " ".join(_MARKS.sub(_without_mark, markdown).split())


def _without_mark(mark: re.Match[str]) -> str:
    if mark[2] is not None:
        return _MARKS.sub(_without_mark, mark[2])
    return mark[1] or ""


def term_name(text: str, start: int) -> str:
    """Return the name in the line that begins here."""
    end = text.find("\n", start)
    line = text[start : end if end >= 0 else len(text)]
    while mark := _LIST_MARK.match(line):
        line = line[mark.end() :]
    return plain_text(line)[:MAX_NAME_LENGTH]


def find_entries(text: str, places: Sequence[Place]) -> list[NamedText]:
    """Return the entries of a text that are inside no other, in order. The places are in order, too.

    A place with a name is an entry already, up to its end; so is a row of a table that begins with a name in bold or
    code, or has a place; and a place before a block that begins with a name, up to the next such place.
    """
    tables = [(rows, end) for _, rows, end in find_tables(text)] if "\n|" in text or text.startswith("|") else []
    anchors = [place for place in places if not place.name]
    entries = _outermost([*_merge_terms(text, places), *_find_rows(text, tables, anchors)])
    entries = _with_anchors(text, entries, anchors)
    starts = [place for place in anchors if _names_a_block(text, place.start)]
    return _outermost([*entries, *_find_paragraphs(text, starts, entries)]) if starts else entries


def _outermost(entries: list[NamedText]) -> list[NamedText]:
    """Return the entries in order; one that begins inside another is a part of it."""
    found: list[tuple[int, int, list[NamedEntry], list[Place]]] = []
    for start, end, names, known_parts in sorted(entries, key=_by_extent):
        parts = known_parts or [Place(anchor, start, end, name) for name, anchor in names]
        if not found or start >= found[-1][1]:
            found.append((start, end, list(names), list(parts)))
        else:
            found[-1][2].extend(names)
            found[-1][3].extend(parts)
    return [
        NamedText(start, end, tuple(dict.fromkeys(names)), tuple(dict.fromkeys(parts)))
        for start, end, names, parts in found
    ]


def _by_extent(entry: NamedText) -> tuple[int, int]:
    return entry.start, -entry.end


# ── Terms of definition lists ─────────────────────────────────────────────────────────────────────────────────────────


def _merge_terms(text: str, places: Sequence[Place]) -> list[NamedText]:
    """Return the entries that a reader has named. Terms that share a description begin and end together."""
    return [
        NamedText(place.start, min(place.end, len(text)), (NamedEntry(place.name, place.anchor),))
        for place in places
        if place.name
    ]


_TERM_LINES: Final = re.compile(r"(?:[ >]*(?:[-*] +)?\*\*[^\n]*\*\*\\?\n|[ >]*\n)*")
_MAX_TERM_LINES: Final = 1_000  # characters


def _with_anchors(text: str, entries: Sequence[NamedText], places: Sequence[Place]) -> list[NamedText]:
    """Return the entries with the anchors that are inside their terms."""
    starts = [place.start for place in places]
    found: list[NamedText] = []
    for entry in entries:
        names = list(entry.names)
        known = {anchor for _, anchor in names}
        end = min(entry.end, entry.start + _MAX_TERM_LINES)
        for place in places[bisect_left(starts, entry.start) : bisect_left(starts, end)]:
            line, line_end = text.rfind("\n", 0, place.start) + 1, text.find("\n", place.start)
            if (
                place.anchor not in known
                and text.endswith("**", line, line_end)
                and text[line:line_end].lstrip(" >-").startswith("**")
                and _TERM_LINES.fullmatch(text, entry.start, max(line, entry.start))
            ):
                names.append(NamedEntry(term_name(text, line), place.anchor))
        own = [Place(anchor, entry.start, entry.end, name) for name, anchor in names[len(entry.names) :]]
        named = {place.name for place in own}
        parts = [place for place in entry.parts if place.anchor or place.name not in named]
        found.append(entry._replace(names=tuple(_join_names(names)), parts=(*own, *parts)))
    return found


def _join_names(names: Sequence[NamedEntry]) -> list[NamedEntry]:
    """Return names without those that have no anchor, where the same name has one, too."""
    with_anchor = {name for name, anchor in names if anchor}
    first = [name for name in names if name.anchor or name.name not in with_anchor]
    return list(dict.fromkeys(first))


# ── Rows of tables ────────────────────────────────────────────────────────────────────────────────────────────────────


def find_tables(text: str) -> list[tuple[int, int, int]]:
    """Return where each table begins, where its first row behind the header does, and where it ends."""
    found: list[tuple[int, int, int]] = []
    fences: list[int] | None = None
    for rule in _TABLE_RULE.finditer(text):
        if found and rule.start() < found[-1][2]:
            continue  # a row of dashes
        if fences is None:
            fences = [fence.start() for fence in _FENCE_LINE.finditer(text)]
        if bisect_left(fences, rule.start()) % 2:
            continue  # in a code block
        end = rule.end()
        while text.startswith("\n|", end):
            line_end = text.find("\n", end + 1)
            end = line_end if line_end >= 0 else len(text)
        header = text.rfind("\n", 0, max(0, rule.start() - 1)) + 1
        if text.startswith("|", header):
            found.append((header, min(rule.end() + 1, end), end))
    return found


def _find_rows(text: str, tables: Sequence[tuple[int, int]], places: Sequence[Place]) -> list[NamedText]:
    entries: list[NamedText] = []
    starts = [place.start for place in places] if tables else []
    for start, table_end in tables:
        while start < table_end:
            end = text.find("\n", start, table_end)
            if end < 0:
                end = table_end
            cell = _FIRST_CELL.match(text, start, end)
            inside = places[bisect_left(starts, start) : bisect_left(starts, end)]
            names = _names_of_cell(cell[1], has_anchor=bool(inside)) if cell else []
            if names:
                pairs = [NamedEntry(name, inside[0].anchor if inside else "") for name in names]
                pairs += [NamedEntry(names[0], place.anchor) for place in inside[1:]]
                entries.append(NamedText(start, end, tuple(pairs)))
            start = end + 1
    return entries


def _names_of_cell(cell: str, *, has_anchor: bool) -> list[str]:
    names: dict[str, None] = {}
    for line in cell.split("<br>"):
        found = _LEADING_NAME.match(line)
        if found is None:
            break
        name = plain_text((found[2] or found[4]).replace("\\|", "|"))
        if name and len(name) <= MAX_NAME_LENGTH:
            names[name] = None
    if not names and has_anchor and 0 < len(name := plain_text(cell.partition("<br>")[0])) <= MAX_NAME_LENGTH:
        names[name] = None
    return list(names)


# ── Paragraphs and list items with an anchor ──────────────────────────────────────────────────────────────────────────

_MAX_NAME_LINE: Final = 80


def _names_a_block(text: str, start: int) -> bool:
    """Return whether a block begins here, and with a name: in bold or code, or a short line of its own."""
    line_start = text.rfind("\n", 0, start) + 1
    lead = text[line_start:start]
    while lead and (mark := _LIST_MARK.match(lead.lstrip(" "))):
        lead = lead.lstrip(" ")[mark.end() :]
    if lead.strip() or text.startswith(("|", "#", "```", "~~~", "!["), start):
        return False
    line_end = text.find("\n", start)
    line = text[start : line_end if line_end >= 0 else len(text)]
    while mark := _LIST_MARK.match(line):
        line = line[mark.end() :]
    if line_end >= 0 and text.startswith("\n\n|", line_end):
        return False  # the caption of a table
    if _LEADING_NAME.match(line):
        return True
    is_alone = line_end < 0 or text.startswith("\n\n", line_end)
    return is_alone and 0 < len(line) <= _MAX_NAME_LINE and not line.endswith((".", ":", ",", ";"))


def _find_paragraphs(text: str, starts: Sequence[Place], entries: Sequence[NamedText]) -> list[NamedText]:
    """Return the entries that begin at these places. Each ends where the next one begins.

    A single one is no series: it ends at the next entry of another kind, so that it does not contain all of these.
    """
    entry_starts = [entry.start for entry in entries]
    found: list[tuple[int, list[NamedEntry]]] = []
    for place in starts:
        line = text.rfind("\n", 0, place.start) + 1
        before = bisect_left(entry_starts, line + 1)
        if before and line < entries[before - 1].end:
            continue
        leading = _LEADING_NAME.match(text, place.start)
        name = plain_text(leading[2] or leading[4]) if leading else term_name(text, place.start)
        if not name:
            continue
        entry = NamedEntry(name[:MAX_NAME_LENGTH], place.anchor)
        if found and found[-1][0] == line:
            found[-1][1].append(entry)
        else:
            found.append((line, [entry]))
    if not found:
        return []
    ends = [start for start, _ in found[1:]] + [len(text)]
    if len(found) == 1:
        following = bisect_left(entry_starts, found[0][0])
        ends = [entry_starts[following]] if following < len(entry_starts) else ends
    return [NamedText(start, end, tuple(names)) for (start, names), end in zip(found, ends, strict=True)]
