"""How the ledger of a crawl reads for people."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kept.cli.parse import format_ago, format_local_time, pluralize
from kept.cli.screen import Screen

if TYPE_CHECKING:
    from kept.model.frontier import LedgerEntry
    from kept.service.ledger import LedgerSummary


def print_outcomes(screen: Screen, accounts: Sequence["LedgerEntry"]) -> None:
    """What the last crawls made of a URL."""
    screen.line((accounts[0].url, "bold"))
    for one in accounts:
        told = f"{one.outcome}{f': {one.reason}' if one.reason else ''}" if one.outcome else _format_unvisited(one)
        screen.line(f"{one.source}: {told}", indent=2)
        facts = [
            f"visited {format_ago(one.visited_at)}" if one.visited_at else "never visited",
            f"answered {one.http_status}" if one.http_status else "",
            f"tried {one.attempts} times" if one.attempts > 1 else "",
            f"found on {one.discovered_from}" if one.discovered_from else "known from the root or a list",
            f"{pluralize(one.depth, 'link')} deep" if one.depth else "",
        ]
        screen.line(("; ".join(fact for fact in facts if fact), "dim"), indent=4)


def _format_unvisited(account: "LedgerEntry") -> str:
    return f"to be tried again: {account.reason}" if account.reason else "not visited yet: a crawl is under way"


def print_not_kept(screen: Screen, ledger: "LedgerSummary") -> None:
    """Every page that was not kept, by reason."""
    total = sum(reason.count for reason in ledger.reasons)
    told = f"{pluralize(total, 'URL')} not kept" if total else "every URL was kept"
    screen.line((f"{ledger.source}: {told} by the crawl of {format_local_time(ledger.crawled_at)}", "bold"))
    for reason in ledger.reasons:
        screen.line((f"{reason.count:,} {reason.outcome}", "yellow"), f": {reason.reason}", indent=2)
        for url in reason.examples:
            screen.line(url, indent=6)
        if reason.count > len(reason.examples):
            screen.line((f"… and {reason.count - len(reason.examples):,} more (--limit)", "dim"), indent=6)
