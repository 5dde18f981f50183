"""The frontier of a job: rows in, nouns out."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, TypeAlias

from kept.model.document import Lifecycle, Validators, Version
from kept.model.frontier import Entry, Outcome
from kept.model.nouns import dataclass
from kept.store.database import Connection, Row, when, when_if
from kept.store.packing import pack_links, unpack_links


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewal:
    """What an unchanged page brought that its living version does not have yet. Activation carries it over."""

    validators: Validators
    raw_hash: str
    signature: str
    links: tuple[str, ...]
    canonical: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What becomes of an entry."""

    url: str
    outcome: Outcome
    reason: str | None = None
    status: int | None = None
    document: str | None = None
    by_settings: bool = False
    redirect_to: str | None = None
    renewal: Renewal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """An entry that is to be tried again."""

    url: str
    due_at: datetime
    reason: str
    status: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A URL that a reached entry names."""

    url: str
    depth: int
    parent: str | None = None
    document: str | None = None  # moves here by a redirect
    reached: bool = True
    wanted: bool = False  # also by a quick crawl that knows it


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedEntry:
    """What an origin that lists everything names; with an outcome, there is nothing to visit."""

    url: str
    version_id: int | None = None
    document: str | None = None
    depth: int = 0
    outcome: Outcome | None = None
    reason: str | None = None
    by_settings: bool = False
    redirect_to: str | None = None


HeldTag: TypeAlias = tuple[str, int, str | None]
"""URL, version id, the ETag if it is enough. A bare row: a refresh has one of every file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldUrl:
    """What the base shows at a URL, as far as a list needs it."""

    url: str
    version_id: int
    document: str
    depth: int = 0
    validators: Validators = Validators()
    signature: str = ""
    needs_entry: bool = False  # activation asks what the crawl saw of it, changed or not


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """Whether something is left to do."""

    entries: bool
    reached: bool  # some of them are reached
    due_at: datetime | None  # the first that nobody has leased; None: all are with somebody


@dataclass(frozen=True, slots=True, kw_only=True)
class Exceptional:
    """A document, or a redirect, that did not simply stay as it was."""

    url: str
    depth: int
    outcome: Outcome
    reason: str | None
    by_settings: bool
    redirect_to: str | None
    reached: bool
    document: str | None
    content_id: int | None
    lifecycle: Lifecycle | None
    since: datetime | None
    missed_crawls: int
    retry_count: int
    verified_at: datetime | None


async def seed_known(db: Connection, job: str, *, source: str, base: int) -> int:
    return await db.run("seed_known", job=job, source=source, base=base)


async def seed_failed(db: Connection, job: str, *, source: str, ledger: str) -> int:
    return await db.run("seed_failed", job=job, source=source, ledger=ledger)


async def seed_errors(db: Connection, job: str, *, source: str) -> int:
    return await db.run("seed_errors", job=job, source=source)


async def changed_before(db: Connection, source: str) -> list[tuple[ListedEntry, Row]]:
    """What is shown and was otherwise before; with how often it changed, and since when that is known."""
    return [
        (
            ListedEntry(url=row["url"], version_id=row["version_id"], document=row["document_id"], depth=row["depth"]),
            row,
        )
        for row in await db.all("pages_that_changed", source=source)
    ]


async def insert(db: Connection, job: str, found: Iterable[Found]) -> int:
    """How many of them the frontier did not have. Inserted in the order of their URLs: no deadlocks."""
    ordered = sorted(found, key=lambda entry: entry.url)
    return await db.run_many(
        "insert_entry",
        [
            {
                "job": job,
                "url": entry.url,
                "depth": entry.depth,
                "parent": entry.parent,
                "document": entry.document,
                "reached": entry.reached,
                "wanted": entry.wanted,
            }
            for entry in ordered
        ],
    )


