"""The frontier of a job: its entries, their leases and outcomes, and the ledger they become."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from kept.model.document import Lifecycle, Validators, Version
from kept.model.frontier import (
    CanonicalEntry,
    ChangedPage,
    DeferredEntry,
    DiscoveredUrl,
    EntryResult,
    EntryRetry,
    ExceptionalEntry,
    FamilyProgress,
    FinishedEntry,
    FrontierEntry,
    LedgerEntry,
    ListedEntry,
    MetadataUpdate,
    NotKeptReason,
    OpenEntries,
    Outcome,
    RedirectedEntry,
    SettledBatch,
    SettledEntry,
    StoredEtag,
    StoredPage,
)
from kept.model.source import format_label
from kept.store.compression import compress_links, decompress_links
from kept.store.database import Connection, Row, parse_optional_time, parse_time


async def seed_known(db: Connection, job: str, *, source: str, base: int) -> int:
    return await db.run("seed_known", job=job, source=source, base=base)


async def seed_failed_entries(db: Connection, job: str, *, source: str, ledger_job: str) -> int:
    return await db.run("seed_failed_entries", job=job, source=source, ledger=ledger_job)


async def has_unrepaired(db: Connection, *, source: str, ledger_job: str) -> bool:
    """Return whether something that failed in the ledger has not been repaired since."""
    return await db.one("unrepaired_entries", source=source, ledger=ledger_job) is not None


async def seed_error_documents(db: Connection, job: str, *, source: str) -> int:
    return await db.run("seed_error_documents", job=job, source=source)


async def list_changed_pages(db: Connection, source: str) -> list[ChangedPage]:
    """Return the pages of the active generation that changed before, with how often and since when that is known."""
    return [
        ChangedPage(
            entry=ListedEntry(
                url=row["url"], version_id=row["version_id"], document_id=row["document_id"], depth=row["depth"]
            ),
            changes=row["changes"],
            known_since=parse_time(row["known_since"]),
            fetched_at=parse_time(row["fetched_at"]),
        )
        for row in await db.all("change_counts", source=source)
    ]


async def insert(db: Connection, job: str, discovered: Iterable[DiscoveredUrl]) -> int:
    """Insert entries, in the order of their URLs so that there are no deadlocks. Returns how many are new."""
    ordered = sorted(discovered, key=lambda entry: entry.url)
    return await db.run_many(
        "insert_entry",
        [
            {
                "job": job,
                "url": entry.url,
                "depth": entry.depth,
                "parent": entry.parent,
                "document": entry.moved_document_id,
                "reached": entry.reached,
                "wanted": entry.visit_if_known,
                "family": entry.family,
                "deferred": entry.deferred,
            }
            for entry in ordered
        ],
    )


async def mark_reached(db: Connection, job: str, discovered: Iterable[DiscoveredUrl]) -> int:
    """Mark known entries as reached, by a link or a move. Returns how many were not reached before."""
    ordered = sorted(discovered, key=lambda entry: entry.url)
    reached = await db.run_many(
        "mark_reached",
        [
            {
                "job": job,
                "url": entry.url,
                "parent": entry.parent,
                "depth": entry.depth,
                "family": entry.family,
                "deferred": entry.deferred,
            }
            for entry in ordered
            if entry.reached
        ],
    )
    await db.run_many(
        "set_moved_document",
        [
            {"job": job, "url": entry.url, "document": entry.moved_document_id}
            for entry in ordered
            if entry.moved_document_id
        ],
    )
    return reached


async def insert_listed(db: Connection, job: str, entries: Sequence[ListedEntry], *, batch: int) -> int:
    return await db.run_many(
        "insert_listed_entry",
        [
            {
                "job": job,
                "url": entry.url,
                "depth": entry.depth,
                "version": entry.version_id,
                "document": entry.document_id,
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


async def count_stored(db: Connection, *, source: str, base: int) -> int:
    """Return how many pages the base shows."""
    row = await db.one("count_stored", source=source, base=base)
    return int(row["pages"]) if row else 0


async def stored_etags(
    db: Connection, urls: Sequence[str], *, source: str, base: int, signature: str
) -> dict[str, StoredEtag]:
    """Return what the base shows at these URLs, with its version and, where that suffices, its ETag."""
    rows: list[Any] = await db.tuples("stored_etags", urls=list(urls), source=source, base=base, signature=signature)
    return {row[0]: row for row in rows}


async def stored_urls(db: Connection, *, source: str, base: int, after: str, limit: int) -> list[tuple[str, int]]:
    """Return the next URLs that the base shows, with their versions."""
    rows: list[Any] = await db.tuples("stored_urls", source=source, base=base, after=after, limit=limit)
    return rows


async def stored_urls_over_limit(db: Connection, *, source: str, base: int, max_pages: int) -> set[str]:
    """Return the URLs that the base shows beyond a limit."""
    rows = await db.tuples("stored_urls_over_limit", source=source, base=base, max_pages=max_pages)
    return {url for (url,) in rows}


async def stored_pages(db: Connection, versions: Sequence[int]) -> list[StoredPage]:
    return [
        StoredPage(
            url=row["url"],
            version_id=row["version_id"],
            document_id=row["document_id"],
            depth=row["depth"],
            validators=Validators(etag=row["etag"], last_modified=row["last_modified"]),
            signature=row["signature"],
            needs_entry=bool(row["needs_entry"]),
        )
        for row in await db.all("stored_pages", ids=list(versions))
    ]


async def lease(
    db: Connection, job: str, *, lease_id: str, limit: int, reached: bool = True, known: bool = False
) -> list[FrontierEntry]:
    """Lease entries that are due to the worker that holds a lease of the job."""
    ids = [
        row["id"]
        for row in await db.all("lease_entries", job=job, worker=lease_id, limit=limit, reached=reached, known=known)
    ]
    return [_entry(row) for row in await db.all("entries_by_id", ids=ids)] if ids else []


async def settle(db: Connection, job: str, settled: Iterable[SettledEntry], *, batch: int) -> None:
    nothing = MetadataUpdate(validators=Validators(), raw_hash="", signature="", links=())
    rows = []
    for entry in settled:
        renewal = entry.metadata_update or nothing
        rows.append(
            {
                "job": job,
                "url": entry.url,
                "outcome": entry.outcome,
                "reason": entry.reason,
                "status": entry.http_status,
                "batch": batch,
                "document": entry.document_id,
                "by_settings": entry.by_settings,
                "redirect_to": entry.redirect_to,
                "renews": entry.metadata_update is not None,
                "etag": renewal.validators.etag,
                "last_modified": renewal.validators.last_modified,
                "raw_hash": renewal.raw_hash or None,
                "signature": renewal.signature or None,
                "links": compress_links(renewal.links) if entry.metadata_update else None,
                "canonical": renewal.canonical,
            }
        )
    await db.run_many("settle_entry", rows)


async def retry_later(db: Connection, job: str, retries: Iterable[EntryRetry]) -> None:
    await db.run_many(
        "retry_entry",
        [
            {"job": job, "url": entry.url, "due_at": entry.due_at, "reason": entry.reason, "status": entry.http_status}
            for entry in retries
        ],
    )


async def open_entries(db: Connection, job: str) -> OpenEntries:
    row = await db.one("open_entries", job=job)
    assert row is not None, "a count is always there"
    due = [
        moment for moment in (parse_optional_time(row["due_reached"]), parse_optional_time(row["due_known"])) if moment
    ]
    return OpenEntries(
        has_any=bool(row["reached"] or row["known"] or row["deferred"]),
        has_reached=bool(row["reached"]),
        has_deferred=bool(row["deferred"]),
        next_due_at=min(due, default=None),
    )


async def count_leased_new(db: Connection, job: str) -> int:
    """Count the leased entries, of all workers, that may become new documents."""
    row = await db.one("count_leased_new", job=job)
    assert row is not None, "a count is always there"
    return int(row["entries"])


async def release_entries(db: Connection, lease_id: str) -> None:
    """Release the entries that a worker has leased."""
    await db.run("release_entries", worker=lease_id)


async def release_urls(db: Connection, job: str, urls: Iterable[str]) -> None:
    """Release some of the entries that a worker has leased."""
    await db.run("release_urls", job=job, urls=sorted(urls))


async def list_leased_urls(db: Connection, lease_id: str) -> set[str]:
    """Return the URLs of the entries that a worker has leased."""
    return {row["url"] for row in await db.all("leased_urls", worker=lease_id)}


async def set_batch(db: Connection, job: str, urls: Sequence[str], *, batch: int) -> None:
    """Move entries to another batch than they were settled in."""
    await db.run("set_batch", job=job, urls=list(urls), batch=batch)


async def skip_new(db: Connection, job: str, *, reason: str, batch: int) -> int:
    return await db.run("skip_new_entries", job=job, reason=reason, batch=batch)


async def deferred_entries(db: Connection, job: str) -> list[DeferredEntry]:
    return [
        DeferredEntry(
            id=row["id"],
            url=row["url"],
            depth=row["depth"],
            family=row["family"],
            is_document=row["document_id"] is not None,
        )
        for row in await db.all("deferred_entries", job=job)
    ]


async def family_progress(db: Connection, job: str) -> dict[str, FamilyProgress]:
    """Return how far a crawl has followed each family, by its key."""
    rows = await db.all("family_progress", job=job)
    return {row["family"]: FamilyProgress(rounds=row["rounds"], urls=row["urls"]) for row in rows}


async def admit_deferred(db: Connection, rounds: Mapping[int, int | None]) -> None:
    """Let deferred entries be visited; each in a round of its family, if it has one."""
    await db.run_many("admit_deferred", [{"id": id, "round": number} for id, number in sorted(rounds.items())])


async def refuse_deferred(db: Connection, reasons: Mapping[int, str], *, batch: int) -> None:
    rows = [{"id": id, "reason": reason, "batch": batch} for id, reason in sorted(reasons.items())]
    await db.run_many("refuse_deferred", rows)


async def skip_unreached_below(db: Connection, job: str, *, max_depth: int, reason: str, batch: int) -> int:
    """Skip documents that no visited page leads to and that are deeper than the limit. Returns how many."""
    return await db.run("skip_unreached_below", job=job, max_depth=max_depth, reason=reason, batch=batch)


async def skip_known_over_limit(db: Connection, job: str, *, root: str, max_pages: int, reason: str, batch: int) -> int:
    """Skip the documents beyond a lowered limit; those closest to the root stay. Returns how many."""
    return await db.run("skip_known_over_limit", job=job, root=root, max_pages=max_pages, reason=reason, batch=batch)


async def trapped_urls(db: Connection, job: str) -> set[str]:
    """Return the URLs that a crawl refused as traps."""
    return {row["url"] for row in await db.all("trapped_urls", job=job)}


async def has_trapped(db: Connection, job: str) -> bool:
    return await db.one("has_trapped", job=job) is not None


async def count_entries(db: Connection, job: str) -> int:
    row = await db.one("count_frontier", job=job)
    assert row is not None, "a count is always there"
    return int(row["entries"])


async def list_exceptional(db: Connection, job: str) -> list[ExceptionalEntry]:
    return [_exceptional_entry(row) for row in await db.all("frontier_exceptions", job=job)]


async def list_redirected(db: Connection, job: str) -> list[RedirectedEntry]:
    return [
        RedirectedEntry(
            url=row["url"],
            depth=row["depth"],
            reached=bool(row["reached"]),
            version_id=row["version_id"],
            redirect_to=row["redirect_to"],
            target=None
            if row["target_url"] is None
            else EntryResult(
                url=row["target_url"],
                outcome=Outcome(row["outcome"]) if row["outcome"] else None,
                reason=row["reason"],
                by_settings=bool(row["by_settings"]),
                was_visited=row["visited_at"] is not None,
                version_id=row["target_version_id"],
                document_id=row["document_id"],
            ),
        )
        for row in await db.all("redirected_entries", job=job)
    ]


async def stored_links(db: Connection, versions: Sequence[int]) -> dict[int, tuple[str, ...]]:
    """Return the links of versions, by their ids."""
    return {row["id"]: decompress_links(row["links"]) for row in await db.all("stored_links", ids=list(versions))}


async def list_unreached(db: Connection, job: str) -> list[ExceptionalEntry]:
    return [_exceptional_entry(row) for row in await db.all("unreached_documents", job=job)]


async def list_with_canonical(db: Connection, job: str, *, source: str, generation: int) -> list[CanonicalEntry]:
    """Return the pages of this crawl that name another URL as their canonical one."""
    return [
        CanonicalEntry(
            entry=_exceptional_entry(row),
            canonical=row["canonical"],
            version_id=row["version_id"],
            content_id=row["content_now"],
            content_type=row["content_type"],
        )
        for row in await db.all("entries_with_canonical", job=job, source=source, generation=generation)
    ]


async def get_result(db: Connection, job: str, url: str) -> EntryResult | None:
    row = await db.one("entry", job=job, url=url)
    if row is None:
        return None
    return EntryResult(
        url=row["url"],
        outcome=Outcome(row["outcome"]) if row["outcome"] else None,
        reason=row["reason"],
        by_settings=bool(row["by_settings"]),
        was_visited=row["visited_at"] is not None,
        version_id=row["version_id"],
        document_id=row["document_id"],
    )


async def set_outcome(
    db: Connection, job: str, url: str, outcome: Outcome, reason: str, document_id: str | None, *, batch: int
) -> None:
    await db.run("set_outcome", job=job, url=url, outcome=outcome, reason=reason, document=document_id, batch=batch)


async def ledger_entries(db: Connection, url: str) -> list[tuple[str, LedgerEntry]]:
    """Return the entries of a URL in the last crawls of each source, the latest first, with the id of the source."""
    return [(str(row["source_id"]), _ledger_entry(row)) for row in await db.all("ledger_entries", url=url)]


async def unchanged_without_entry(db: Connection, url: str) -> list[tuple[str, LedgerEntry]]:
    """Return pages that crawls which list everything found unchanged, without an entry; as ledger_entries() does."""
    return [(str(row["source_id"]), _ledger_entry(row)) for row in await db.all("unchanged_without_entry", url=url)]


async def not_kept(db: Connection, job: str, *, limit: int) -> list[NotKeptReason]:
    """Return why a crawl did not keep URLs: how many for each reason, and some of them."""
    rows = await db.all("not_kept", job=job, limit=limit)
    return [
        NotKeptReason(
            outcome=outcome,
            reason=reason,
            count=count,
            examples=[row["url"] for row in group],
            linked_from={row["url"]: row["linked_from"] for row in group if row["linked_from"]},
        )
        for (outcome, reason, count), group in (
            (key, list(group))
            for key, group in groupby(rows, key=lambda row: (row["outcome"], row["reason"], row["urls"]))
        )
    ]


async def list_superseded(db: Connection, source: str) -> list[str]:
    """Return jobs whose frontier is no longer the ledger of their source."""
    return [row["id"] for row in await db.all("superseded_frontiers", source=source)]


async def delete(db: Connection, job: str, limit: int) -> int:
    return await db.run("delete_entries", job=job, limit=limit)


async def entries_since(db: Connection, job: str, *, batch: int, entry: int, limit: int) -> list[FinishedEntry]:
    """Return finished entries of a job after an entry of one of its batches, in the order they were committed."""
    return [
        FinishedEntry(
            id=row["id"],
            batch=row["batch"],
            url=row["url"],
            outcome=row["outcome"],
            reason=row["reason"],
            http_status=row["http_status"],
            depth=row["depth"],
            document_id=row["document_id"],
            redirect_to=row["redirect_to"],
            visited_at=parse_time(row["visited_at"]),
            removed=bool(row["removed"]),
        )
        for row in await db.all("entries_since", job=job, batch=batch, entry=entry, limit=limit)
    ]


async def list_entries(db: Connection, job: str, *, outcome: str | None, after: str, limit: int) -> list[LedgerEntry]:
    """Return a page of a job's entries, by URL; only those of an outcome, or ``open`` ones, if one is named."""
    rows = await db.all("entries_of_job", job=job, outcome=outcome, after=after, limit=limit)
    return [_ledger_entry(row) for row in rows]


