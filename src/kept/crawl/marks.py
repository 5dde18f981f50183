"""What a crawl saw of what its base shows, read from the frontier: marks for the sweep, and moves."""

from dataclasses import field

from kept.crawl.identity import Moving, end_of_redirects
from kept.crawl.sweep import Crawl, Seen
from kept.model.frontier import Outcome
from kept.model.generation import Generation
from kept.model.job import CrawlJob
from kept.model.nouns import dataclass
from kept.store import documents, frontier
from kept.store.database import Connection
from kept.store.frontier import Exceptional


@dataclass(frozen=True, slots=True, kw_only=True)
class Relabel:
    """What the ledger says of a URL once identities are settled."""

    url: str
    outcome: Outcome
    reason: str
    document: str | None


@dataclass(slots=True)
class Marks:
    """What the crawl saw, sorted."""

    seen: list[Seen] = field(default_factory=list)
    moving: list[Moving] = field(default_factory=list)
    merged: set[str] = field(default_factory=set)
    relabels: list[Relabel] = field(default_factory=list)
    shown: dict[str, Exceptional] = field(default_factory=dict)  # by document


async def marks_of(db: Connection, generation: Generation, job: CrawlJob, crawl: Crawl) -> Marks:
    marks = Marks()
    exceptions = await frontier.exceptions(db, job.id)
    redirects = {one.url: one.redirect_to for one in exceptions if one.redirect_to}
    for one in exceptions:
        if one.document is None or one.lifecycle is None:
            continue  # a redirect from a URL that is no document
        marks.shown[one.document] = one
        if one.outcome is Outcome.MOVED:
            await _follow(db, job, one, end_of_redirects(one.url, redirects), marks)
        else:
            marks.seen.append(seen_as(one, one.outcome, one.reason))
    if crawl.sweeps and not crawl.lists_everything:
        for one in await frontier.unreached(db, job.id):
            assert one.document is not None, "an unreached document is a document"
            marks.shown[one.document] = one
            marks.seen.append(seen_as(one, one.outcome, None))
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


async def _follow(db: Connection, job: CrawlJob, one: Exceptional, end: str | None, marks: Marks) -> None:
    """A document's URL redirects permanently: it moved there, or shares the fate of what is there."""
    assert one.document is not None, "only documents move"
    target = await frontier.entry(db, job.id, end) if end else None
    outcome = Outcome(target["outcome"]) if target and target["outcome"] else None
    if end is None:
        seen = seen_as(one, Outcome.FAILED, f"{one.reason}, and from there in a circle")
    elif target is None and job.lists_everything:
        seen = seen_as(one, Outcome.SKIPPED, f"{one.reason}, which is no part of the source")
    elif target is None or outcome is None or target["visited_at"] is None:
        seen = seen_as(one, Outcome.FAILED, f"redirects to {end}, which was not visited")
    elif outcome is Outcome.NEW:
        marks.moving.append(Moving(document=one.document, url=one.url, depth=one.depth, end=end))
        return
    elif outcome is not Outcome.GONE and target["version_id"] is not None:
        marks.merged.add(one.document)
        seen = seen_as(one, Outcome.GONE, f"redirects to {end}")
    else:
        seen = seen_as(one, outcome, f"redirects to {end}: {target['reason']}", by_settings=bool(target["by_settings"]))
    marks.seen.append(seen)
    marks.relabels.append(relabelled(seen, one.url))


def seen_as(one: Exceptional, outcome: Outcome, reason: str | None, *, by_settings: bool | None = None) -> Seen:
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


def relabelled(seen: Seen, url: str) -> Relabel:
    assert seen.outcome is not None, "a relabelled URL was visited"
    return Relabel(url=url, outcome=seen.outcome, reason=seen.reason or "", document=seen.document)
