"""The text at a place of a page: at an id, a heading or a named entry."""

import difflib
from collections.abc import Sequence

from kept.errors import NotFound
from kept.model.document import Place, ShownVersion
from kept.model.tokens import parse_symbol
from kept.store import contents, sections
from kept.store.database import Connection

MAX_SUGGESTIONS = 5


async def read_place(db: Connection, version: ShownVersion, anchor: str) -> str:
    """Return the text that an anchor of a page, or the name of an entry, stands for. Raises NotFound.

    It begins with that very line: of a heading, a row, a term, or a paragraph that the anchor is in.
    """
    places = await contents.get_places(db, version.content_id)
    if not places:
        return await _read_section(db, version, anchor)
    place = find_place(places, anchor) or _find_heading(places, version.markdown, anchor)
    if place is None:
        raise NotFound(_describe_missing(version.url, anchor, [*places]))
    markdown = version.markdown
    start = markdown.rfind("\n", 0, place.start) + 1
    return markdown[start : max(place.end, _line_end(markdown, place.start))].strip("\n")


def find_place(places: Sequence[Place], anchor: str) -> Place | None:
    """Return the place with this anchor, however it is capitalised, or else the first entry with this name."""
    exact = next((place for place in places if place.anchor == anchor), None)
    if exact:
        return exact
    folded, symbol = anchor.casefold(), parse_symbol(anchor)
    tests = (
        lambda place: place.anchor.casefold() == folded,
        lambda place: place.name == anchor,
        lambda place: place.name.casefold() == folded,
        lambda place: bool(symbol) and bool(place.name) and parse_symbol(place.name) == symbol,
    )
    for test in tests:
        if found := next(filter(test, places), None):
            return found
    return None


def _find_heading(places: Sequence[Place], markdown: str, name: str) -> Place | None:
    """Return the first heading that has this name as a word: `(5) SQLITE_BUSY`."""
    for place in places:
        if markdown.startswith("#", place.start):
            heading = markdown[place.start : _line_end(markdown, place.start)].replace("\\", "").replace("`", "")
            if name in heading.split():
                return place
    return None


def _line_end(markdown: str, start: int) -> int:
    end = markdown.find("\n", start)
    return end if end >= 0 else len(markdown)


async def _read_section(db: Connection, version: ShownVersion, anchor: str) -> str:
    """Return the text of a section with everything below it, of a page that was read before there were places."""
    found = await sections.of_content(db, version.content_id)
    first = next((at for at, section in enumerate(found) if section.anchor == anchor), None)
    if first is None:
        known = [Place(section.anchor) for section in found if section.anchor]
        raise NotFound(_describe_missing(version.url, anchor, known))
    level = found[first].level
    parts = [found[first].text]
    for section in found[first + 1 :]:
        if section.level <= level and section.anchor != anchor:
            break
        parts.append(section.text)
    return "\n\n".join(part.strip("\n") for part in parts)


def _describe_missing(url: str, anchor: str, places: Sequence[Place]) -> str:
    """Say that a page has no such place, and which are closest."""
    known = dict.fromkeys([*[place.anchor for place in places], *[place.name for place in places]])
    known.pop("", None)
    if not known:
        return f"{url} has no section '{anchor}', nor any other that has a name."
    if len(known) <= 2 * MAX_SUGGESTIONS:
        return f"{url} has no section '{anchor}'. It has: {', '.join(known)}."
    close = difflib.get_close_matches(anchor, known, n=MAX_SUGGESTIONS, cutoff=0.5)
    contained = [name for name in known if anchor.casefold() in name.casefold()]
    shown = list(dict.fromkeys([*close, *contained]))[:MAX_SUGGESTIONS] or list(known)[:MAX_SUGGESTIONS]
    return f"{url} has no section '{anchor}'. The closest are: {', '.join(shown)}."
