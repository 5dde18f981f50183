"""Groups hits that say the same, so that each is shown once and lists the others."""

import re
import string
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from kept.model.section import SectionMatch
from kept.model.tokens import parse_symbol
from kept.search.versions import version_key

_HEADING = re.compile(r"\A#{1,6} [^\n]*\n")
_LINK_TARGET = re.compile(r"\]\([^)\n]*\)?")
_SIGNS = str.maketrans("", "", string.punctuation + string.whitespace)
_COMPARED_CHARACTERS = 400
MAX_OF_A_PAGE = 2
_MIN_DUPLICATE_CHARACTERS = 60  # two shorter texts may be equal by chance
_HEADING_MARKUP_CHARACTERS = 8  # how much longer a heading's line is than its text, at most


class HitGroup:
    """The section to show, and its duplicates in other documents."""

    __slots__ = ("also", "match", "score")

    def __init__(self, score: float, match: SectionMatch) -> None:
        self.score = score
        self.match = match
        self.also: list[SectionMatch] = []


def group_hits(ranked: Iterable[tuple[float, SectionMatch]]) -> list[HitGroup]:
    """Group parts of one section, equal texts, and one page in several versions, of which the newest is shown.

    The order of the ranking is kept. A section that is only a heading is left out if the section that it announces,
    with the same symbol in the same document, was found too.
    """
    ranked = list(ranked)
    explained = {(match.document_id, parse_symbol(match.heading)) for _, match in ranked if not _is_heading_only(match)}
    groups: list[HitGroup] = []
    by_key: dict[object, HitGroup] = {}
    for score, match in ranked:
        if _is_heading_only(match) and (match.document_id, parse_symbol(match.heading)) in explained:
            continue
        keys = list(_duplicate_keys(match))
        group = next((by_key[key] for key in keys if key in by_key), None)
        if group is None:
            group = HitGroup(score, match)
            groups.append(group)
        elif match.document_id != group.match.document_id:
            _add_duplicate(group, match)
        for key in keys:
            by_key.setdefault(key, group)
    return groups


def spread_pages(groups: Sequence[HitGroup]) -> list[HitGroup]:
    """Return the groups with at most two of a page before those of other pages."""
    first: list[HitGroup] = []
    rest: list[HitGroup] = []
    counts: Counter[str] = Counter()
    for group in groups:
        counts[group.match.document_id] += 1
        (first if counts[group.match.document_id] <= MAX_OF_A_PAGE else rest).append(group)
    return first + rest


def _duplicate_keys(match: SectionMatch) -> Iterator[object]:
    if match.anchor:
        yield match.document_id, match.anchor
    yield match.source_name, match.url.removeprefix(match.root), match.anchor, match.headings
    body = _HEADING.sub("", match.text).strip()
    if len(body) > _MIN_DUPLICATE_CHARACTERS:
        # Copies differ in their links, and in where a long section is cut.
        yield _LINK_TARGET.sub("", body[:_COMPARED_CHARACTERS]).translate(_SIGNS)


def _add_duplicate(group: HitGroup, match: SectionMatch) -> None:
    if _is_preferred(match, group.match):
        group.match, match = match, group.match
    if match.document_id not in {other.document_id for other in group.also}:
        group.also.append(match)


def _is_preferred(match: SectionMatch, other: SectionMatch) -> bool:
    """Prefer the newer version; of equal versions, the section nearer to the top of its page, which is about it."""
    if match.source_name != other.source_name:
        return False
    if match.source_version != other.source_version:
        return version_key(match.source_version) > version_key(other.source_version)
    return match.position < other.position


def _is_heading_only(match: SectionMatch) -> bool:
    return len(match.text) <= len(match.heading) + _HEADING_MARKUP_CHARACTERS
