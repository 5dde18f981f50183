"""Prints generations."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kept.cli.screen import Screen, StyledText
from kept.cli.views.symbols import PARTIAL_REASONS, STATE_COLOURS
from kept.service.formatting import format_counts, format_local_time

if TYPE_CHECKING:
    from kept.model.generation import Generation
    from kept.model.source import Source


def print_generations(screen: Screen, source: "Source", found: "Sequence[Generation]") -> None:
    if not found:
        screen.line(f"{source.label} has no generation yet: its first crawl is not finished.")
        return
    head = ["GENERATION", "STATE", "SINCE", "DOCUMENTS", "WHAT HAPPENED"]
    rows: list[list[StyledText]] = [[(title, "dim") for title in head]]
    for one in found:
        notes = [
            "quick" if one.mode == "quick" else "",
            one.reason or "",
            format_counts(one.tally) if not one.reason or one.job_id else "",
        ]
        notes.append(f"partial: {PARTIAL_REASONS[one.partial]}" if one.partial else "")
        rows.append(
            [
                (str(one.number), "bold"),
                (one.state, STATE_COLOURS.get(one.state, "")),
                format_local_time(one.activated_at or one.created_at),
                f"{one.documents:,}",
                "; ".join(part for part in notes if part),
            ]
        )
    screen.table(rows, align_right=[0, 3])
