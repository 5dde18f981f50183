"""Prints the ledger of a crawl."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kept.cli.screen import Screen
from kept.service.formatting import format_ago, format_count, format_local_time, pluralize

if TYPE_CHECKING:
    from kept.model.frontier import LedgerEntry
    from kept.service.ledger import LedgerSummary


def print_outcomes(screen: Screen, entries: Sequence["LedgerEntry"]) -> None:
    """Print the results of a URL in the last crawls."""
    screen.line((entries[0].url, "bold"))
    for one in entries:
        outcome = (one.outcome or "").replace("_", " ")
        summary = f"{outcome}{f': {one.reason}' if one.reason else ''}" if outcome else _format_unvisited(one)
        screen.line(f"{one.source}: {summary}", indent=2)
        facts = [
            f"visited {format_ago(one.visited_at)}" if one.visited_at else "never visited",
            f"answered {one.http_status}" if one.http_status else "",
            f"tried {one.attempts} times" if one.attempts > 1 else "",
            f"found on {one.discovered_from}" if one.discovered_from else "known from the root or a list",
            f"{pluralize(one.depth, 'link')} deep" if one.depth else "",
        ]
        screen.line(("; ".join(fact for fact in facts if fact), "dim"), indent=4)


def _format_unvisited(entry: "LedgerEntry") -> str:
    return f"to be tried again: {entry.reason}" if entry.reason else "not visited yet: a crawl is under way"


def print_not_kept(screen: Screen, ledger: "LedgerSummary") -> None:
    """Print the URLs that were not kept, by reason."""
    total = sum(reason.count for reason in ledger.reasons)
    summary = f"{pluralize(total, 'URL')} not kept" if total else "every URL was kept"
    screen.line((f"{ledger.source}: {summary} by the crawl of {format_local_time(ledger.crawled_at)}", "bold"))
    for reason in ledger.reasons:
        outcome = "dead_links" if reason.outcome == "dead_link" else reason.outcome
        screen.line((format_count(outcome, reason.count), "yellow"), f": {reason.reason}", indent=2)
        for url in reason.examples:
            page = reason.linked_from.get(url)
            screen.line(url, *([(f"  (linked from {page})", "dim")] if page else []), indent=6)
        if reason.count > len(reason.examples):
            screen.line((f"… and {reason.count - len(reason.examples):,} more (--limit)", "dim"), indent=6)
