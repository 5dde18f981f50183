"""The life of a generation: begun, activated or held, discarded, cleared away. (Going back is in ``rollback``.)

    begin ──► (the walk) ──► activate ──► active, or held by the brake
                                held ──► activate_held · discard_held · abandoned by the next crawl

A crawl only adds; activation makes it true, in one transaction. Before it commits every query sees all of the
base, after it all of the new generation. An abandoned generation's rows are deleted in small transactions, and
no other generation of its source is activated before they are gone: they would show through.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from kept.crawl.activation_plan import ActivationPlan, plan_activation
from kept.crawl.change_rate import is_validator_wrong
from kept.crawl.document_matching import resolve_redirects
from kept.crawl.initial_frontier import effective_mode, seed_frontier
from kept.crawl.lifecycle import LifecycleRules
from kept.crawl.notifications import notify
from kept.errors import LeaseLost, NotFound
from kept.model.frontier import Outcome
from kept.model.generation import Generation, GenerationState, Tally
from kept.model.ids import new_id
from kept.model.job import CrawlJob, CrawlMode, JobStatus
from kept.model.source import Source
from kept.store import documents, frontier, generations, jobs, sections, sources
from kept.store.database import Connection, Database, current_time
from kept.store.jobs import Lease

CLEAR_BATCH_SIZE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivationResult:
    """How a crawl ended."""

    generation: int
    hold_reason: str | None  # why a person has to look first


async def start_generation(
    db: Database, lease: Lease, *, lists_everything: bool, now: datetime | None = None
) -> CrawlJob:
    """The job, with a generation to fill. What it abandons is cleared away; what was begun before goes on."""
    async with db.transaction() as tx:
        source, job = await _lock_leased_job(tx, lease)
        if job.generation is None:
            await abandon_generation(tx, source, "a newer crawl was begun")
            number = await sources.allocate_generation_number(tx, source.id)
            mode = effective_mode(job, source, lists_everything)
            await generations.insert(tx, source.id, number, job=job.id, mode=mode)
            seeded = await seed_frontier(
                tx, replace(job, mode=mode), source, lists_everything, now or await current_time(tx)
            )
            await jobs.set_generation(tx, job.id, number, discovered=seeded, mode=mode)
            source, job = await _lock_leased_job(tx, lease)
    await clear_abandoned(db, job.source_id)
    return job


async def activate(
    db: Database, lease: Lease, rules: LifecycleRules, *, now: datetime | None = None
) -> ActivationResult | None:
    """Makes a finished crawl true, or holds it. None: it is not finished, or somebody else has done it."""
    async with db.transaction() as tx:  # in one of its own: activation has to be short
        await sections.refresh_term_statistics(tx)
    async with db.transaction(durable=True) as tx:
        source, job = await _lock_leased_job(tx, lease)
        if job.status is not JobStatus.PROCESSING or (await frontier.open_entries(tx, job.id)).has_any:
            return None
        job = await jobs.update_progress(tx, job.id) or job
        generation, base = await _get_generation_and_base(tx, source, job)
        if generation.base != source.active_generation:
            await _fail_with_generation(tx, job, generation, "another generation became active meanwhile")
            return None
        if base is None and (failure := await _root_failure(tx, job, source)):
            await _fail_with_generation(tx, job, generation, failure)
            return None
        made = await plan_activation(tx, generation, base, job, rules, now or await current_time(tx))
        if made.hold_reason and base:
            await _hold_for_review(tx, source, generation, base, job, made)
        else:
            await _apply_plan(tx, source, generation, base, job, made)
        await jobs.complete(tx, job.id, held=made.hold_reason is not None, tally=made.tally)
        await _enqueue_follow_up(tx, job)
    return ActivationResult(generation=generation.number, hold_reason=made.hold_reason)


async def activate_held(db: Database, source_id: str, rules: LifecycleRules, *, now: datetime | None = None) -> int:
    """A person has looked: the held generation becomes true. Its number."""
    await clear_abandoned(db, source_id)
    async with db.transaction(durable=True) as tx:
        source = await lock_source(tx, source_id)
        generation = await _get_held_generation(tx, source)
        job = await jobs.get(tx, generation.job_id or "")
        assert job is not None, "a held generation was made by a job"
        generation, base = await _get_generation_and_base(tx, source, job)
        made = await plan_activation(tx, generation, base, job, rules, now or await current_time(tx))
        made = replace(made, tally=generation.tally)  # the job was counted, moves and all, when it was held
        await _apply_plan(tx, source, generation, base, job, made)
    return generation.number


async def discard_held(db: Database, source_id: str) -> int:
    """A person has looked: the held generation is given up. Its number."""
    async with db.transaction(durable=True) as tx:
        source = await lock_source(tx, source_id)
        generation = await _get_held_generation(tx, source)
        await generations.transition(tx, generation, GenerationState.ABANDONED, "discarded")
    await clear_abandoned(db, source_id)
    return generation.number


async def fail_leased_job(db: Database, lease: Lease, error: str) -> None:
    """The job is given up; what it built is abandoned, what is active stays. A paused one waits, and may fail later."""
    async with db.transaction(durable=True) as tx:
        _, job = await _lock_leased_job(tx, lease)
        if job.status is JobStatus.PROCESSING:
            await fail_job(tx, await jobs.update_progress(tx, job.id) or job, error)


async def fail_job(tx: Connection, job: CrawlJob, error: str) -> None:
    """The same, for a job that nobody walks any more."""
    generation = job.generation and await generations.get(tx, job.source_id, job.generation)
    await _fail_with_generation(tx, job, generation or None, error)


async def abandon_generation(tx: Connection, source: Source, reason: str, *, job_id: str | None = None) -> None:
    """What is being built or held (by this job, if one is named) is given up.

    Its rows are cleared away later, before anything else of the source is activated.
    """
    upcoming = await generations.upcoming(tx, source.id)
    if upcoming and (job_id is None or upcoming.job_id == job_id):
        await generations.transition(tx, upcoming, GenerationState.ABANDONED, reason)


async def clear_abandoned(db: Database, source_id: str) -> None:
    """Deletes the rows of abandoned generations, in small transactions."""
    async with db.snapshot() as snapshot:
        numbers = await generations.list_uncleared(snapshot, source_id)
    for number in numbers:
        left = True
        while left:
            async with db.transaction() as tx:
                if await sources.lock(tx, source_id) is None:
                    return  # it was removed, and goes as a whole
                # Under the lock nobody else does this: what another is about to delete would seem to be gone already.
                deleted = await documents.delete_by_generation(tx, source_id, number, limit=CLEAR_BATCH_SIZE)
                left = deleted > 0
                if not left:
                    await generations.mark_cleared(tx, source_id, number)


# The parts of a transaction. Locks are taken in one order everywhere: source, place, job.


async def _lock_leased_job(tx: Connection, lease: Lease) -> tuple[Source, CrawlJob]:
    job = await jobs.get(tx, lease.job_id)
    source = await lock_source(tx, job.source_id if job else "")
    await jobs.lock_lease(tx, lease)
    job = await jobs.lock(tx, lease.job_id)
    if job is None or job.status not in (JobStatus.PROCESSING, JobStatus.PAUSED):
        raise LeaseLost("The job was ended meanwhile.")
    return source, job


async def lock_source(tx: Connection, source_id: str) -> Source:
    """The source, which nobody else changes before this transaction ends. LeaseLost if it is gone."""
    source = await sources.lock(tx, source_id)
    if source is None:
        raise LeaseLost("The source was removed meanwhile.")
    return source


async def _get_generation_and_base(
    tx: Connection, source: Source, job: CrawlJob
) -> tuple[Generation, Generation | None]:
    """The generation that is to become true, and the one it was built on."""
    generation = await generations.get(tx, source.id, job.generation or 0)
    assert generation is not None, "a walked job has its generation"
    if await generations.list_uncleared(tx, source.id):
        raise LeaseLost("An abandoned generation has to be cleared away first.")
    base = await generations.get(tx, source.id, generation.base) if generation.base else None
    return generation, base


async def _hold_for_review(
    tx: Connection,
    source: Source,
    generation: Generation,
    base: Generation,
    job: CrawlJob,
    activation_plan: ActivationPlan,
) -> None:
    await generations.transition(tx, generation, GenerationState.HELD, activation_plan.hold_reason)
    difference = await generations.count_changes(tx, source.id, generation.number)
    gone = len(activation_plan.ended_documents) + activation_plan.moved_count + len(activation_plan.dropped)
    shown = base.documents + difference.brought - difference.replacing - gone
    await generations.set_held_counts(
        tx,
        generation,
        documents=shown,
        tally=activation_plan.tally,
        partial=_partial_reason(job, base, activation_plan.tally),
    )
    await notify(
        tx,
        source,
        "held",
        generation.number,
        job.id,
        tally=activation_plan.tally,
        documents=shown,
        reason=activation_plan.hold_reason,
    )


async def _apply_plan(
    tx: Connection,
    source: Source,
    generation: Generation,
    base: Generation | None,
    job: CrawlJob,
    activation_plan: ActivationPlan,
) -> None:
    number = generation.number
    await _apply_document_matches(tx, number, activation_plan)
    if base is not None:
        await _replace_base(tx, source, number, base, job, activation_plan)
    for one in activation_plan.outcome_updates:
        await frontier.set_outcome(tx, job.id, one.url, one.outcome, one.reason, one.document)
    difference = await generations.count_changes(tx, source.id, number)
    shown = (base.documents if base else 0) + difference.brought - difference.ended
    changed = difference.news + difference.ended > 0 or base is None
    is_active = await generations.activate_generation(
        tx,
        generation,
        documents=shown,
        tally=activation_plan.tally,
        changed=changed,
        whole=job.mode.is_exhaustive,
        partial=_partial_reason(job, base, activation_plan.tally),
    )
    assert is_active, "it was being built, or held, and its source is locked"
    await sources.set_active_generation(tx, source.id, number)
    if difference.news or difference.removed or base is None:  # what another reader made of the same bytes is no news
        await notify(tx, source, "activated", number, job.id, tally=activation_plan.tally, documents=shown)
    if job.mode is CrawlMode.FULL:
        replaced = [pair for pair in await documents.replaced_validators(tx, source.id, number) if pair[0]]
        if replaced:
            await sources.set_validators_wrong(tx, source.id, wrong=any(is_validator_wrong(*pair) for pair in replaced))


async def _apply_document_matches(tx: Connection, number: int, activation_plan: ActivationPlan) -> None:
    await documents.discard_new(tx, [(one.version_id, one.document) for one in activation_plan.dropped])
    for adoption in activation_plan.matches:
        await documents.reassign_version(
            tx,
            version_id=adoption.new_page.version_id,
            provisional_id=adoption.new_page.document,
            document_id=adoption.document,
            generation=number,
        )


async def _replace_base(
    tx: Connection, source: Source, number: int, base: Generation, job: CrawlJob, activation_plan: ActivationPlan
) -> None:
    """What the base showed ends, goes on or is replaced; the base retires."""
    await documents.end_versions(tx, activation_plan.ended_documents, generation=number)
    await documents.replace_changed(tx, source.id, generation=number)
    await documents.apply_metadata_updates(tx, job.id)
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
        for one in activation_plan.lifecycle_changes
    ]
    await documents.set_lifecycles(tx, lifecycles)
    if not job.mode.is_exhaustive:
        await generations.inherit_settings(tx, source.id, number, inherit_from=base.number)
    await generations.transition(tx, base, GenerationState.RETIRED)


async def _root_failure(tx: Connection, job: CrawlJob, source: Source) -> str | None:
    """Why a first crawl has nothing to show; None if its root is kept, or leads to what is without being kept."""
    redirects = {one.url: one.redirect_to for one in await frontier.list_exceptional(tx, job.id) if one.redirect_to}
    end = resolve_redirects(source.root, redirects)
    if end is None:
        return f"{source.root} redirects in a circle"
    root = await frontier.entry(tx, job.id, end)
    if root is None or root["outcome"] == Outcome.NEW:
        return None
    if root["outcome"] == Outcome.SKIPPED and job.progress.tally.new:
        return None
    return f"{end}: {root['reason'] or root['outcome']}"


async def _fail_with_generation(tx: Connection, job: CrawlJob, generation: Generation | None, error: str) -> None:
    if generation:
        await generations.transition(tx, generation, GenerationState.ABANDONED, error)
    await jobs.fail(tx, job.id, error)
    if source := await sources.get(tx, job.source_id):
        await notify(tx, source, "failed", job.generation, job.id, tally=job.progress.tally, reason=error)
    await _enqueue_follow_up(tx, job)


async def _enqueue_follow_up(tx: Connection, job: CrawlJob) -> None:
    """Somebody asked again while this job ran: nothing of that is lost."""
    if job.again:
        await jobs.insert(tx, id=new_id(), source=job.source_id, mode=job.again, priority=job.priority)


async def _get_held_generation(tx: Connection, source: Source) -> Generation:
    upcoming = await generations.upcoming(tx, source.id)
    if upcoming is None or upcoming.state is not GenerationState.HELD:
        raise NotFound(f"{source.label} has no held generation: there is nothing to decide.")
    return upcoming


def _partial_reason(job: CrawlJob, base: Generation | None, tally: Tally) -> str | None:
    """Why the generation is not the whole source; None if it is."""
    if job.limited:
        return "limit"
    if not job.mode.is_exhaustive and base and base.partial == "limit":
        return "limit"
    return "errors" if tally.failed or job.unlisted else None