async def list_batches(db: Connection, job: str) -> list[SettledBatch]:
    """Return how many entries each batch settled, and when."""
    return [
        SettledBatch(entries=row["entries"], settled_at=parse_time(row["settled_at"]))
        for row in await db.all("batches_of_job", job=job)
    ]


def _ledger_entry(row: Row) -> LedgerEntry:
    return LedgerEntry(
        source=format_label(row["source_name"], row["source_version"]),
        url=row["url"],
        outcome=row["outcome"],
        reason=row["reason"],
        http_status=row["http_status"],
        attempts=row["attempts"] + (row["visited_at"] is not None),
        depth=row["depth"],
        discovered_from=row["parent_url"],
        visited_at=parse_optional_time(row["visited_at"]),
    )


def _entry(row: Row) -> FrontierEntry:
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
            links=decompress_links(row["links"]),
            fetched_at=parse_time(row["fetched_at"]),
            canonical=row["canonical"],
        )
    return FrontierEntry(
        url=row["url"], depth=row["depth"], attempts=row["attempts"], reached=bool(row["reached"]), base_version=held
    )


def _exceptional_entry(row: Row) -> ExceptionalEntry:
    return ExceptionalEntry(
        url=row["url"],
        depth=row["depth"],
        outcome=Outcome(row["outcome"]),
        reason=row["reason"],
        by_settings=bool(row["by_settings"]),
        redirect_to=row["redirect_to"],
        reached=bool(row["reached"]),
        document_id=row["document_id"],
        content_id=row["content_id"],
        lifecycle=Lifecycle(row["lifecycle"]) if row["lifecycle"] else None,
        since=parse_optional_time(row["since"]),
        missed_crawls=row["missed_crawls"] or 0,
        retry_count=row["retry_count"] or 0,
        verified_at=parse_optional_time(row["verified_at"]),
    )
