"""Generations of a source: list, compare, roll back, and decide about a held one."""

from dataclasses import asdict, dataclass, field

from kept.crawl import activate, rollback
from kept.crawl.activation_plan import ActivationPlan, plan_activation
from kept.crawl.lifecycle import LifecycleRules
from kept.model.changes import MAX_REASONS, ChangeCounts, RemovalReason
from kept.model.document import DifferingVersion, ShownVersion
from kept.model.generation import Generation, GenerationState
from kept.model.job import CrawlJob, JobStatus
from kept.model.source import Source
from kept.service.lookup import find_readable_generation, find_source, load_source
from kept.store import changes, documents, generations, jobs
from kept.store.database import Connection, Database, ReadableDatabase, current_time


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationDiff:
    """The documents that differ between two generations."""

    source: str
    a: int
    b: int
    added: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    moved: list[dict[str, str]] = field(default_factory=list)  # from, to, document


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEntry:
    """A generation, and how many documents it changed."""

    generation: Generation
    added: int = 0
    changed: int = 0
    moved: int = 0
    lost: int = 0

    @property
    def has_changes(self) -> bool:
        return bool(self.added or self.changed or self.moved or self.lost)


async def get_crawl_result(db: ReadableDatabase, job: CrawlJob) -> tuple[Generation | None, list[RemovalReason]]:
    """Return the generation of a completed job, and why it no longer shows documents that its base shows."""
    if job.status is not JobStatus.COMPLETED or job.generation is None:
        return None, []
    async with db.snapshot() as snapshot:
        generation = await generations.get(snapshot, job.source_id, job.generation)
        removed = await changes.removal_reasons(snapshot, job.source_id, job.generation, limit=MAX_REASONS)
    return generation, removed


async def timeline(db: ReadableDatabase, label: str, *, limit: int = 30) -> tuple[Source, list[TimelineEntry]]:
    """Return the latest generations of a source, the newest first, with what each of them changed."""
    async with db.snapshot() as snapshot:
        source = await find_source(snapshot, label)
        found = (await generations.all(snapshot, source.id))[-limit:]
        first = found[0].number if found else 0
        # The first of all is not counted: everything in it is new.
        counts = await changes.changes_by_generation(snapshot, source.id, since=first)
    return source, [_timeline_entry(one, counts.get(one.number)) for one in reversed(found)]


def _timeline_entry(generation: Generation, counts: ChangeCounts | None) -> TimelineEntry:
    if generation.activated_at is None:
        return TimelineEntry(generation=generation)
    if generation.base is None:
        return TimelineEntry(generation=generation, added=generation.documents)
    return TimelineEntry(generation=generation, **asdict(counts or ChangeCounts()))


async def list_generations(db: ReadableDatabase, label: str) -> tuple[Source, list[Generation]]:
    async with db.snapshot() as snapshot:
        source = await find_source(snapshot, label)
        return source, await generations.all(snapshot, source.id)


async def diff_generations(
    db: ReadableDatabase, label: str, a: int, b: int, rules: LifecycleRules | None = None
) -> GenerationDiff:
    """Compare two generations: documents added, removed, changed and moved from ``a`` to ``b``.

    The same bytes, read by another reader, are no change. From its base to a held generation: what activating it would
    do.
    """
    async with db.snapshot() as snapshot:
        source = await find_source(snapshot, label)
        upcoming = await generations.upcoming(snapshot, source.id)
        if upcoming and upcoming.state is GenerationState.HELD and (a, b) == (upcoming.base, upcoming.number):
            return await _diff_held(snapshot, source, upcoming, rules)
        for number in (a, b):
            await find_readable_generation(snapshot, source, number)
        differing = await documents.differing_versions(snapshot, source.id, a, b)
    before = {one.document_id: one for one in differing if one.is_first}
    after = {one.document_id: one for one in differing if not one.is_first}
    both = before.keys() & after.keys()
    moved = [id for id in both if before[id].url != after[id].url]
    return GenerationDiff(
        source=source.label,
        a=a,
        b=b,
        added=sorted(after[id].url for id in after.keys() - both),
        removed=sorted(before[id].url for id in before.keys() - both),
        changed=sorted(after[id].url for id in both if _is_changed(before[id], after[id])),
        moved=sorted(
            ({"from": before[id].url, "to": after[id].url, "document": id} for id in moved),
            key=lambda move: move["to"],
        ),
    )


def _is_changed(before: DifferingVersion, after: DifferingVersion) -> bool:
    return after.is_edited and before.content_hash != after.content_hash


async def _diff_held(db: Connection, source: Source, held: Generation, rules: LifecycleRules | None) -> GenerationDiff:
    """Compare a held generation with its base: its base, plus its own versions, minus its losses."""
    base, plan = await plan_held_activation(db, held, rules or LifecycleRules())
    ended = {id: await documents.version_in_generation(db, id, base.number) for id in plan.removals}
    moved = [
        {"from": adoption.from_url, "to": adoption.new_page.url, "document": adoption.document}
        for adoption in plan.matches
        if await documents.version_in_generation(db, adoption.document, base.number)
    ]
    born = await documents.versions_born_in(db, source.id, held.number)
    placed = {move["to"] for move in moved} | {one.url for one in plan.dropped}
    return GenerationDiff(
        source=source.label,
        a=base.number,
        b=held.number,
        added=sorted(one.url for one in born if not one.replaces and one.url not in placed),
        removed=sorted(one.url for one in ended.values() if one),
        changed=sorted(one.url for one in born if one.replaces and not one.read_again and one.document_id not in ended),
        moved=sorted(moved, key=lambda move: move["to"]),
    )


async def plan_held_activation(
    db: Connection, held: Generation, rules: LifecycleRules
) -> tuple[Generation, ActivationPlan]:
    """Return the base of a held generation, and what activating it would do."""
    base, job = await generations.get(db, held.source_id, held.base or 0), await jobs.get(db, held.job_id or "")
    assert base is not None, "only a generation with a base is held"
    assert job is not None, "a held generation was made by a job"
    return base, await plan_activation(db, held, base, job, rules, await current_time(db))


async def preview_held_document(
    db: Connection, held: Generation, document: str, rules: LifecycleRules
) -> ShownVersion | None:
    """Return the version of a document that a held generation would show: its own, or that of its base."""
    base, plan = await plan_held_activation(db, held, rules)
    new_documents = {adoption.document: adoption.new_page.document for adoption in plan.matches}
    if document in plan.removals or document in {one.document for one in plan.dropped}:
        return None
    own = await documents.version_born_in(db, new_documents.get(document, document), held.number)
    return own or await documents.version_in_generation(db, document, base.number)


async def roll_back(db: Database, label: str, number: int) -> int:
    """Activate a new generation that shows what an earlier one showed. Returns its number."""
    return await rollback.roll_back(db, (await load_source(db, label)).id, number)


async def activate_held(db: Database, label: str, rules: LifecycleRules) -> int:
    return await activate.activate_held(db, (await load_source(db, label)).id, rules)


async def discard_held(db: Database, label: str) -> int:
    return await activate.discard_held(db, (await load_source(db, label)).id)