async def reach(db: Connection, job: str, found: Iterable[Found]) -> int:
    """Marks what it has already: something leads there, or a document moves there. How many nothing had led to."""
    ordered = sorted(found, key=lambda entry: entry.url)
    reached = await db.run_many(
        "reach_entry", [{"job": job, "url": entry.url, "parent": entry.parent} for entry in ordered if entry.reached]
    )
    await db.run_many(
        "expect_entry",
        [{"job": job, "url": entry.url, "document": entry.document} for entry in ordered if entry.document],
    )
    return reached


async def lacks_some(db: Connection, job: str, urls: Sequence[str]) -> bool:
    """Whether one of these URLs is not in it."""
    return await db.one("lacks_entries", job=job, urls=list(urls)) is not None


async def insert_listed(db: Connection, job: str, entries: Sequence[ListedEntry], *, batch: int) -> int:
    return await db.run_many(
        "insert_listed_entry",
        [
            {
                "job": job,
                "url": entry.url,
                "depth": entry.depth,
                "version": entry.version_id,
                "document": entry.document,
                "outcome": entry.outcome,
                "reason": entry.reason,
                "by_settings": entry.by_settings,
                "redirect_to": entry.redirect_to,
                "batch": batch if entry.outcome else None,
            }
            for entry in entries
        ],
    )


async def urls(db: Connection, job: str) -> set[str]:
    return {row["url"] for row in await db.all("frontier_urls", job=job)}


async def held_tags(db: Connection, *, source: str, base: int, signature: str) -> dict[str, HeldTag]:
    """What the base shows, by URL."""
    rows: list[Any] = await db.tuples("held_tags", source=source, base=base, signature=signature)
    return {row[0]: row for row in rows}


async def held_urls(db: Connection, versions: Sequence[int]) -> list[HeldUrl]:
    return [
        HeldUrl(
            url=row["url"],
            version_id=row["version_id"],
            document=row["document_id"],
            depth=row["depth"],
            validators=Validators(etag=row["etag"], last_modified=row["last_modified"]),
            signature=row["signature"],
            needs_entry=bool(row["needs_entry"]),
        )
        for row in await db.all("held_versions", ids=list(versions))
    ]


async def lease(
    db: Connection, job: str, *, worker: str, limit: int, reached: bool = True, known: bool = False
) -> list[Entry]:
    """Entries that are due, now this worker's."""
    ids = [
        row["id"]
        for row in await db.all("lease_entries", job=job, worker=worker, limit=limit, reached=reached, known=known)
    ]
    return [_entry(row) for row in await db.all("entries_by_id", ids=ids)] if ids else []


async def settle(db: Connection, job: str, settled: Iterable[Settled], *, batch: int) -> None:
    nothing = Renewal(validators=Validators(), raw_hash="", signature="", links=())
    rows = []
    for entry in settled:
        renewal = entry.renewal or nothing
        rows.append(
            {
                "job": job,
                "url": entry.url,
                "outcome": entry.outcome,
                "reason": entry.reason,
                "status": entry.status,
                "batch": batch,
                "document": entry.document,
                "by_settings": entry.by_settings,
                "redirect_to": entry.redirect_to,
                "renews": entry.renewal is not None,
                "etag": renewal.validators.etag,
                "last_modified": renewal.validators.last_modified,
                "raw_hash": renewal.raw_hash or None,
                "signature": renewal.signature or None,
                "links": pack_links(renewal.links) if entry.renewal else None,
                "canonical": renewal.canonical,
            }
        )
    await db.run_many("settle_entry", rows)


async def release(db: Connection, job: str, released: Iterable[Released]) -> None:
    await db.run_many(
        "release_entry",
        [
            {"job": job, "url": entry.url, "due_at": entry.due_at, "reason": entry.reason, "status": entry.status}
            for entry in released
        ],
    )


async def unfinished(db: Connection, job: str) -> Open:
    row = await db.one("unfinished", job=job)
    assert row is not None, "a count is always there"
    due = [moment for moment in (when_if(row["due_reached"]), when_if(row["due_known"])) if moment]
    return Open(
        entries=bool(row["reached"] or row["known"]), reached=bool(row["reached"]), due_at=min(due, default=None)
    )


