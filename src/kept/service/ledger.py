"""The ledger: what the last crawl made of a URL, and why a page is not here."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

from kept.errors import InvalidInput, NotFound
from kept.model.frontier import LedgerEntry, NotKeptReason, Outcome
from kept.model.source import Source
from kept.service.lookup import find_source, to_canonical_url
from kept.store import frontier, jobs, sources
from kept.store.database import Connection, ReadableDatabase

ExclusionCheck = Callable[[Source, str], str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerSummary:
    """The URLs that the last crawl of a source did not keep."""

    source: str
    job: str
    crawled_at: datetime
    reasons: list[NotKeptReason]


async def explain_url(db: ReadableDatabase, what: str, why_excluded: ExclusionCheck) -> list[LedgerEntry]:
    """What the last crawls made of a URL: one account for each source that knows it, the latest first.

    ``why_not`` says why a URL is none of a source. NoSuchThing, with the reason, where no crawl has met it.
    """
    url = to_canonical_url(what.partition("#")[0])
    if url is None:
        raise NotFound(f"{what} is neither a source nor the URL of a page.")
    async with db.snapshot() as snapshot:
        found = [*await frontier.ledger_entries(snapshot, url), *await frontier.unchanged_without_entry(snapshot, url)]
        entries: dict[str, LedgerEntry] = {}
        for source, entry in sorted(found, key=lambda one: one[1].outcome is None):  # crawls under way come last
            entries.setdefault(source, entry)
        if not entries:
            raise NotFound(await _explain_absence(snapshot, url, why_excluded))
    return list(entries.values())


async def summarize_not_kept(db: ReadableDatabase, label: str, *, examples: int) -> LedgerSummary:
    """Every URL that the last crawl of a source did not keep, by reason, with some examples of each."""
    async with db.snapshot() as snapshot:
        source = await find_source(snapshot, label)
        job = await jobs.last_full_crawl(snapshot, source.id) or await jobs.last(snapshot, source.id)
        if job is None:
            raise NotFound(f"{source.label} has not been crawled yet. 'kept refresh {source.label}' does it.")
        reasons = await frontier.not_kept(snapshot, job.id, limit=examples)
    return LedgerSummary(source=source.label, job=job.id, crawled_at=job.created_at, reasons=reasons)


async def list_entries(
    db: ReadableDatabase, job: str, *, outcome: str | None = None, after: str = "", limit: int = 100
) -> list[LedgerEntry]:
    """A page of what a crawl made of every URL it met, by URL; only of one outcome, or what is ``open``, if named."""
    if outcome is not None and outcome not in (*Outcome, "open"):
        raise InvalidInput(f"There is no outcome '{outcome}'. A URL is {', '.join(Outcome)}, or open.")
    async with db.snapshot() as snapshot:
        return await frontier.list_entries(snapshot, job, outcome=outcome, after=after, limit=limit)


async def is_source_label(db: ReadableDatabase, what: str) -> bool:
    """Whether this is the label of a source."""
    async with db.snapshot() as snapshot:
        return any(source.label == what for source in await sources.all(snapshot))


async def _explain_absence(db: Connection, url: str, why_excluded: ExclusionCheck) -> str:
    """Why no crawl has met a URL."""
    told = []
    for source in await sources.all(db):
        reason = why_excluded(source, url)
        if reason is None:
            told.append(await _explain_unvisited(db, source, url))
        elif _is_related(source, url):
            told.append(f"{source.label} does not have {url}: {reason}.")
    return " ".join(told) or f"{url} belongs to no source. 'kept add' keeps one, 'kept list' shows those there are."


async def _explain_unvisited(db: Connection, source: Source, url: str) -> str:
    job = await jobs.last(db, source.id)
    if source.active_generation is None:
        return f"{source.label} would have {url}, but its first crawl is not finished."
    limit = " A limit of the source was reached before." if job and job.limited else ""
    return f"{source.label} would have {url}, but nothing that its last crawl read leads there.{limit}"


def _is_related(source: Source, url: str) -> bool:
    """Whether somebody could expect the URL there: it is on the same host, or below the same folder."""
    if url.startswith("file:"):
        return url.startswith(source.root)
    return urlsplit(url).hostname in {urlsplit(page).hostname for page in (source.root, *source.settings.scope.pages)}
