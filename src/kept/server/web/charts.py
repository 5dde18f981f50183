"""Small charts as numbers that a template draws."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kept.service.generations import TimelineEntry

WIDTH, HEIGHT = 600, 120


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationBar:
    """What one generation did: parts stacked from below, each its share of the tallest."""

    number: int
    summary: str
    parts: list[tuple[str, float, float]]  # what, where it begins from above, how tall; of 100


def generation_bars(steps: Sequence[TimelineEntry], latest: int = 16) -> list[GenerationBar]:
    """The latest generations that were shown, the oldest first. Heights are roots: one change is seen beside 500."""
    shown = [step for step in steps if step.generation.activated_at][:latest][::-1]
    tallest = max((_height(step) for step in shown), default=0) or 1.0
    return [_bar(step, tallest) for step in shown]


def _height(step: TimelineEntry) -> float:
    return math.sqrt(step.added + step.changed + step.moved + step.lost)


def _bar(step: TimelineEntry, tallest: float) -> GenerationBar:
    counts = {"added": step.added, "changed": step.changed, "moved": step.moved, "lost": step.lost}
    total, top, parts = sum(counts.values()), 100.0, []
    for what, count in counts.items():
        tall = 100 * _height(step) / tallest * count / total if total else 0.0
        top -= tall
        if count:
            parts.append((what, round(top, 1), round(tall, 1)))
    said = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count) or "nothing changed"
    return GenerationBar(number=step.generation.number, summary=said, parts=parts)


def polyline_points(progress: Sequence[tuple[float, int]]) -> str:
    """The points of a line from the lower left corner: how much was done, over the time it took."""
    if not progress:
        return ""
    longest, most = max(progress[-1][0], 0.001), progress[-1][1] or 1
    step = max(1, len(progress) // 200)
    picked = [*progress[::step], progress[-1]]
    points = [(WIDTH * max(0.0, at) / longest, HEIGHT - HEIGHT * done / most) for at, done in picked]
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in [(0.0, float(HEIGHT)), *points])
