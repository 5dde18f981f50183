"""The life of a generation: begun, activated or held, discarded, cleared away. (Going back is in ``rollback``.)

    begin ──► (the walk) ──► activate ──► active, or held by the brake
                                held ──► activate_held · discard_held · abandoned by the next crawl

A crawl only adds; activation makes it true, in one transaction. Before it commits every query sees all of the
base, after it all of the new generation. An abandoned generation's rows are deleted in small transactions, and
no other generation of its source is activated before they are gone: they would show through.
"""

from dataclasses import replace
from datetime import datetime

from kept.crawl.history import is_wrong
from kept.crawl.identity import end_of_redirects
from kept.crawl.plan import Plan, plan
from kept.crawl.seeding import mode_of, seed
from kept.crawl.sweep import Rules
from kept.crawl.telling import tell
from kept.errors import LeaseLost, NoSuchThing
from kept.model.frontier import Outcome
from kept.model.generation import Generation, GenerationState, Tally
from kept.model.ids import new_id
from kept.model.job import CrawlJob, CrawlMode, JobStatus
from kept.model.nouns import dataclass
from kept.model.source import Source
from kept.store import documents, frontier, generations, jobs, sections, sources
from kept.store.database import Connection, Database, moment
from kept.store.jobs import Place

CLEARED_AT_ONCE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation:
    """How a crawl ended."""

    generation: int
    held: str | None  # why a person has to look first


async def begin(db: Database, place: Place, *, lists_everything: bool, now: datetime | None = None) -> CrawlJob:
    """The job, with a generation to fill. What it abandons is cleared away; what was begun before goes on."""
    async with db.transaction() as tx:
        source, job = await _hold_job(tx, place)
        if job.generation is None:
            await abandon(tx, source, "a newer crawl was begun")
            number = await sources.take_generation_number(tx, source.id)
            mode = mode_of(job, source, lists_everything)
            await generations.insert(tx, source.id, number, job=job.id, mode=mode)
            seeded = await seed(tx, replace(job, mode=mode), source, lists_everything, now or await moment(tx))
            await jobs.begin_generation(tx, job.id, number, discovered=seeded, mode=mode)
            source, job = await _hold_job(tx, place)
    await clear_abandoned(db, job.source_id)
    return job


async def activate(db: Database, place: Place, rules: Rules, *, now: datetime | None = None) -> Activation | None:
    """Makes a finished crawl true, or holds it. None: it is not finished, or somebody else has done it."""
    async with db.transaction() as tx:  # in one of its own: activation has to be short
        await sections.renew_statistics(tx)
    async with db.transaction(durable=True) as tx:
        source, job = await _hold_job(tx, place)
        if job.status is not JobStatus.PROCESSING or (await frontier.unfinished(tx, job.id)).entries:
            return None
        job = await jobs.count(tx, job.id) or job
        generation, base = await _pair(tx, source, job)
        if generation.base != source.active_generation:
            await _fail(tx, job, generation, "another generation became active meanwhile")
            return None
        if base is None and (failure := await _root_failure(tx, job, source)):
            await _fail(tx, job, generation, failure)
            return None
        made = await plan(tx, generation, base, job, rules, now or await moment(tx))
        if made.hold and base:
            await _hold_back(tx, source, generation, base, job, made)
        else:
            await _make_true(tx, source, generation, base, job, made)
        await jobs.complete(tx, job.id, held=made.hold is not None, tally=made.tally)
        await _follow_up(tx, job)
    return Activation(generation=generation.number, held=made.hold)


async def activate_held(db: Database, source_id: str, rules: Rules, *, now: datetime | None = None) -> int:
    """A person has looked: the held generation becomes true. Its number."""
    await clear_abandoned(db, source_id)
    async with db.transaction(durable=True) as tx:
        source = await lock_source(tx, source_id)
        generation = await _held(tx, source)
        job = await jobs.get(tx, generation.job_id or "")
        assert job is not None, "a held generation was made by a job"
        generation, base = await _pair(tx, source, job)
        made = await plan(tx, generation, base, job, rules, now or await moment(tx))
        made = replace(made, tally=generation.tally)  # the job was counted, moves and all, when it was held
        await _make_true(tx, source, generation, base, job, made)
    return generation.number


