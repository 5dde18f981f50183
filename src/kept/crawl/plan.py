"""What activating a generation would do: read from its frontier, decided by ``identity`` and ``sweep``.

Nothing is written here. The same plan is carried out by activation, held back by the brake, and shown to the
person who reviews a held generation. Its cost follows the exceptions of the crawl, not the number of documents.
"""

from collections import Counter
from collections.abc import Set
from dataclasses import field, replace
from datetime import datetime

from kept.crawl.arrivals import adopt_namesakes, arrivals_for, sought_in
from kept.crawl.identity import Adoption, Moving, Shown, adopt, duplicates, rendered
from kept.crawl.marks import Marks, Relabel, marks_of, relabelled, seen_as
from kept.crawl.sweep import Crawl, Fate, Rules, brake, fate
from kept.model.document import Lifecycle
from kept.model.frontier import Outcome
from kept.model.generation import Generation, Tally
from kept.model.job import CrawlJob, CrawlMode
from kept.model.nouns import dataclass
from kept.store import documents, frontier, generations
from kept.store.database import Connection
from kept.store.frontier import Exceptional


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """A new page that repeats another: it was never seen, and will not be."""

    url: str
    version_id: int
    document: str
    stays: str  # the URL of the one that it repeats


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    dropped: list[Dropped] = field(default_factory=list)
    adoptions: list[Adoption] = field(default_factory=list)
    fates: list[Fate] = field(default_factory=list)
    relabels: list[Relabel] = field(default_factory=list)
    tally: Tally = Tally()
    moved: int = 0  # documents that the base shows elsewhere
    hold: str | None = None  # why a person should look first

    @property
    def ended(self) -> list[str]:
        return [one.document for one in self.fates if one.ends]


async def plan(
    db: Connection, generation: Generation, base: Generation | None, job: CrawlJob, rules: Rules, now: datetime
) -> Plan:
    """What activating this generation would do."""
    if base is None:  # nothing can be lost, moved or restored; a million documents cost nothing here
        dropped = await _drop(db, generation, job, Marks(), frozenset())
        relabels = [*map(_dropped, dropped)]
        return Plan(dropped=dropped, relabels=relabels, tally=_tally(job.progress.tally, relabels, {}, [], dropped))
    crawl = Crawl(
        lists_everything=job.lists_everything,
        sweeps=job.mode.is_whole and not job.limited and not job.unlisted,
        settings_changed=generation.settings.scope != base.settings.scope
        or generation.settings.limits != base.settings.limits,
        verified_before=await generations.last_verified(db, generation.source_id),
        now=now,
        quick=job.mode is CrawlMode.QUICK,
    )
    marks = await marks_of(db, generation, job, crawl)
    fates = {seen.document: one for seen in marks.seen if (one := fate(seen, crawl, rules))}
    ending = {one.document for one in fates.values() if one.ends} | {move.document for move in marks.moving}
    dropped = await _drop(db, generation, job, marks, ending)
    sought = sought_in(marks, fates)
    arrivals, former = await arrivals_for(db, generation, sought, marks.moving)
    repeating = {one.document for one in dropped}
    arrivals = [one for one in arrivals if one.document not in repeating]
    adoptions = adopt(arrivals, marks.moving, [*sought, *former])
    if crawl.lists_everything:  # elsewhere a name says nothing
        adoptions += await adopt_namesakes(db, generation, sought, adoptions, repeating)
    fates |= _merge(marks, {adoption.document for adoption in adoptions}, crawl, rules)
    for adoption in adoptions:
        fates[adoption.document] = Fate(document=adoption.document, lifecycle=Lifecycle.ACTIVE)
    relabels = [*marks.relabels, *map(_dropped, dropped)]
    relabels += [one for adoption in adoptions for one in _adopted(adoption, marks.shown)]
    return Plan(
        dropped=dropped,
        adoptions=adoptions,
        fates=list(fates.values()),
        relabels=relabels,
        tally=_tally(job.progress.tally, relabels, marks.shown, adoptions, dropped),
        moved=sum(adoption.document in marks.shown for adoption in adoptions),
        hold=brake(fates.values(), shown=base.documents, rules=rules),
    )


