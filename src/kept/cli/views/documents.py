"""Prints documents and their histories."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kept.cli.screen import Screen
from kept.service.formatting import format_ago, format_local_time, pluralize

if TYPE_CHECKING:
    from kept.model.document import PastVersion
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
    screen.line((history.versions[-1].url if history.versions else history.document, "bold"))
    screen.line(
        f"in {history.source}, document {history.document}, first seen {format_local_time(history.first_seen)}",
        indent=2,
        wrap=True,
    )
    if history.lifecycle != "active":
        why = f": {history.reason}" if history.reason else ""
        screen.line(f"now {history.lifecycle}, since {format_local_time(history.since)}{why}", indent=2, wrap=True)
    screen.line()
    screen.table(
        [[(f"  {number}", "bold"), when, what] for number, when, what in _history_rows(history)], align_right=[0]
    )


def _history_rows(history: "DocumentHistory") -> Iterator[tuple[int, str, str]]:
    """Yield generation, time and change of each version."""
    begins = {version.born for version in history.versions}
    before = None
    for version in history.versions:
        changed_at = format_local_time(version.activated_at or version.fetched_at)
        yield version.born, changed_at, _format_version(before, version)
        before = version
        if version.died is not None and version.died not in begins:
            why = f": {version.end_reason}" if version.end_reason else ""
            yield version.died, format_local_time(version.ended_at), f"removed{why}"


def _format_version(before: "PastVersion | None", now: "PastVersion") -> str:
    text = f"“{now.title}”, {pluralize(now.size, 'character')}"
    if before is None:
        return f"added: {text}"
    changes = ["back"] if before.died != now.born else []
    if before.url != now.url:
        changes.append(f"moved to {now.url}")
    if before.content_hash != now.content_hash:
        changes.append(f"read again: {text}" if now.read_again else f"changed: {text}")
    return ", and ".join(changes) + (f" ({now.rolled_back})" if now.rolled_back else "")