async def discard_held(db: Database, source_id: str) -> int:
    """A person has looked: the held generation is given up. Its number."""
    async with db.transaction(durable=True) as tx:
        source = await lock_source(tx, source_id)
        generation = await _held(tx, source)
        await generations.move(tx, generation, GenerationState.ABANDONED, "discarded")
    await clear_abandoned(db, source_id)
    return generation.number


async def fail(db: Database, place: Place, error: str) -> None:
    """The job is given up; what it built is abandoned, what is active stays. A paused one waits, and may fail later."""
    async with db.transaction(durable=True) as tx:
        _, job = await _hold_job(tx, place)
        if job.status is JobStatus.PROCESSING:
            await give_up(tx, await jobs.count(tx, job.id) or job, error)


async def give_up(tx: Connection, job: CrawlJob, error: str) -> None:
    """The same, for a job that nobody walks any more."""
    generation = job.generation and await generations.get(tx, job.source_id, job.generation)
    await _fail(tx, job, generation or None, error)


async def abandon(tx: Connection, source: Source, reason: str, *, job: str | None = None) -> None:
    """What is being built or held (by this job, if one is named) is given up.

    Its rows are cleared away later, before anything else of the source is activated.
    """
    upcoming = await generations.upcoming(tx, source.id)
    if upcoming and (job is None or upcoming.job_id == job):
        await generations.move(tx, upcoming, GenerationState.ABANDONED, reason)


async def clear_abandoned(db: Database, source_id: str) -> None:
    """Deletes the rows of abandoned generations, in small transactions."""
    async with db.snapshot() as snapshot:
        numbers = await generations.uncleared(snapshot, source_id)
    for number in numbers:
        left = True
        while left:
            async with db.transaction() as tx:
                if await sources.lock(tx, source_id) is None:
                    return  # it was removed, and goes as a whole
                # Under the lock nobody else does this: what another is about to delete would seem to be gone already.
                deleted = await documents.delete_of_generation(tx, source_id, number, limit=CLEARED_AT_ONCE)
                left = deleted > 0
                if not left:
                    await generations.mark_cleared(tx, source_id, number)


# The parts of a transaction. Locks are taken in one order everywhere: source, place, job.


async def _hold_job(tx: Connection, place: Place) -> tuple[Source, CrawlJob]:
    job = await jobs.get(tx, place.job_id)
    source = await lock_source(tx, job.source_id if job else "")
    await jobs.hold(tx, place)
    job = await jobs.lock(tx, place.job_id)
    if job is None or job.status not in (JobStatus.PROCESSING, JobStatus.PAUSED):
        raise LeaseLost("The job was ended meanwhile.")
    return source, job


async def lock_source(tx: Connection, source_id: str) -> Source:
    """The source, which nobody else changes before this transaction ends. LeaseLost if it is gone."""
    source = await sources.lock(tx, source_id)
    if source is None:
        raise LeaseLost("The source was removed meanwhile.")
    return source


async def _pair(tx: Connection, source: Source, job: CrawlJob) -> tuple[Generation, Generation | None]:
    """The generation that is to become true, and the one it was built on."""
    generation = await generations.get(tx, source.id, job.generation or 0)
    assert generation is not None, "a walked job has its generation"
    if await generations.uncleared(tx, source.id):
        raise LeaseLost("An abandoned generation has to be cleared away first.")
    base = await generations.get(tx, source.id, generation.base) if generation.base else None
    return generation, base


async def _hold_back(
    tx: Connection, source: Source, generation: Generation, base: Generation, job: CrawlJob, made: Plan
) -> None:
    await generations.move(tx, generation, GenerationState.HELD, made.hold)
    difference = await generations.differences(tx, source.id, generation.number)
    gone = len(made.ended) + made.moved + len(made.dropped)
    shown = base.documents + difference.brought - difference.replacing - gone
    await generations.describe_held(
        tx, generation, documents=shown, tally=made.tally, partial=_partial(job, base, made.tally)
    )
    await tell(tx, source, "held", generation.number, job.id, tally=made.tally, documents=shown, why=made.hold)


