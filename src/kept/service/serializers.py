"""The JSON of the command line, the API and MCP. Scripts rely on these shapes: add to them, do not rename."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from kept.model.duration import format_short_duration

if TYPE_CHECKING:  # a search needs none of the others
    from collections.abc import Sequence
    from datetime import datetime

    from kept.crawl.preview import PagePreview, ScopePreview
    from kept.model.changes import RemovalReason
    from kept.model.frontier import LedgerEntry
    from kept.model.generation import Generation
    from kept.model.job import CrawlJob
    from kept.model.source import Source
    from kept.service.changes import ChangeFeedPage
    from kept.service.document_diff import DocumentDiff
    from kept.service.documents import DocumentHistory, DocumentPage, DocumentView
    from kept.service.generations import GenerationDiff
    from kept.service.jobs import JobView
    from kept.service.ledger import LedgerSummary
    from kept.service.search import SearchResult
    from kept.service.sources import SourceView


def source(view: SourceView) -> dict[str, Any]:
    generation, upcoming, job = view.generation, view.upcoming, view.last_job
    return {
        "source": view.source.label,
        "name": view.source.name,
        "version": view.source.version,
        "kind": view.source.kind,
        "root": view.source.root,
        "state": view.state,
        "generation": generation.number if generation else None,
        "documents": view.documents,
        "sections": view.sections,
        "partial": bool(generation and generation.partial),
        "verified_at": _iso(view.verified_at),
        "created_at": _iso(view.source.created_at),
        "tags": view.source.settings.tags,
        "schedule": view.source.settings.schedule or None,
        "next_run_at": None if view.source.schedule_paused_at else _iso(view.source.next_run_at),
        "schedule_paused_at": _iso(view.source.schedule_paused_at) if view.source.settings.schedule else None,
        "settings": view.source.settings.as_json(),
        "upcoming": {"generation": upcoming.number, "state": upcoming.state, "reason": upcoming.reason}
        if upcoming
        else None,
        "last_job": {
            "job": job.id,
            "status": job.status,
            "counts": job.progress.tally.as_json(),
            "created_at": _iso(job.created_at),
            "completed_at": _iso(job.completed_at),
            "error": job.error,
        }
        if job
        else None,
    }


def source_insights(view: SourceView) -> dict[str, Any]:
    """Return the fields that only the view of one source has."""
    return {
        "changes_every_seconds": round(view.changes_every.total_seconds()) if view.changes_every else None,
        "suggested_schedule": format_short_duration(view.suggested_interval.total_seconds())
        if view.suggested_interval
        else None,
        "validators": view.validators,
        "sitemap": "wrong" if view.source.sitemap_wrong_at else None,
        "webhook_given_up": view.webhook_error,
    }


def crawl(
    label: str, job: CrawlJob, generation: Generation | None, seconds: float, removed: Sequence[RemovalReason] = ()
) -> dict[str, Any]:
    """``removed`` is why the new generation no longer shows documents, the commonest reasons first."""
    return {
        "source": label,
        "job": job.id,
        "status": job.status,
        "generation": generation.number if generation else None,
        "held": job.held,
        "partial": bool(generation and generation.partial),
        "counts": job.progress.tally.as_json(),
        "removed": [asdict(one) for one in removed],
        "seconds": round(seconds, 3),
        "error": job.error,
    }


def job(view: JobView) -> dict[str, Any]:
    job, progress = view.job, view.job.progress
    return {
        "id": job.id,
        "source": view.source,
        "status": job.status,
        "mode": job.mode,
        "priority": job.priority,
        "attempt": job.attempt,
        "retry_count": job.retry_count,
        "max_retries": job.max_retries,
        "workers": view.workers,
        "places": [
            {"name": lease.worker_name, "host": lease.host.partition("/")[0], "pid": lease.pid} for lease in view.leases
        ],
        "progress": {
            "percent": 100 if job.status == "completed" else progress.percent,
            "discovered": progress.discovered,
            "done": progress.done,
            **progress.tally.as_json(),
            "bytes": progress.bytes,
            "rate": round(view.pace.rate, 1),
            "eta_seconds": None if view.pace.eta_seconds is None else round(view.pace.eta_seconds),
            "current_depth": progress.current_depth,
        },
        "generation": job.generation,
        "held": job.held,
        "removed": [asdict(one) for one in view.removed],
        "again": job.again,
        "created_at": _iso(job.created_at),
        "started_at": _iso(job.started_at),
        "completed_at": _iso(job.completed_at),
        "last_heartbeat": _iso(job.last_heartbeat),
        "error": job.error,
        "owner": job.owner,
    }


def search(found: SearchResult) -> dict[str, Any]:
    """``did_you_mean`` is the spelling that was searched, if a word is unknown. ``without``: the excluded words.
    ``vectors_missing``, the number of sections without a vector, is there only where searches use vectors.
    ``not_reranked``, the reason, is there only where a configured reranker was not used.
    """
    return {
        "query": found.query,
        "hits": [hit.as_json() for hit in found.hits],
        "did_you_mean": found.did_you_mean,
        "without": list(found.without),
        **({} if found.vectors_missing is None else {"vectors_missing": found.vectors_missing}),
        **({} if found.not_reranked is None else {"not_reranked": found.not_reranked}),
    }


def generations(of: Source, found: list[Generation]) -> dict[str, Any]:
    return {
        "source": of.label,
        "active": of.active_generation,
        "generations": [
            {
                "number": one.number,
                "state": one.state,
                "born": _iso(one.created_at),
                "activated_at": _iso(one.activated_at),
                "documents": one.documents,
                "counts": one.tally.as_json(),
                "partial": one.partial is not None,
                "job": one.job_id,
                "mode": one.mode,
                "reason": one.reason,
            }
            for one in found
        ],
    }


def diff(difference: GenerationDiff) -> dict[str, Any]:
    return {
        "source": difference.source,
        "from": difference.a,
        "to": difference.b,
        "added": difference.added,
        "removed": difference.removed,
        "changed": difference.changed,
        "moved": difference.moved,
    }


def document_diff(difference: DocumentDiff) -> dict[str, Any]:
    """``change`` is the kind of change; the hunks are those of a unified diff."""
    before, after = difference.before, difference.after
    return {
        "source": difference.source,
        "document": difference.document,
        "from": difference.a,
        "to": difference.b,
        "change": difference.change,
        "before": {"url": before.url, "title": before.title, "markdown": before.markdown} if before else None,
        "after": {"url": after.url, "title": after.title, "markdown": after.markdown} if after else None,
        "hunks": [asdict(hunk) for hunk in difference.hunks],
    }


def changes(found: ChangeFeedPage) -> dict[str, Any]:
    return {
        "since": _iso(found.since),
        "changes": [
            {
                "source": one.source,
                "generation": one.generation,
                "at": _iso(one.at),
                "change": one.change,
                "document": one.document,
                "url": one.url,
                "from": one.from_url,
                "title": one.title,
                "edited": one.edited,
                "reason": one.reason,
            }
            for one in found.changes
        ],
        "next": found.next,
    }


def document(page: DocumentView) -> dict[str, Any]:
    return asdict(page) | {"fetched_at": _iso(page.fetched_at), "verified_at": _iso(page.verified_at)}


def documents(page: DocumentPage) -> dict[str, Any]:
    return {
        "source": page.source,
        "generation": page.generation,
        "documents": [
            asdict(one) | {"first_seen": _iso(one.first_seen), "fetched_at": _iso(one.fetched_at)}
            for one in page.documents
        ],
        "next": page.next,
    }


def history(history: DocumentHistory) -> dict[str, Any]:
    return asdict(history) | {
        "first_seen": _iso(history.first_seen),
        "since": _iso(history.since),
        "versions": [
            {
                "version": one.born,
                "generation": one.born,
                "until": one.died,
                "url": one.url,
                "title": one.title,
                "content_hash": one.content_hash,
                "size": one.size,
                "read_again": one.read_again,
                "fetched_at": _iso(one.fetched_at),
                "activated_at": _iso(one.activated_at),
                "ended_at": _iso(one.ended_at),
                "rolled_back": one.rolled_back,
                "end_reason": one.end_reason,
            }
            for one in history.versions
        ],
    }


def ledger_entries(entries: list[LedgerEntry]) -> dict[str, Any]:
    """Return the latest entry, with those of other sources as ``others``."""
    first, *others = [asdict(entry) | {"visited_at": _iso(entry.visited_at)} for entry in entries]
    return first | {"others": others}


def ledger_summary(ledger: LedgerSummary) -> dict[str, Any]:
    return {
        "source": ledger.source,
        "job": ledger.job,
        "crawled_at": _iso(ledger.crawled_at),
        "not_kept": sum(reason.count for reason in ledger.reasons),
        "reasons": [asdict(reason) for reason in ledger.reasons],
    }


def page_preview(preview: PagePreview) -> dict[str, Any]:
    content = preview.page.content
    return {
        "url": preview.url,
        "http_status": preview.status,
        "content_type": preview.content_type,
        "title": content.title,
        "markdown": content.markdown,
        "sections": [
            {"level": section.level, "heading": section.heading, "anchor": section.anchor}
            for section in content.sections
        ],
        "links": [{"url": url, "in_scope": why is None, "reason": why} for url, why in preview.links.items()],
    }


def scope_preview(root: str, preview: ScopePreview) -> dict[str, Any]:
    return {
        "root": root,
        "included": preview.included,
        "left_out": [{"url": url, "reason": why} for url, why in preview.left_out.items()],
        "unread": [{"url": url, "reason": why} for url, why in preview.unread.items()],
        "more": preview.more,
    }


def _iso(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None
