"""What others are to be told of a crawl, written down for whoever delivers it."""

from kept.model.generation import GenerationState, Tally
from kept.model.source import Source
from kept.store import notices
from kept.store.database import Connection
from kept.store.notices import Event

STATES = {"activated": GenerationState.ACTIVE, "held": GenerationState.HELD, "failed": GenerationState.ABANDONED}


async def tell(
    tx: Connection,
    source: Source,
    event: Event,
    generation: int | None,
    job: str | None,
    *,
    tally: Tally,
    documents: int | None = None,
    why: str | None = None,
) -> None:
    """Others are to be told, by whoever delivers it. A generation that changed nothing is no news."""
    payload = {
        "source": source.label,
        "generation": generation,
        "state": STATES[event] if generation else None,
        "documents": documents,
        "counts": tally.as_json(),
        "job": job,
        "reason": why,
    }
    await notices.insert(tx, source.id, "operator", event, payload)
    if source.settings.webhook:
        await notices.insert(tx, source.id, "source", event, payload)
