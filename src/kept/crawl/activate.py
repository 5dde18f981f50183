"""Activation: a finished generation becomes active, or is held by the brake; and how jobs fail.

    start ──► (crawl) ──► activate ──► active, or held
                              held ──► activate_held · discard_held · abandoned by the next crawl

A crawl only adds rows; activation makes them visible, in one transaction. Before it commits every query sees all of
the base, after it all of the new generation.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from kept.crawl.abandon import clear_abandoned
from kept.crawl.activation_plan import ActivationPlan, plan_activation
from kept.crawl.change_rate import is_validator_wrong
from kept.crawl.document_matching import resolve_redirects
from kept.crawl.lifecycle import LifecycleRules
from kept.crawl.locks import lock_leased_job, lock_source
from kept.crawl.notifications import notify
from kept.errors import LeaseLost, NotFound
from kept.model.frontier import Outcome
from kept.model.generation import Generation, GenerationState, Tally
from kept.model.ids import new_id
from kept.model.job import CrawlJob, CrawlMode, JobStatus, Lease
from kept.model.source import Source
from kept.store import changes, documents, frontier, generations, jobs, sections, sources
from kept.store.database import Connection, Database, current_time

REVIEWED_REASON = "it was held, and activated after a review"


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivationResult:
    """How a crawl ended."""

    generation: int
    hold_reason: str | None  # None: it is active


async def activate(
    db: Database, lease: Lease, rules: LifecycleRules, *, now: datetime | None = None
) -> ActivationResult | None:
    """Activate the generation of a finished crawl, or hold it.

    Returns None if entries are still open, if another worker was first, or if the job failed here: its base is no
    longer active, or the root of a first crawl could not be kept. Raises LeaseLost if this worker was replaced.
    """
    async with db.transaction() as tx:  # in its own transaction: activation has to be short
        await sections.refresh_term_statistics(tx)
    async with db.transaction(durable=True) as tx:
        source, job = await lock_leased_job(tx, lease)
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
        plan = await plan_activation(tx, generation, base, job, rules, now or await current_time(tx))
        if plan.hold_reason and base:
            await _hold_for_review(tx, source, generation, base, job, plan)
        else:
            await _apply_plan(tx, source, generation, base, job, plan)
        await jobs.complete(tx, job.id, held=plan.hold_reason is not None, tally=plan.tally)
        await _enqueue_follow_up(tx, job)
    return ActivationResult(generation=generation.number, hold_reason=plan.hold_reason)


async def complete_without_generation(tx: Connection, job: CrawlJob) -> CrawlJob:
    """Complete a locked job that has nothing to do. The active generation stays, and so does one that is held."""
    await jobs.complete(tx, job.id, held=False, tally=job.progress.tally)
    await _enqueue_follow_up(tx, job)
    return replace(job, status=JobStatus.COMPLETED)


async def activate_held(db: Database, source_id: str, rules: LifecycleRules, *, now: datetime | None = None) -> int:
    """Activate the held generation of a source, after a review. Returns its number."""
    await clear_abandoned(db, source_id)
    async with db.transaction(durable=True) as tx:
        source = await lock_source(tx, source_id)
        generation = await _get_held_generation(tx, source)
        job = await jobs.get(tx, generation.job_id or "")
        assert job is not None, "a held generation was built by a job"
        generation, base = await _get_generation_and_base(tx, source, job)
        plan = await plan_activation(tx, generation, base, job, rules, now or await current_time(tx))
        plan = replace(plan, tally=generation.tally)  # the job's tally was completed when the generation was held
        await _apply_plan(tx, source, generation, base, job, plan)
    return generation.number


async def discard_held(db: Database, source_id: str) -> int:
    """Abandon the held generation of a source, after a review. Returns its number."""
    async with db.transaction(durable=True) as tx:
        source = await lock_source(tx, source_id)
        generation = await _get_held_generation(tx, source)
        await generations.transition(tx, generation, GenerationState.ABANDONED, "discarded")
    await clear_abandoned(db, source_id)
    return generation.number


async def fail_leased_job(db: Database, lease: Lease, error: str) -> None:
    """Fail a worker's job and abandon its generation; the active one stays. A paused job is left alone."""
    async with db.transaction(durable=True) as tx:
        _, job = await lock_leased_job(tx, lease)
        if job.status is JobStatus.PROCESSING:
            await fail_job(tx, await jobs.update_progress(tx, job.id) or job, error)


async def fail_job(tx: Connection, job: CrawlJob, error: str) -> None:
    """Fail a job that no worker holds and abandon its generation."""
    generation = job.generation and await generations.get(tx, job.source_id, job.generation)
    await _fail_with_generation(tx, job, generation or None, error)


# The parts of these transactions --------------------------------------------------------------------------------


async def _get_generation_and_base(
    tx: Connection, source: Source, job: CrawlJob
) -> tuple[Generation, Generation | None]:
    """Return the generation to activate and its base. Raises LeaseLost while an abandoned one is not cleared."""
    generation = await generations.get(tx, source.id, job.generation or 0)
    assert generation is not None, "a job that was started has a generation"
    if await generations.list_uncleared(tx, source.id):
        raise LeaseLost("An abandoned generation has to be deleted first.")
    base = await generations.get(tx, source.id, generation.base) if generation.base else None
    return generation, base


