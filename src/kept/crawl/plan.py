"""What activating a generation would do: read from its frontier, decided by ``identity`` and ``sweep``.

Nothing is written here. The same plan is carried out by activation, held back by the brake, and shown to the
person who reviews a held generation. Its cost follows the exceptions of the crawl, not the number of documents.
"""

from collections import Counter
from collections.abc import Set
from dataclasses import dataclass, field, replace
from datetime import datetime

from kept.crawl.identity import (
    LIKENESSES,
    Adoption,
    Arrival,
    Former,
    Moving,
    Shown,
    Similar,
    Tier,
    adopt,
    duplicates,
    end_of_redirects,
    is_similar,
    rendered,
)
from kept.crawl.sweep import Crawl, Fate, Rules, Seen, brake, fate
from kept.model.document import Lifecycle
from kept.model.frontier import Outcome
from kept.model.generation import Generation, Tally
from kept.model.job import CrawlJob, CrawlMode
from kept.store import contents, documents, frontier, generations
from kept.store.database import Connection, Row
from kept.store.frontier import Exceptional


@dataclass(frozen=True, slots=True, kw_only=True)
class Relabel:
    """What the ledger says of a URL once identities are settled."""

    url: str
    outcome: Outcome
    reason: str
    document: str | None


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
        dropped = await _drop(db, generation, job, _Marks(), frozenset())
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
    marks = await _marks(db, generation, job, crawl)
    fates = {seen.document: one for seen in marks.seen if (one := fate(seen, crawl, rules))}
    ending = {one.document for one in fates.values() if one.ends} | {move.document for move in marks.moving}
    dropped = await _drop(db, generation, job, marks, ending)
    sought = _sought(marks, fates)
    arrivals, former = await _arrivals(db, generation, sought, marks.moving)
    repeating = {one.document for one in dropped}
    arrivals = [one for one in arrivals if one.document not in repeating]
    similar = None
    if crawl.lists_everything:
        arrivals, similar = await _likenesses(db, generation, sought, arrivals, repeating)
    adoptions = adopt(arrivals, marks.moving, [*sought, *former], similar)

    adopted = {adoption.document for adoption in adoptions}
    for move in marks.moving:
        if move.document not in adopted:  # another document has taken the place it moved to
            here = marks.shown[move.document]
            redirects = here.outcome is Outcome.MOVED
            seen = _seen(here, Outcome.GONE, f"{'redirects to' if redirects else 'a duplicate of'} {move.end}")
            merged = fate(seen, crawl, rules)
            assert merged is not None, "what is gone has a fate"
            fates[move.document] = merged
            label = _relabel(seen, here.url)
            marks.relabels.append(label if redirects else replace(label, outcome=Outcome.SKIPPED))
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


@dataclass(slots=True)
class _Marks:
    """What the crawl saw, sorted."""

    seen: list[Seen] = field(default_factory=list)
    moving: list[Moving] = field(default_factory=list)
    merged: set[str] = field(default_factory=set)
    relabels: list[Relabel] = field(default_factory=list)
    shown: dict[str, Exceptional] = field(default_factory=dict)  # by document


async def _marks(db: Connection, generation: Generation, job: CrawlJob, crawl: Crawl) -> _Marks:
    marks = _Marks()
    exceptions = await frontier.exceptions(db, job.id)
    redirects = {one.url: one.redirect_to for one in exceptions if one.redirect_to}
    for one in exceptions:
        if one.document is None or one.lifecycle is None:
            continue  # a redirect from a URL that is no document
        marks.shown[one.document] = one
        if one.outcome is Outcome.MOVED:
            await _follow(db, job, one, end_of_redirects(one.url, redirects), marks)
        else:
            marks.seen.append(_seen(one, one.outcome, one.reason))
    if crawl.sweeps and not crawl.lists_everything:
        for one in await frontier.unreached(db, job.id):
            assert one.document is not None, "an unreached document is a document"
            marks.shown[one.document] = one
            marks.seen.append(_seen(one, one.outcome, None))
    for document in await documents.exceptional(db, generation.source_id, job.id):
        if document.id not in marks.shown:
            marks.seen.append(
                Seen(
                    document=document.id,
                    shown=document.url is not None,
                    outcome=Outcome(document.outcome) if document.outcome else None,
                    reached=document.reached,
                    reason=document.reason,
                    lifecycle=document.lifecycle,
                    since=document.since,
                    missed_crawls=document.missed_crawls,
                    retry_count=document.retry_count,
                    verified_at=document.verified_at,
                )
            )
    return marks