async def new_under_way(db: Connection, job: str) -> int:
    """How many entries that may become new documents are leased, by anyone."""
    row = await db.one("new_under_way", job=job)
    assert row is not None, "a count is always there"
    return int(row["entries"])


async def give_back(db: Connection, worker: str) -> None:
    """What this worker has leased is anybody's again."""
    await db.run("give_back_entries", worker=worker)


async def renumber(db: Connection, job: str, urls: Sequence[str], *, batch: int) -> None:
    """These entries belong to another batch than was thought."""
    await db.run("renumber_entries", job=job, urls=list(urls), batch=batch)


async def skip_new(db: Connection, job: str, *, reason: str, batch: int) -> int:
    return await db.run("skip_new_entries", job=job, reason=reason, batch=batch)


async def exceptions(db: Connection, job: str) -> list[Exceptional]:
    return [_exceptional(row) for row in await db.all("frontier_exceptions", job=job)]


async def unreached(db: Connection, job: str) -> list[Exceptional]:
    return [_exceptional(row) for row in await db.all("unreached_documents", job=job)]


async def with_canonical(db: Connection, job: str, *, source: str, generation: int) -> list[tuple[Exceptional, Row]]:
    """Pages that this crawl saw and that should be known by another URL; with what they are now."""
    rows = await db.all("entries_with_canonical", job=job, source=source, generation=generation)
    return [(_exceptional(row), row) for row in rows]


async def entry(db: Connection, job: str, url: str) -> Row | None:
    return await db.one("entry", job=job, url=url)


async def relabel(db: Connection, job: str, url: str, outcome: Outcome, reason: str, document: str | None) -> None:
    await db.run("relabel_entry", job=job, url=url, outcome=outcome, reason=reason, document=document)


async def ledger(db: Connection, url: str) -> list[Row]:
    return await db.all("ledger", url=url)


async def shown_unmentioned(db: Connection, url: str) -> list[Row]:
    """What crawls that list everything found unchanged: they leave no entry. Rows as of ledger()."""
    return await db.all("shown_unmentioned", url=url)


async def not_kept(db: Connection, job: str, *, limit: int) -> list[Row]:
    return await db.all("not_kept", job=job, limit=limit)


async def finished(db: Connection, source: str) -> list[str]:
    """Jobs whose frontier is no longer the ledger of their source."""
    return [row["id"] for row in await db.all("finished_frontiers", source=source)]


async def delete(db: Connection, job: str, limit: int) -> int:
    return await db.run("delete_entries", job=job, limit=limit)


def _entry(row: Row) -> Entry:
    held = None
    if row["version_id"] is not None:
        held = Version(
            id=row["version_id"],
            document_id=row["document_id"],
            born=row["born"],
            died=None,
            url=row["held_url"],
            content_hash=row["content_hash"],
            content_type=row["content_type"],
            validators=Validators(etag=row["etag"], last_modified=row["last_modified"]),
            raw_hash=row["raw_hash"],
            signature=row["signature"],
            depth=row["held_depth"],
            links=unpack_links(row["links"]),
            fetched_at=when(row["fetched_at"]),
            canonical=row["canonical"],
        )
    return Entry(url=row["url"], depth=row["depth"], attempts=row["attempts"], reached=bool(row["reached"]), held=held)


def _exceptional(row: Row) -> Exceptional:
    return Exceptional(
        url=row["url"],
        depth=row["depth"],
        outcome=Outcome(row["outcome"]),
        reason=row["reason"],
        by_settings=bool(row["by_settings"]),
        redirect_to=row["redirect_to"],
        reached=bool(row["reached"]),
        document=row["document_id"],
        content_id=row["content_id"],
        lifecycle=Lifecycle(row["lifecycle"]) if row["lifecycle"] else None,
        since=when_if(row["since"]),
        missed_crawls=row["missed_crawls"] or 0,
        retry_count=row["retry_count"] or 0,
        verified_at=when_if(row["verified_at"]),
    )
