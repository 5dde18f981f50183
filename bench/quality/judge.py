"""Judge hits, and score lists of hits.

A hit is right when it is the section of the label, on its page. An anchor inside a section means that section. A
heading that only repeats the name of the definition below it (Sphinx: ``filter()`` above ``filter(*args, **kwargs)``)
is the same place.
"""

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import apsw
from selectolax.lexbor import LexborHTMLParser

from bench.quality.labels import Label

DEPTH = 10


@dataclass(frozen=True)
class JudgedHit:
    """A hit to be judged."""

    page: str  # below the manual's root
    anchor: str | None
    text: str
    also: tuple[str, ...] = ()  # pages with the same text, as listed by the hit


class Judge:
    """The sections of a manual, against which hits are judged."""

    def __init__(self, kept: Path, root: Path) -> None:
        self._root = root
        self._headings: Mapping[str, dict[str, tuple[str, str | None, str]]] = _sections(kept, root)

    def score(self, label: Label, hits: Sequence[JudgedHit], *, pages: bool = False) -> "Score":
        """Return the scores of the first ten hits. ``pages``: the right page is enough."""
        places = [self._accepted(place) for place in sorted(label.places)]
        left = list(places)
        gains = []
        for hit in hits[:DEPTH]:
            met = [place for place in left if place.has(hit, pages=pages)]
            left = [place for place in left if place not in met]
            gains.append(1 if met else 0)
        best = sum(1 / math.log2(2 + at) for at in range(min(DEPTH, len(places))))
        return Score(
            first=next((at for at, gain in enumerate(gains, 1) if gain), None),
            ndcg=sum(gain / math.log2(2 + at) for at, gain in enumerate(gains)) / best,
        )

    @cache  # noqa: B019
    def _accepted(self, place: str) -> "_Place":
        page, _, anchor = place.partition("#")
        if anchor.startswith("#"):
            return _Place(page, frozenset(), anchor[1:])
        known = self._headings.get(page, {})
        if not anchor:
            return _Place(page, frozenset([None]))
        if anchor not in known:
            anchor = self._around(page, anchor, known)
        accepted: set[str | None] = {anchor}
        name, above, above_name = known.get(anchor, ("", None, ""))
        if above is not None and name and name == above_name:
            accepted.add(above)
        return _Place(page, frozenset(accepted))

    def _around(self, page: str, anchor: str, known: Mapping[str, object]) -> str:
        section = anchor
        for node in LexborHTMLParser((self._root / page).read_text("utf-8")).css("[id]"):
            id = node.attributes.get("id") or ""
            if id == anchor:
                return section
            if id in known:
                section = id
        return anchor


@dataclass(frozen=True)
class _Place:
    page: str
    anchors: frozenset[str | None]
    term: str = ""

    def has(self, hit: JudgedHit, *, pages: bool) -> bool:
        if self.term and self.page in hit.also:
            return self._defines(hit.text)
        if hit.page != self.page or pages:
            return hit.page == self.page
        return self._defines(hit.text) if self.term else hit.anchor in self.anchors

    def _defines(self, text: str) -> bool:
        return f"**{self.term.lower()}**" in map(str.strip, text.lower().splitlines())


@dataclass(frozen=True)
class Score:
    first: int | None
    ndcg: float


def summary(scores: Sequence[Score]) -> dict[str, float]:
    """Return the figures of a run."""

    def mean(values: Sequence[float]) -> float:
        return sum(values) / max(1, len(values))

    return {
        "hit@1": mean([float(one.first == 1) for one in scores]),
        "hit@5": mean([float(one.first is not None and one.first <= 5) for one in scores]),
        "MRR@10": mean([1 / one.first if one.first else 0.0 for one in scores]),
        "nDCG@10": mean([one.ndcg for one in scores]),
    }


def _sections(kept: Path, root: Path) -> Mapping[str, dict[str, tuple[str, str | None, str]]]:
    """Return by page and anchor: its name, and the anchor and the name of its parent section."""
    found: dict[str, dict[str, tuple[str, str | None, str]]] = defaultdict(dict)
    rows = apsw.Connection(str(kept), flags=apsw.SQLITE_OPEN_READONLY).execute(
        "SELECT v.url, s.anchor, s.heading, above.anchor, above.heading"
        " FROM versions v JOIN sections s USING (content_id)"
        " LEFT JOIN sections above ON above.id = s.parent_section_id WHERE s.anchor IS NOT NULL"
    )
    for url, anchor, heading, above, above_heading in rows:
        page = str(url).removeprefix(root.as_uri() + "/")
        found[page].setdefault(str(anchor), (_name(heading), above, _name(above_heading)))
    return found


def _name(heading: object) -> str:
    match = re.match(r"(?:(?:class|exception|classmethod|staticmethod|property) )?\W*([\w.]+)", str(heading or ""))
    return match[1].rpartition(".")[2] if match else ""