async def _follow(db: Connection, job: CrawlJob, one: Exceptional, end: str | None, marks: _Marks) -> None:
    """A document's URL redirects permanently: it moved there, or shares the fate of what is there."""
    assert one.document is not None, "only documents move"
    target = await frontier.entry(db, job.id, end) if end else None
    outcome = Outcome(target["outcome"]) if target and target["outcome"] else None
    if end is None:
        seen = _seen(one, Outcome.FAILED, f"{one.reason}, and from there in a circle")
    elif target is None and job.lists_everything:
        seen = _seen(one, Outcome.SKIPPED, f"{one.reason}, which is no part of the source")
    elif target is None or outcome is None or target["visited_at"] is None:
        seen = _seen(one, Outcome.FAILED, f"redirects to {end}, which was not visited")
    elif outcome is Outcome.NEW:
        marks.moving.append(Moving(document=one.document, url=one.url, depth=one.depth, end=end))
        return
    elif outcome is not Outcome.GONE and target["version_id"] is not None:
        marks.merged.add(one.document)
        seen = _seen(one, Outcome.GONE, f"redirects to {end}")
    else:
        seen = _seen(one, outcome, f"redirects to {end}: {target['reason']}", by_settings=bool(target["by_settings"]))
    marks.seen.append(seen)
    marks.relabels.append(_relabel(seen, one.url))


async def _drop(
    db: Connection, generation: Generation, job: CrawlJob, marks: _Marks, ending: Set[str]
) -> list[Dropped]:
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
    stays = duplicates([(page, to) for page, to in pages], shown)
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


def _sought(marks: _Marks, fates: dict[str, Fate]) -> list[Former]:
    """Documents of the base whose content may be found elsewhere: the lost, and the missing that brought none."""
    skipped = {seen.document for seen in marks.seen if seen.outcome is Outcome.SKIPPED}
    sought = []
    for one in fates.values():
        missing = one.lifecycle is Lifecycle.MISSING and one.document in skipped
        if (one.lost or missing) and one.document not in marks.merged:
            was = marks.shown[one.document]
            assert was.content_id is not None, "what the base shows has a content"
            tier = Tier.LOST if one.lost else Tier.MISSING
            sought.append(Former(document=one.document, url=was.url, content_id=was.content_id, tier=tier))
    return sought


async def _arrivals(
    db: Connection, generation: Generation, sought: list[Former], moving: list[Moving]
) -> tuple[list[Arrival], list[Former]]:
    """What is new and may be a document that was there before, and those it may be that the base does not show."""
    source, number = generation.source_id, generation.number
    rows: list[Row] = []
    former: dict[str, Former] = {}
    for move in moving:
        row = await documents.arrival_at(db, source, number, move.end)
        rows += [row] if row else []
    for content_id in sorted({one.content_id for one in sought}):
        rows += await documents.arrivals_with_content(db, source, number, content_id)
    if await documents.has_former(db, source):
        for row in await documents.arrivals_like_former(db, source, number):
            rows.append(row)
            tier = Tier.MISSING if row["former_lifecycle"] == Lifecycle.MISSING else Tier.DELETED
            former[row["former_id"]] = Former(
                document=row["former_id"],
                url=row["former_url"],
                content_id=row["former_content_id"],
                tier=tier,
                born=row["former_born"],
            )
    arrivals = {row["version_id"]: _arrival(row) for row in rows}
    return list(arrivals.values()), list(former.values())


async def _likenesses(
    db: Connection, generation: Generation, sought: list[Former], arrivals: list[Arrival], repeating: Set[str]
) -> tuple[list[Arrival], Similar]:
    """With what has arrived under a name that a lost document had; and whether two of all these are similar."""
    wanted = {key(one.url) for one in sought if one.tier is Tier.LOST for key in LIKENESSES}
    found = {one.version_id: one for one in arrivals}
    for row in await documents.arrivals(db, generation.source_id, generation.number) if wanted else ():
        if row["document_id"] not in repeating and any(key(row["url"]) in wanted for key in LIKENESSES):
            found.setdefault(row["version_id"], _arrival(row))
    known = {key(one.url) for one in found.values() for key in LIKENESSES}
    compared = {one.content_id for one in found.values()}
    compared |= {one.content_id for one in sought if any(key(one.url) in known for key in LIKENESSES)}
    texts = {id: await contents.text(db, id) for id in sorted(compared)} if wanted else {}
    return list(found.values()), lambda one, other: is_similar(texts.get(one, ""), texts.get(other, ""))


def _arrival(row: Row) -> Arrival:
    return Arrival(
        version_id=row["version_id"],
        document=row["document_id"],
        url=row["url"],
        depth=row["depth"],
        content_id=row["content_id"],
        size=row["size"],
    )


def _seen(one: Exceptional, outcome: Outcome, reason: str | None, *, by_settings: bool | None = None) -> Seen:
    assert one.document is not None, "only documents have a fate"
    assert one.lifecycle is not None, "and documents have a lifecycle"
    return Seen(
        document=one.document,
        shown=True,
        outcome=outcome,
        reached=one.reached,
        reason=reason,
        by_settings=one.by_settings if by_settings is None else by_settings,
        lifecycle=one.lifecycle,
        since=one.since,
        missed_crawls=one.missed_crawls,
        retry_count=one.retry_count,
        verified_at=one.verified_at,
    )


def _dropped(one: Dropped) -> Relabel:
    return Relabel(url=one.url, outcome=Outcome.SKIPPED, reason=f"a duplicate of {one.stays}", document=None)


def _relabel(seen: Seen, url: str) -> Relabel:
    assert seen.outcome is not None, "a relabelled URL was visited"
    return Relabel(url=url, outcome=seen.outcome, reason=seen.reason or "", document=seen.document)


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
