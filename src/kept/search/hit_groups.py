"""One place, one hit: what says the same is shown once, and names the others."""

import re
from collections.abc import Iterable, Iterator

from kept.model.tokens import parse_symbol
from kept.search.versions import version_key
from kept.store.database import Row

_HEADING = re.compile(r"\A#{1,6} [^\n]*\n")
_MIN_DUPLICATE_CHARACTERS = 60  # characters: two shorter texts may be equal by chance
_HEADING_MARKUP_CHARACTERS = 8  # a heading line is that much longer than its heading


class HitGroup:
    """A section, and where else it is."""

    __slots__ = ("also", "row", "score")

    def __init__(self, score: float, row: Row) -> None:
        self.score = score
        self.row = row
        self.also: list[Row] = []


def group_hits(ranked: Iterable[tuple[float, Row]]) -> list[HitGroup]:
    """Groups, best first: parts of one section, equal texts, and one page in several versions, the newest in front.

    A heading with nothing below it gives way to the section that it announces.
    """
    ranked = list(ranked)
    told = {(row["document_id"], parse_symbol(row["heading"])) for _, row in ranked if not _is_heading_only(row)}
    groups: list[HitGroup] = []
    known: dict[object, HitGroup] = {}
    for score, row in ranked:
        if _is_heading_only(row) and (row["document_id"], parse_symbol(row["heading"])) in told:
            continue
        keys = list(_duplicate_keys(row))
        group = next((known[key] for key in keys if key in known), None)
        if group is None:
            group = HitGroup(score, row)
            groups.append(group)
        elif row["document_id"] != group.row["document_id"]:
            _add_duplicate(group, row)
        for key in keys:
            known.setdefault(key, group)
    return groups


def _duplicate_keys(row: Row) -> Iterator[object]:
    if row["anchor"]:
        yield row["document_id"], row["anchor"]
    yield row["source_name"], row["url"].removeprefix(row["root"]), row["anchor"], row["headings"]
    body = _HEADING.sub("", row["text"]).strip()
    if len(body) > _MIN_DUPLICATE_CHARACTERS:
        yield body


def _add_duplicate(group: HitGroup, row: Row) -> None:
    if _is_preferred(row, group.row):
        group.row, row = row, group.row
    if row["document_id"] not in {other["document_id"] for other in group.also}:
        group.also.append(row)


def _is_preferred(row: Row, other: Row) -> bool:
    """A newer version of the same; of equal texts, the one nearer to the top of its page, which is about it."""
    if row["source_name"] != other["source_name"]:
        return False
    if row["source_version"] != other["source_version"]:
        return version_key(row["source_version"]) > version_key(other["source_version"])
    return bool(row["position"] < other["position"])


def _is_heading_only(row: Row) -> bool:
    return len(row["text"]) <= len(row["heading"]) + _HEADING_MARKUP_CHARACTERS
