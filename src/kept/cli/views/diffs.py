"""Prints diffs and changes."""

from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING

from kept.cli.screen import Screen
from kept.service.formatting import format_local_time, pluralize

if TYPE_CHECKING:
    from kept.service.changes import Change, ChangeFeedPage
    from kept.service.document_diff import DocumentDiff
    from kept.service.generations import GenerationDiff

_CHANGE_SYMBOLS = {
    "added": ("+ ", "green"),
    "removed": ("- ", "red"),
    "changed": ("~ ", "yellow"),
    "moved": ("> ", "cyan"),
    "restored": ("+ ", "green"),
}


def print_diff(screen: Screen, difference: "GenerationDiff") -> None:
    kinds = {
        "added": len(difference.added),
        "removed": len(difference.removed),
        "changed": len(difference.changed),
        "moved": len(difference.moved),
    }
    summary = ", ".join(f"{number:,} {kind}" for kind, number in kinds.items() if number) or "nothing differs"
    screen.line((f"{difference.source}, from generation {difference.a} to {difference.b}: {summary}", "bold"))
    for url in difference.added:
        screen.line(_CHANGE_SYMBOLS["added"], url)
    for url in difference.removed:
        screen.line(_CHANGE_SYMBOLS["removed"], url)
    for url in difference.changed:
        screen.line(_CHANGE_SYMBOLS["changed"], url)
    for move in difference.moved:
        screen.line(_CHANGE_SYMBOLS["moved"], f"{move['from']} -> {move['to']}")
    if difference.changed:
        about = f"kept diff {difference.source} {difference.a} {difference.b} {difference.changed[0]}"
        screen.line((f"Line by line: {about}", "dim"))


def print_document_diff(screen: Screen, difference: "DocumentDiff") -> None:
    """Print a unified diff that other programs can read."""
    before, after = difference.before, difference.after
    screen.line((f"--- {before.url}" if before else "--- /dev/null", "bold"), f"\tgeneration {difference.a}")
    screen.line((f"+++ {after.url}" if after else "+++ /dev/null", "bold"), f"\tgeneration {difference.b}")
    heads = {line[1:].lstrip("# ") for hunk in difference.hunks for line in hunk.lines if line.startswith("+#")}
    if before and after and before.title != after.title and after.title not in heads:
        screen.line(f"title changed from “{before.title}” to “{after.title}”")
    if not difference.hunks:
        screen.line("moved; what it says is the same" if difference.change == "moved" else "nothing differs")
    for hunk in difference.hunks:
        screen.line((hunk.header, "cyan"))
        for line in hunk.lines:
            screen.line((line, {"-": "red", "+": "green"}.get(line[0], "")))


def print_changes(screen: Screen, found: "ChangeFeedPage") -> None:
    """Print the changes of documents, by generation."""
    if not found.changes:
        since = f" since {format_local_time(found.since)}" if found.since else ""
        screen.line(f"Nothing has changed{since}.")
    for number, (_, group) in enumerate(groupby(found.changes, key=lambda one: (one.source, one.generation))):
        together = list(group)
        first, counted = together[0], Counter(str(one.change) for one in together)
        if number:
            screen.line()
        summary = ", ".join(f"{counted[kind]:,} {kind}" for kind in _CHANGE_SYMBOLS if counted[kind])
        why = f" ({first.rolled_back})" if first.rolled_back else ""
        screen.line(
            (f"{first.source}, generation {first.generation}", "bold"),
            f", {format_local_time(first.at)}{why}: {summary}",
        )
        for one in together:
            screen.line(_CHANGE_SYMBOLS[one.change], *_format_change(one))
    if found.next:
        screen.line(
            (f"There is more. --limit shows more than {pluralize(len(found.changes), 'change')} at once.", "dim")
        )


def _format_change(one: "Change") -> list[str | tuple[str, str]]:
    where = f"{one.from_url} -> {one.url}" if one.from_url else one.url
    also = {"moved": "and changed", "restored": "back, and changed"}.get(one.change, "") if one.edited else ""
    note = also or ("back" if one.change == "restored" else one.reason or "")
    return [where, (f"  {note}", "dim") if note else ""]
