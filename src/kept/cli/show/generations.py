"""How generations read for people."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kept.cli.screen import Part, Screen
from kept.cli.show.marks import COLOURS, PARTIAL
from kept.cli.words import counts, moment

if TYPE_CHECKING:
    from kept.model.generation import Generation
    from kept.model.source import Source


def generations(screen: Screen, of: "Source", found: "Sequence[Generation]") -> None:
    if not found:
        screen.line(f"{of.label} has no generation yet: its first crawl is not finished.")
        return
    head = ["GENERATION", "STATE", "SINCE", "DOCUMENTS", "WHAT HAPPENED"]
    rows: list[list[Part]] = [[(title, "dim") for title in head]]
    for one in found:
        told = [
            "quick" if one.mode == "quick" else "",
            one.reason or "",
            counts(one.tally) if not one.reason or one.job_id else "",
        ]
        told.append(f"partial: {PARTIAL[one.partial]}" if one.partial else "")
        rows.append(
            [
                (str(one.number), "bold"),
                (one.state, COLOURS.get(one.state, "")),
                moment(one.activated_at or one.created_at),
                f"{one.documents:,}",
                "; ".join(part for part in told if part),
            ]
        )
    screen.table(rows, right=[0, 3])
