"""A held generation, as it would be: its base, plus its own versions, minus its losses."""

from kept.crawl.activation_plan import ActivationPlan, plan_activation
from kept.crawl.lifecycle import LifecycleRules
from kept.model.generation import Generation
from kept.store import documents, generations, jobs
from kept.store.database import Connection, Row, current_time


async def plan_held_activation(
    db: Connection, held: Generation, rules: LifecycleRules
) -> tuple[Generation, ActivationPlan]:
    """The base of a held generation, and what activating it would do."""
    base, job = await generations.get(db, held.source_id, held.base or 0), await jobs.get(db, held.job_id or "")
    assert base is not None, "only a generation with a base is held"
    assert job is not None, "a held generation was made by a job"
    return base, await plan_activation(db, held, base, job, rules, await current_time(db))


async def preview_held_document(db: Connection, held: Generation, document: str, rules: LifecycleRules) -> Row | None:
    """What a held generation would show of a document."""
    base, made = await plan_held_activation(db, held, rules)
    arrived = {adoption.document: adoption.new_page.document for adoption in made.matches}
    if document in made.ended_documents or document in {one.document for one in made.dropped}:
        return None
    brought = await documents.version_born_in(db, arrived.get(document, document), held.number)
    return brought or await documents.version_in_generation(db, document, base.number)