async def _make_true(
    tx: Connection, source: Source, generation: Generation, base: Generation | None, job: CrawlJob, made: Plan
) -> None:
    number = generation.number
    await _settle_identities(tx, number, made)
    if base is not None:
        await _succeed(tx, source, number, base, job, made)
    for one in made.relabels:
        await frontier.relabel(tx, job.id, one.url, one.outcome, one.reason, one.document)
    difference = await generations.differences(tx, source.id, number)
    shown = (base.documents if base else 0) + difference.brought - difference.ended
    changed = difference.news + difference.ended > 0 or base is None
    is_active = await generations.activate_generation(
        tx,
        generation,
        documents=shown,
        tally=made.tally,
        changed=changed,
        whole=job.mode.is_whole,
        partial=_partial(job, base, made.tally),
    )
    assert is_active, "it was being built, or held, and its source is locked"
    await sources.point(tx, source.id, number)
    if difference.news or difference.removed or base is None:  # what another reader made of the same bytes is no news
        await tell(tx, source, "activated", number, job.id, tally=made.tally, documents=shown)
    if job.mode is CrawlMode.FULL:
        replaced = [pair for pair in await documents.replaced_validators(tx, source.id, number) if pair[0]]
        if replaced:
            await sources.judge_validators(tx, source.id, wrong=any(is_wrong(*pair) for pair in replaced))


async def _settle_identities(tx: Connection, number: int, made: Plan) -> None:
    await documents.drop(tx, [(one.version_id, one.document) for one in made.dropped])
    for adoption in made.adoptions:
        await documents.adopt(
            tx,
            version_id=adoption.arrival.version_id,
            provisional=adoption.arrival.document,
            document=adoption.document,
            generation=number,
        )


async def _succeed(tx: Connection, source: Source, number: int, base: Generation, job: CrawlJob, made: Plan) -> None:
    """What the base showed ends, goes on or is replaced; the base retires."""
    await documents.end(tx, made.ended, generation=number)
    await documents.replace_changed(tx, source.id, generation=number)
    await documents.carry_over_renewals(tx, job.id)
    lifecycles = [
        {
            "id": one.document,
            "lifecycle": one.lifecycle,
            "since": one.since,
            "missed_crawls": one.missed_crawls,
            "retry_count": one.retry_count,
            "reason": one.reason,
            "verified_at": one.verified_at,
        }
        for one in made.fates
    ]
    await documents.set_lifecycles(tx, lifecycles)
    if not job.mode.is_whole:
        await generations.inherit_settings(tx, source.id, number, heir_of=base.number)
    await generations.move(tx, base, GenerationState.RETIRED)


async def _root_failure(tx: Connection, job: CrawlJob, source: Source) -> str | None:
    """Why a first crawl has nothing to show; None if its root is kept, or leads to what is without being kept."""
    redirects = {one.url: one.redirect_to for one in await frontier.exceptions(tx, job.id) if one.redirect_to}
    end = end_of_redirects(source.root, redirects)
    if end is None:
        return f"{source.root} redirects in a circle"
    root = await frontier.entry(tx, job.id, end)
    if root is None or root["outcome"] == Outcome.NEW:
        return None
    if root["outcome"] == Outcome.SKIPPED and job.progress.tally.new:
        return None
    return f"{end}: {root['reason'] or root['outcome']}"


async def _fail(tx: Connection, job: CrawlJob, generation: Generation | None, error: str) -> None:
    if generation:
        await generations.move(tx, generation, GenerationState.ABANDONED, error)
    await jobs.fail(tx, job.id, error)
    if source := await sources.get(tx, job.source_id):
        await tell(tx, source, "failed", job.generation, job.id, tally=job.progress.tally, why=error)
    await _follow_up(tx, job)


async def _follow_up(tx: Connection, job: CrawlJob) -> None:
    """Somebody asked again while this job ran: nothing of that is lost."""
    if job.again:
        await jobs.insert(tx, id=new_id(), source=job.source_id, mode=job.again, priority=job.priority)


async def _held(tx: Connection, source: Source) -> Generation:
    upcoming = await generations.upcoming(tx, source.id)
    if upcoming is None or upcoming.state is not GenerationState.HELD:
        raise NoSuchThing(f"{source.label} has no held generation: there is nothing to decide.")
    return upcoming


def _partial(job: CrawlJob, base: Generation | None, tally: Tally) -> str | None:
    """Why the generation is not the whole source; None if it is."""
    if job.limited:
        return "limit"
    if not job.mode.is_whole and base and base.partial == "limit":
        return "limit"
    return "errors" if tally.failed or job.unlisted else None
