"""The ledger: the result of every URL in the last crawls, and why a page is missing."""

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
    """Return the result of a URL in the last crawls: one entry for each source, the latest first.

    Raises NotFound, with the reason, where no crawl has found it; ``why_excluded`` tells what settings exclude.
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
    """Return the URLs that the last crawl of a source did not keep, by reason, with some examples of each."""
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
    """List the entries of a crawl by URL; only those of an outcome, or the ``open`` ones, if one is named."""
    if outcome is not None and outcome not in (*Outcome, "open"):
        raise InvalidInput(f"There is no outcome '{outcome}'. A URL is {', '.join(Outcome)}, or open.")
    async with db.snapshot() as snapshot:
        return await frontier.list_entries(snapshot, job, outcome=outcome, after=after, limit=limit)


async def is_source_label(db: ReadableDatabase, what: str) -> bool:
    """Return whether this is the label of a source."""
    async with db.snapshot() as snapshot:
        return any(source.label == what for source in await sources.all(snapshot))


async def _explain_absence(db: Connection, url: str, why_excluded: ExclusionCheck) -> str:
    """Explain why no crawl has found a URL."""
    reasons = []
    for source in await sources.all(db):
        reason = why_excluded(source, url)
        if reason is None:
            reasons.append(await _explain_unvisited(db, source, url))
        elif _is_related(source, url):
            reasons.append(f"{source.label} does not have {url}: {reason}.")
    return " ".join(reasons) or f"{url} belongs to no source. 'kept add' keeps one, 'kept list' shows those there are."


async def _explain_unvisited(db: Connection, source: Source, url: str) -> str:
    job = await jobs.last(db, source.id)
    if source.active_generation is None:
        return f"{source.label} would have {url}, but its first crawl is not finished."
    limit = " A limit of the source was reached before." if job and job.limited else ""
    return f"{source.label} would have {url}, but nothing that its last crawl read leads there.{limit}"


def _is_related(source: Source, url: str) -> bool:
    """Return whether a URL could be expected in a source: it is on the same host, or below the same folder."""
    if url.startswith("file:"):
        return url.startswith(source.root)
    return urlsplit(url).hostname in {urlsplit(page).hostname for page in (source.root, *source.settings.scope.pages)}
