"""How differences and changes read for people."""

from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING

from kept.cli.screen import Screen
from kept.cli.words import moment, plural

if TYPE_CHECKING:
    from kept.service.changes import Change, Changes
    from kept.service.comparing import DocumentDifference
    from kept.service.generations import Difference

_SIGNS = {
    "added": ("+ ", "green"),
    "removed": ("- ", "red"),
    "changed": ("~ ", "yellow"),
    "moved": ("> ", "cyan"),
    "restored": ("+ ", "green"),
}


def diff(screen: Screen, difference: "Difference") -> None:
    kinds = {
        "added": len(difference.added),
        "removed": len(difference.removed),
        "changed": len(difference.changed),
        "moved": len(difference.moved),
    }
    told = ", ".join(f"{number:,} {kind}" for kind, number in kinds.items() if number) or "nothing differs"
    screen.line((f"{difference.source}, from generation {difference.a} to {difference.b}: {told}", "bold"))
    for url in difference.added:
        screen.line(_SIGNS["added"], url)
    for url in difference.removed:
        screen.line(_SIGNS["removed"], url)
    for url in difference.changed:
        screen.line(_SIGNS["changed"], url)
    for move in difference.moved:
        screen.line(_SIGNS["moved"], f"{move['from']} -> {move['to']}")
    if difference.changed:
        about = f"kept diff {difference.source} {difference.a} {difference.b} {difference.changed[0]}"
        screen.line((f"Line by line: {about}", "dim"))


def document_diff(screen: Screen, difference: "DocumentDifference") -> None:
    """Like any other unified diff: what reads those reads this."""
    before, after = difference.before, difference.after
    screen.line((f"--- {before.url}" if before else "--- /dev/null", "bold"), f"\tgeneration {difference.a}")
    screen.line((f"+++ {after.url}" if after else "+++ /dev/null", "bold"), f"\tgeneration {difference.b}")
    heads = {line[1:].lstrip("# ") for hunk in difference.hunks for line in hunk.lines if line.startswith("+#")}
    if before and after and before.title != after.title and after.title not in heads:
        screen.line(f"title changed from “{before.title}” to “{after.title}”")
    if not difference.hunks:
        screen.line("moved; what it says is the same" if difference.change == "moved" else "nothing differs")
    for hunk in difference.hunks:
        screen.line((hunk.head, "cyan"))
        for line in hunk.lines:
            screen.line((line, {"-": "red", "+": "green"}.get(line[0], "")))


def changes(screen: Screen, found: "Changes") -> None:
    """What became of documents, generation by generation."""
    if not found.changes:
        since = f" since {moment(found.since)}" if found.since else ""
        screen.line(f"Nothing has changed{since}.")
    for number, (_, group) in enumerate(groupby(found.changes, key=lambda one: (one.source, one.generation))):
        together = list(group)
        first, counted = together[0], Counter(str(one.change) for one in together)
        if number:
            screen.line()
        told = ", ".join(f"{counted[kind]:,} {kind}" for kind in _SIGNS if counted[kind])
        why = f" ({first.rolled_back})" if first.rolled_back else ""
        screen.line((f"{first.source}, generation {first.generation}", "bold"), f", {moment(first.at)}{why}: {told}")
        for one in together:
            screen.line(_SIGNS[one.change], *_told(one))
    if found.next:
        screen.line((f"There is more. --limit shows more than {plural(len(found.changes), 'change')} at once.", "dim"))


def _told(one: "Change") -> list[str | tuple[str, str]]:
    where = f"{one.from_url} -> {one.url}" if one.from_url else one.url
    also = {"moved": "and changed", "restored": "back, and changed"}.get(one.change, "") if one.edited else ""
    said = also or ("back" if one.change == "restored" else "")
    return [where, (f"  {said}", "dim") if said else ""]
