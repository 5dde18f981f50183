"""Coordinates of the small charts that templates draw."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kept.service.generations import TimelineEntry

WIDTH, HEIGHT = 600, 120


@dataclass(frozen=True, slots=True, kw_only=True)
class BarPart:
    """The documents of one kind of change; top and height in percent of the chart."""

    change: str
    top: float
    height: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationBar:
    """The changes of one generation, stacked from the bottom."""

    number: int
    summary: str
    parts: list[BarPart]


def generation_bars(entries: Sequence[TimelineEntry], latest: int = 16) -> list[GenerationBar]:
    """Return bars for the latest activated generations, the oldest first. Heights are square roots, so that one change
    is visible next to 500."""
    shown = [entry for entry in entries if entry.generation.activated_at][:latest][::-1]
    tallest = max((_height(entry) for entry in shown), default=0) or 1.0
    return [_bar(entry, tallest) for entry in shown]


def _height(entry: TimelineEntry) -> float:
    return math.sqrt(entry.added + entry.changed + entry.moved + entry.lost)


def _bar(entry: TimelineEntry, tallest: float) -> GenerationBar:
    counts = {"added": entry.added, "changed": entry.changed, "moved": entry.moved, "lost": entry.lost}
    total, top, parts = sum(counts.values()), 100.0, []
    for change, count in counts.items():
        height = 100 * _height(entry) / tallest * count / total if total else 0.0
        top -= height
        if count:
            parts.append(BarPart(change=change, top=round(top, 1), height=round(height, 1)))
    summary = ", ".join(f"{count:,} {change}" for change, count in counts.items() if count) or "nothing changed"
    return GenerationBar(number=entry.generation.number, summary=summary, parts=parts)


def polyline_points(progress: Sequence[tuple[float, int]]) -> str:
    """Return the points of an SVG polyline: URLs done over seconds, from the lower left corner."""
    if not progress:
        return ""
    last_second, last_count = max(progress[-1][0], 0.001), progress[-1][1] or 1
    step = max(1, len(progress) // 200)
    picked = [*progress[::step], progress[-1]]
    points = [(WIDTH * max(0.0, at) / last_second, HEIGHT - HEIGHT * done / last_count) for at, done in picked]
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in [(0.0, float(HEIGHT)), *points])
