"""How pages, and what became of them, read for people."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from kept.cli.screen import Screen
from kept.cli.words import ago, moment, plural

if TYPE_CHECKING:
    from kept.service.reading import History, Page


def page_origin(screen: Screen, page: "Page") -> None:
    label = f"{page.source}@{page.version}" if page.version else page.source
    partial = ", which is partial" if page.partial else ""
    trouble = "" if page.lifecycle == "active" else f", now {page.lifecycle}"
    seen = f"fetched {ago(page.fetched_at)}, last confirmed {ago(page.verified_at)}"
    screen.line((page.url, "dim"))
    screen.line((f"{label}, generation {page.generation}{partial}{trouble}; {seen}\n", "dim"))


def history(screen: Screen, history: "History") -> None:
    """What became of a document, oldest first."""
    latest = history.versions[-1] if history.versions else {"url": history.document}
    screen.line((latest["url"], "bold"))
    screen.line(f"in {history.source}, document {history.document}, first seen {moment(history.first_seen)}", indent=2)
    if history.lifecycle != "active":
        why = f": {history.reason}" if history.reason else ""
        screen.line(f"now {history.lifecycle}, since {moment(history.since)}{why}", indent=2)
    screen.line()
    screen.table([[(f"  {number}", "bold"), when, what] for number, when, what in _story(history)], right=[0])


def _story(history: "History") -> Iterator[tuple[int, str, str]]:
    """Generation, time and what happened in it."""
    begins = {version["generation"] for version in history.versions}
    before: Mapping[str, Any] | None = None
    for version in history.versions:
        yield version["generation"], _time(version["activated_at"] or version["fetched_at"]), _event(before, version)
        before = version
        if version["until"] is not None and version["until"] not in begins:
            yield version["until"], _time(version["ended_at"]), "removed"


def _event(before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> str:
    says = f"“{now['title']}”, {plural(now['size'], 'character')}"
    if before is None:
        return f"added: {says}"
    told = ["back"] if before["until"] != now["generation"] else []
    if before["url"] != now["url"]:
        told.append(f"moved to {now['url']}")
    if before["content_hash"] != now["content_hash"]:
        told.append(f"read again: {says}" if now["read_again"] else f"changed: {says}")
    return ", and ".join(told) + (f" ({now['rolled_back']})" if now["rolled_back"] else "")


def _time(iso: str | None) -> str:
    return moment(datetime.fromisoformat(iso)) if iso else ""
