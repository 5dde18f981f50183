"""The places of a page, once it is written: ids and names with their positions, and the terms of definition lists."""

from __future__ import annotations

from collections.abc import Sequence

from kept.extract.html.writer_state import HtmlPlace, HtmlSection
from kept.extract.named_entries import term_name
from kept.model.document import Place


def find_places(sections: Sequence[HtmlSection], places: Sequence[HtmlPlace], markdown: str) -> tuple[Place, ...]:
    """Return the places in the order of the page. Terms have their names, and the ends of their descriptions."""
    found: list[Place] = []
    open_terms: dict[int, list[tuple[str, int]]] = {}  # by definition list: terms whose description goes on
    for number, position in _positions(sections, len(markdown)):
        place = places[number]
        if place.definition_list is None:
            found.append(Place(place.anchor, position))
            continue
        terms = open_terms.setdefault(id(place.definition_list), [])
        if not place.shares_description:
            _close_terms(found, terms, markdown, position)
        if not place.is_end:
            terms.append((place.anchor, position))
    for terms in open_terms.values():
        _close_terms(found, terms, markdown, len(markdown))
    return tuple(sorted(found, key=_by_start))


def _by_start(place: Place) -> int:
    return place.start


def _positions(sections: Sequence[HtmlSection], length: int) -> list[tuple[int, int]]:
    """Return the numbers of the places and their positions in the page's Markdown."""
    found: list[tuple[int, int]] = []
    start = 0
    for section in sections:
        found += [(number, min(start + position, length)) for number, position in section.marks]
        if section.text:
            start += len(section.text) + 2
    return found


def _close_terms(found: list[Place], terms: list[tuple[str, int]], markdown: str, end: int) -> None:
    """Add the terms that share a description, which ends here. All of them begin where the first one does."""
    start = terms[0][1] if terms else 0
    for anchor, position in terms:
        name = term_name(markdown, position)
        if name:
            found.append(Place(anchor, start, end, name))
    terms.clear()
