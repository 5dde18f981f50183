"""Going back: a new generation that shows what an earlier one showed. History stays linear."""

from kept.crawl.activate import abandon_generation, clear_abandoned, lock_source
from kept.crawl.notifications import notify
from kept.errors import NeedsDecision, NotFound
from kept.model.generation import Generation, GenerationState
from kept.model.source import Source
from kept.store import documents, generations, jobs, sources
from kept.store.database import Connection, Database


async def roll_back(db: Database, source_id: str, target: int) -> int:
    """A new generation that shows exactly what an earlier one showed. Its number."""
    why = f"rolled back to {target}"
    async with db.transaction() as tx:
        source = await lock_source(tx, source_id)
        if live := await jobs.lock_live(tx, source.id):
            raise NeedsDecision(f"{source.label} is being crawled (job {live.id}). Wait for it, or cancel it first.")
        await _get_once_active(tx, source, target)  # before anything is given up for it
        await abandon_generation(tx, source, why)
    await clear_abandoned(db, source_id)
    async with db.transaction(durable=True) as tx:
        source = await lock_source(tx, source_id)
        if await jobs.lock_live(tx, source.id) or await generations.list_uncleared(tx, source.id):
            raise NeedsDecision(f"{source.label} was changed at the same moment. Look at it, then try again.")
        shown = await _get_once_active(tx, source, target)
        active = await _get_once_active(tx, source, source.active_generation or 0)
        number = await sources.allocate_generation_number(tx, source.id)
        await generations.insert(tx, source.id, number, job=None, reason=why)
        await generations.inherit_settings(tx, source.id, number, inherit_from=target)
        await documents.roll_back(tx, source.id, target=target, number=number, reason=why)
        await generations.transition(tx, active, GenerationState.RETIRED)
        made = await generations.get(tx, source.id, number)
        assert made is not None, "it was made a moment ago"
        difference = await generations.count_changes(tx, source.id, number)
        documents_now = active.documents + difference.brought - difference.ended
        changed = difference.brought + difference.ended > 0
        await generations.activate_generation(
            tx, made, documents=documents_now, tally=shown.tally, changed=changed, whole=False, partial=shown.partial
        )
        await sources.set_active_generation(tx, source.id, number)
        if changed:
            await notify(tx, source, "activated", number, None, tally=shown.tally, documents=documents_now, reason=why)
        await sources.pause_schedule(tx, source.id)
    return number


async def _get_once_active(tx: Connection, source: Source, number: int) -> Generation:
    generation = await generations.get(tx, source.id, number)
    if not generation or generation.state not in (GenerationState.ACTIVE, GenerationState.RETIRED):
        raise NotFound(f"{source.label} has no generation {number} to go back to. 'kept generations' lists them.")
    return generation
