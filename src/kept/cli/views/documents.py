"""Prints documents and their histories."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from kept.cli.screen import Screen
from kept.service.formatting import format_ago, format_local_time, pluralize

if TYPE_CHECKING:
    from kept.service.documents import DocumentHistory, DocumentView


def print_document_header(screen: Screen, page: "DocumentView") -> None:
    label = f"{page.source}@{page.version}" if page.version else page.source
    partial = ", which is partial" if page.partial else ""
    trouble = "" if page.lifecycle == "active" else f", now {page.lifecycle}"
    seen = f"fetched {format_ago(page.fetched_at)}, last confirmed {format_ago(page.verified_at)}"
    screen.line((page.url, "dim"))
    screen.line((f"{label}, generation {page.generation}{partial}{trouble}; {seen}\n", "dim"))


def print_history(screen: Screen, history: "DocumentHistory") -> None:
    """Print the history of a document, oldest first."""
    latest = history.versions[-1] if history.versions else {"url": history.document}
    screen.line((latest["url"], "bold"))
    screen.line(
        f"in {history.source}, document {history.document}, first seen {format_local_time(history.first_seen)}",
        indent=2,
    )
    if history.lifecycle != "active":
        why = f": {history.reason}" if history.reason else ""
        screen.line(f"now {history.lifecycle}, since {format_local_time(history.since)}{why}", indent=2)
    screen.line()
    screen.table(
        [[(f"  {number}", "bold"), when, what] for number, when, what in _history_rows(history)], align_right=[0]
    )


def _history_rows(history: "DocumentHistory") -> Iterator[tuple[int, str, str]]:
    """Yield generation, time and change of each version."""
    begins = {version["generation"] for version in history.versions}
    before: Mapping[str, Any] | None = None
    for version in history.versions:
        yield (
            version["generation"],
            _format_iso_time(version["activated_at"] or version["fetched_at"]),
            _format_version(before, version),
        )
        before = version
        if version["until"] is not None and version["until"] not in begins:
            yield version["until"], _format_iso_time(version["ended_at"]), "removed"


def _format_version(before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> str:
    says = f"“{now['title']}”, {pluralize(now['size'], 'character')}"
    if before is None:
        return f"added: {says}"
    changes = ["back"] if before["until"] != now["generation"] else []
    if before["url"] != now["url"]:
        changes.append(f"moved to {now['url']}")
    if before["content_hash"] != now["content_hash"]:
        changes.append(f"read again: {says}" if now["read_again"] else f"changed: {says}")
    return ", and ".join(changes) + (f" ({now['rolled_back']})" if now["rolled_back"] else "")


def _format_iso_time(iso: str | None) -> str:
    return format_local_time(datetime.fromisoformat(iso)) if iso else ""
