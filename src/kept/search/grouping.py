"""One place, one hit: what says the same is shown once, and names the others."""

import re
from collections.abc import Iterable, Iterator

from kept.model.words import name
from kept.search.versions import order
from kept.store.database import Row

_HEADING = re.compile(r"\A#{1,6} [^\n]*\n")
_TELLING = 60  # characters: two shorter texts may be equal by chance
_BARE = 8  # a heading line is that much longer than its heading


class Group:
    """A section, and where else it is."""

    __slots__ = ("also", "row", "score")

    def __init__(self, score: float, row: Row) -> None:
        self.score = score
        self.row = row
        self.also: list[Row] = []


def grouped(ranked: Iterable[tuple[float, Row]]) -> list[Group]:
    """Groups, best first: parts of one section, equal texts, and one page in several versions, the newest in front.

    A heading with nothing below it gives way to the section that it announces.
    """
    ranked = list(ranked)
    told = {(row["document_id"], name(row["heading"])) for _, row in ranked if not _is_bare(row)}
    groups: list[Group] = []
    known: dict[object, Group] = {}
    for score, row in ranked:
        if _is_bare(row) and (row["document_id"], name(row["heading"])) in told:
            continue
        keys = list(_keys(row))
        group = next((known[key] for key in keys if key in known), None)
        if group is None:
            group = Group(score, row)
            groups.append(group)
        elif row["document_id"] != group.row["document_id"]:
            _join(group, row)
        for key in keys:
            known.setdefault(key, group)
    return groups


def _keys(row: Row) -> Iterator[object]:
    if row["anchor"]:
        yield row["document_id"], row["anchor"]
    yield row["source_name"], row["url"].removeprefix(row["root"]), row["anchor"], row["headings"]
    body = _HEADING.sub("", row["text"]).strip()
    if len(body) > _TELLING:
        yield body


def _join(group: Group, row: Row) -> None:
    if _precedes(row, group.row):
        group.row, row = row, group.row
    if row["document_id"] not in {other["document_id"] for other in group.also}:
        group.also.append(row)


def _precedes(row: Row, other: Row) -> bool:
    """A newer version of the same; of equal texts, the one nearer to the top of its page, which is about it."""
    if row["source_name"] != other["source_name"]:
        return False
    if row["source_version"] != other["source_version"]:
        return order(row["source_version"]) > order(other["source_version"])
    return bool(row["position"] < other["position"])


def _is_bare(row: Row) -> bool:
    return len(row["text"]) <= len(row["heading"]) + _BARE