def _merge(marks: Marks, adopted: Set[str], crawl: Crawl, rules: Rules) -> dict[str, Fate]:
    """The documents that moved to where another is now: they end."""
    fates = {}
    for move in marks.moving:
        if move.document in adopted:
            continue
        here = marks.shown[move.document]
        redirects = here.outcome is Outcome.MOVED
        seen = seen_as(here, Outcome.GONE, f"{'redirects to' if redirects else 'a duplicate of'} {move.end}")
        merged = fate(seen, crawl, rules)
        assert merged is not None, "what is gone has a fate"
        fates[move.document] = merged
        label = relabelled(seen, here.url)
        marks.relabels.append(label if redirects else replace(label, outcome=Outcome.SKIPPED))
    return fates


async def _drop(db: Connection, generation: Generation, job: CrawlJob, marks: Marks, ending: Set[str]) -> list[Dropped]:
    """The new pages that repeat another. A document that does so moves there, as if it redirected."""
    named = await frontier.with_canonical(db, job.id, source=generation.source_id, generation=generation.number)
    pages = [
        (Shown(url=one.url, content_id=row["content_now"], is_html=_is_html(row["content_type"])), row["canonical"])
        for one, row in named
    ]
    urls = sorted({url for page, to in pages for url in ((to,) if page.is_html else rendered(to))})
    living = await documents.living_at(db, generation.source_id, urls, generation=generation.number)
    shown = {
        row["url"]: Shown(url=row["url"], content_id=row["content_id"], is_html=_is_html(row["content_type"]))
        for row in living
        if row["document_id"] not in ending
    }
    stays = duplicates(pages, shown)
    marks.moving[:] = [replace(move, end=stays.get(move.end, move.end)) for move in marks.moving]
    dropped = []
    for one, row in named:
        assert one.document is not None, "a page that was kept is a document"
        if one.url not in stays:
            continue
        if one.outcome is Outcome.NEW:
            dropped.append(
                Dropped(url=one.url, version_id=row["version_id"], document=one.document, stays=stays[one.url])
            )
        else:
            marks.shown[one.document] = one
            marks.moving.append(Moving(document=one.document, url=one.url, depth=one.depth, end=stays[one.url]))
    return dropped


def _is_html(content_type: str) -> bool:
    return "html" in content_type


def _dropped(one: Dropped) -> Relabel:
    return Relabel(url=one.url, outcome=Outcome.SKIPPED, reason=f"a duplicate of {one.stays}", document=None)


def _adopted(adoption: Adoption, shown: dict[str, Exceptional]) -> list[Relabel]:
    """Both ends of a move say so; a document restored where it was is new again."""
    arrival, document = adoption.arrival, adoption.document
    if adoption.from_url == arrival.url:
        return [Relabel(url=arrival.url, outcome=Outcome.NEW, reason="it is back", document=document)]
    here = Relabel(url=arrival.url, outcome=Outcome.MOVED, reason=f"moved from {adoption.from_url}", document=document)
    there = Relabel(url=adoption.from_url, outcome=Outcome.MOVED, reason=f"moved to {arrival.url}", document=document)
    return [here, there] if document in shown else [here]


def _tally(
    tally: Tally,
    relabels: list[Relabel],
    shown: dict[str, Exceptional],
    adoptions: list[Adoption],
    dropped: list[Dropped],
) -> Tally:
    """A URL counts under its last label; a move counts once, not at both of its ends."""
    counts = Counter(tally.as_json())
    before = {one.url: one.outcome for one in shown.values()}
    before |= dict.fromkeys([*(one.arrival.url for one in adoptions), *(one.url for one in dropped)], Outcome.NEW)
    for relabel in relabels:  # in turn: what redirects to nothing may then be found elsewhere by its content
        counts[before[relabel.url]] -= 1
        counts[relabel.outcome] += 1
        before[relabel.url] = relabel.outcome
    counts[Outcome.MOVED] -= sum(
        adoption.document in shown and adoption.from_url != adoption.arrival.url for adoption in adoptions
    )
    return Tally(**counts)
