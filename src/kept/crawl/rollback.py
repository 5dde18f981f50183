"""Rollback: a new generation with the content of an earlier one. History stays linear."""

from kept.crawl.abandon import abandon_generation, clear_abandoned
from kept.crawl.locks import lock_source
from kept.crawl.notifications import notify
from kept.errors import NeedsDecision, NotFound
from kept.model.changes import MAX_REASONS
from kept.model.generation import Generation, GenerationState
from kept.model.source import Source
from kept.store import changes, documents, generations, jobs, sources
from kept.store.database import Connection, Database


async def roll_back(db: Database, source_id: str, target: int) -> int:
    """Activate a new generation with exactly the content of an earlier one, and pause the schedule. Returns its number.

    Raises NeedsDecision while the source has a live job, and NotFound for a generation that was never active.
    """
    reason = f"rolled back to {target}"
    async with db.transaction() as tx:
        source = await lock_source(tx, source_id)
        if live := await jobs.lock_live(tx, source.id):
            raise NeedsDecision(f"{source.label} is being crawled (job {live.id}). Wait for it, or cancel it first.")
        await _get_readable(tx, source, target)  # before a held generation is abandoned in vain
        await abandon_generation(tx, source, reason)
    await clear_abandoned(db, source_id)
    async with db.transaction(durable=True) as tx:
        source = await lock_source(tx, source_id)
        if await jobs.lock_live(tx, source.id) or await generations.list_uncleared(tx, source.id):
            raise NeedsDecision(f"{source.label} was changed at the same moment. Look at it, then try again.")
        restored = await _get_readable(tx, source, target)
        active = await _get_readable(tx, source, source.active_generation or 0)
        number = await sources.allocate_generation_number(tx, source.id)
        await generations.insert(tx, source.id, number, job=None, reason=reason)
        await generations.inherit_settings(tx, source.id, number, inherit_from=target)
        await documents.roll_back(tx, source.id, target=target, number=number, reason=reason)
        await generations.transition(tx, active, GenerationState.RETIRED)
        created = await generations.get(tx, source.id, number)
        assert created is not None, "it was inserted above"
        counts = await changes.count_changes(tx, source.id, number)
        document_count = active.documents + counts.brought - counts.ended
        has_changed = counts.brought + counts.ended > 0
        await generations.activate_generation(
            tx,
            created,
            documents=document_count,
            tally=restored.tally,
            changed=has_changed,
            whole=False,
            partial=restored.partial,
            reason=reason,
        )
        await sources.set_active_generation(tx, source.id, number)
        if has_changed:
            await notify(
                tx,
                source,
                "activated",
                number,
                None,
                tally=restored.tally,
                documents=document_count,
                reason=reason,
                removed=await changes.removal_reasons(tx, source.id, number, limit=MAX_REASONS),
            )
        await sources.pause_schedule(tx, source.id)
    return number


async def _get_readable(tx: Connection, source: Source, number: int) -> Generation:
    generation = await generations.get(tx, source.id, number)
    if not generation or not generation.state.is_readable:
        raise NotFound(f"{source.label} has no generation {number} to go back to. 'kept generations' lists them.")
    return generation
