"""Which kept version fits to a wanted one, and what changed in a source since a moment."""

import re
from datetime import UTC, datetime
from typing import Any

from kept.errors import NoSuchThing
from kept.model.duration import parse_since
from kept.model.generation import Generation, GenerationState
from kept.service import generations, shapes, sources
from kept.service.house import House


async def find_version(house: House, name: str, target: str) -> dict[str, Any]:
    """The exact version, else the newest of the same line that is not newer, else the next newer of that line."""
    kept = [view.source.version for view in await sources.list_sources(house.db) if view.source.name == name]
    if not kept:
        await sources.show_source(house.db, name)  # says which source was perhaps meant
    versions = sorted(kept, key=_numbers)
    return {"source": name, "target": target, "best": best_version(versions, target), "versions": versions}


def best_version(versions: list[str], target: str) -> str | None:
    """``versions`` from old to new; one without a label is what there is when nothing else fits."""
    wanted = _numbers(target)
    if target in versions or not wanted:
        return target if target in versions else versions[-1]
    line = [one for one in versions if _numbers(one)[:1] == wanted[:1]]
    older = [one for one in line if _numbers(one)[: len(wanted)] <= wanted]
    fitting = older or line[:1] or [one for one in versions if not one]
    return fitting[-1] if fitting else None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d{1,9}", version))


async def what_changed(house: House, label: str, since: str | None) -> dict[str, Any]:
    """What differs between the active generation and the one that was active at a moment; else the one before."""
    source, found = await generations.list_generations(house.db, label)
    shown = sorted(
        (one for one in found if one.state in (GenerationState.ACTIVE, GenerationState.RETIRED)),
        key=lambda one: one.number,
    )
    if not shown:
        raise NoSuchThing(f"{source.label} has no generation yet. 'kept jobs' shows how its crawl goes.")
    first = _at(shown, parse_since(since, datetime.now(UTC))) if since else shown[max(0, len(shown) - 2)]
    difference = await generations.diff(house.db, source.label, first.number, shown[-1].number, house.rules)
    return shapes.diff(difference)


def _at(shown: list[Generation], moment: datetime) -> Generation:
    before = [one for one in shown if one.activated_at and one.activated_at <= moment]
    return (before or shown[:1])[-1]
