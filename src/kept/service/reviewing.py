"""A held generation, as it would be: its base, plus its own versions, minus its losses."""

from kept.crawl.plan import Plan, plan
from kept.crawl.sweep import Rules
from kept.model.generation import Generation
from kept.store import documents, generations, jobs
from kept.store.database import Connection, Row, moment


async def planned(db: Connection, held: Generation, rules: Rules) -> tuple[Generation, Plan]:
    """The base of a held generation, and what activating it would do."""
    base, job = await generations.get(db, held.source_id, held.base or 0), await jobs.get(db, held.job_id or "")
    assert base is not None, "only a generation with a base is held"
    assert job is not None, "a held generation was made by a job"
    return base, await plan(db, held, base, job, rules, await moment(db))


async def would_show(db: Connection, held: Generation, document: str, rules: Rules) -> Row | None:
    """What a held generation would show of a document."""
    base, made = await planned(db, held, rules)
    arrived = {adoption.document: adoption.arrival.document for adoption in made.adoptions}
    if document in made.ended or document in {one.document for one in made.dropped}:
        return None
    brought = await documents.version_born_in(db, arrived.get(document, document), held.number)
    return brought or await documents.in_generation(db, document, base.number)