async def _hold_for_review(
    tx: Connection,
    source: Source,
    generation: Generation,
    base: Generation,
    job: CrawlJob,
    plan: ActivationPlan,
) -> None:
    await generations.transition(tx, generation, GenerationState.HELD, plan.hold_reason)
    counts = await changes.count_changes(tx, source.id, generation.number)
    ended = len(plan.removals) + plan.moved_count + len(plan.dropped)
    document_count = base.documents + counts.brought - counts.replacing - ended
    await generations.set_held_counts(
        tx,
        generation,
        documents=document_count,
        tally=plan.tally,
        partial=await _partial_reason(tx, job, base, plan.tally),
    )
    await notify(
        tx,
        source,
        "held",
        generation.number,
        job.id,
        tally=plan.tally,
        documents=document_count,
        reason=plan.hold_reason,
    )


async def _apply_plan(
    tx: Connection,
    source: Source,
    generation: Generation,
    base: Generation | None,
    job: CrawlJob,
    plan: ActivationPlan,
) -> None:
    number = generation.number
    await _apply_document_matches(tx, number, plan)
    if base is not None:
        await _replace_base(tx, source, number, base, job, plan)
    if (
        plan.outcome_updates and job.status is JobStatus.PROCESSING
    ):  # readers of events may have seen every batch so far
        job = await jobs.advance_batch(tx, job.id)
    for update in plan.outcome_updates:
        await frontier.set_outcome(
            tx, job.id, update.url, update.outcome, update.reason, update.document, batch=job.batch
        )
    counts = await changes.count_changes(tx, source.id, number)
    document_count = (base.documents if base else 0) + counts.brought - counts.ended
    has_changed = counts.news + counts.ended > 0 or base is None
    is_active = await generations.activate_generation(
        tx,
        generation,
        documents=document_count,
        tally=plan.tally,
        changed=has_changed,
        whole=job.mode.is_exhaustive,
        partial=await _partial_reason(tx, job, base, plan.tally),
        reason=REVIEWED_REASON if generation.state is GenerationState.HELD else None,
    )
    assert is_active, "it was building or held, and its source is locked"
    await sources.set_active_generation(tx, source.id, number)
    if counts.news or counts.removed or base is None:  # pages that were only read again are no news
        await notify(
            tx,
            source,
            "activated",
            number,
            job.id,
            tally=plan.tally,
            documents=document_count,
            removed=plan.removal_reasons,
        )
    if job.mode is CrawlMode.FULL:
        replaced = [pair for pair in await documents.replaced_validators(tx, source.id, number) if pair[0]]
        if replaced:
            await sources.set_validators_wrong(tx, source.id, wrong=any(is_validator_wrong(*pair) for pair in replaced))


async def _apply_document_matches(tx: Connection, number: int, plan: ActivationPlan) -> None:
    await documents.discard_new(tx, [(page.version_id, page.document) for page in plan.dropped])
    for match in plan.matches:
        await documents.reassign_version(
            tx,
            version_id=match.new_page.version_id,
            provisional_id=match.new_page.document,
            document_id=match.document,
            generation=number,
        )


async def _replace_base(
    tx: Connection, source: Source, number: int, base: Generation, job: CrawlJob, plan: ActivationPlan
) -> None:
    """End, keep or replace the base's versions, and retire the base."""
    await documents.end_versions(tx, plan.removals, generation=number)
    await documents.replace_changed(tx, source.id, generation=number)
    await documents.apply_metadata_updates(tx, job.id)
    await documents.set_lifecycles(tx, plan.lifecycle_changes)
    if not job.mode.is_exhaustive:
        await generations.inherit_settings(tx, source.id, number, inherit_from=base.number)
    await generations.transition(tx, base, GenerationState.RETIRED)


async def _root_failure(tx: Connection, job: CrawlJob, source: Source) -> str | None:
    """Return why a first crawl fails; None if its root was kept, or was skipped but led to pages that were kept."""
    exceptions = await frontier.list_exceptional(tx, job.id)
    redirects = {entry.url: entry.redirect_to for entry in exceptions if entry.redirect_to}
    end = resolve_redirects(source.root, redirects)
    if end is None:
        return f"{source.root} redirects in a circle"
    root = await frontier.get_result(tx, job.id, end)
    if root is None or root.outcome is Outcome.NEW:
        return None
    if root.outcome is Outcome.SKIPPED and job.progress.tally.new:
        return None
    return f"{end}: {root.reason or root.outcome}"


async def _fail_with_generation(tx: Connection, job: CrawlJob, generation: Generation | None, error: str) -> None:
    if generation:
        await generations.transition(tx, generation, GenerationState.ABANDONED, error)
    await jobs.fail(tx, job.id, error)
    if source := await sources.get(tx, job.source_id):
        await notify(tx, source, "failed", job.generation, job.id, tally=job.progress.tally, reason=error)
    await _enqueue_follow_up(tx, job)


async def _enqueue_follow_up(tx: Connection, job: CrawlJob) -> None:
    """Insert the job that was requested while this one ran."""
    if job.again:
        await jobs.insert_follow_up(tx, id=new_id(), job=job.id)


async def _get_held_generation(tx: Connection, source: Source) -> Generation:
    upcoming = await generations.upcoming(tx, source.id)
    if upcoming is None or upcoming.state is not GenerationState.HELD:
        raise NotFound(f"{source.label} has no held generation: there is nothing to decide.")
    return upcoming


async def _partial_reason(tx: Connection, job: CrawlJob, base: Generation | None, tally: Tally) -> str | None:
    """Return why the generation is incomplete, or None."""
    inherited = base.partial if base and not job.mode.is_exhaustive else None
    if job.limited or inherited == "limit":
        return "limit"
    if inherited == "trap" or await frontier.has_trapped(tx, job.id):
        return "trap"
    return "errors" if tally.failed or job.unlisted else None
