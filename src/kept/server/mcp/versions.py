"""Which kept version fits to a wanted one, and what changed in a source since a moment."""

from datetime import UTC, datetime
from typing import Any

from kept.errors import NotFound
from kept.model.duration import parse_since
from kept.model.generation import Generation
from kept.service import generations, search, serializers
from kept.service.context import Services


async def find_version(services: Services, name: str, target: str) -> dict[str, Any]:
    """The version that answers best; None where none does."""
    kept = await search.list_versions(services.db, name)
    try:
        best = (await search.find_version(services.db, name, target)).version
    except NotFound:
        best = None
    return {"source": name, "target": target, "best": best, "versions": kept}


async def what_changed(services: Services, label: str, since: str | None) -> dict[str, Any]:
    """What differs between the active generation and the one that was active at a moment; else the one before."""
    source, found = await generations.list_generations(services.db, label)
    shown = sorted(
        (one for one in found if one.state.is_readable),
        key=lambda one: one.number,
    )
    if not shown:
        raise NotFound(f"{source.label} has no generation yet. 'kept jobs' shows how its crawl goes.")
    first = _generation_at(shown, parse_since(since, datetime.now(UTC))) if since else shown[max(0, len(shown) - 2)]
    difference = await generations.diff_generations(
        services.db, source.label, first.number, shown[-1].number, services.lifecycle_rules
    )
    return serializers.diff(difference)


def _generation_at(shown: list[Generation], moment: datetime) -> Generation:
    before = [one for one in shown if one.activated_at and one.activated_at <= moment]
    return (before or shown[:1])[-1]
