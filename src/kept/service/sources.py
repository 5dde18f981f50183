"""What is kept: sources, their settings, and how they are."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain, count

from kept.crawl import activate
from kept.crawl.history import change_interval, looks, refresh_interval
from kept.errors import WrongCall
from kept.model.generation import Generation, GenerationState
from kept.model.ids import new_id
from kept.model.job import CrawlJob, JobStatus
from kept.model.nouns import dataclass
from kept.model.root import check_label
from kept.model.schedule import parse_schedule
from kept.model.source import Source, SourceKind, SourceSettings, parse_reference
from kept.secrets import Secrets
from kept.service.naming import source_of
from kept.store import documents, generations, jobs, notices, sections, sources
from kept.store.database import Connection, Database, moment
from kept.upkeep.rhythm import Rhythm, next_run


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceView:
    """A source, and how it is."""

    source: Source
    documents: int
    sections: int
    generation: Generation | None
    upcoming: Generation | None
    last_job: CrawlJob | None
    verified_at: datetime | None
    changes_every: timedelta | None = None  # as far as its history tells
    suggested: timedelta | None = None  # how often to refresh it, therefore
    validators: str | None = None  # what is wrong with them: "wrong" or "none"
    untold: str | None = None  # why its webhook was given up, the last time

    @property
    def state(self) -> str:
        """How it is, in one word: what happens to it now, else what waits for a person, else what it has to show."""
        job = self.last_job
        if job and job.status in (JobStatus.PENDING, JobStatus.PROCESSING, JobStatus.PAUSED):
            return job.status
        if self.upcoming and self.upcoming.state is GenerationState.HELD:
            return "held"
        if job and job.status is JobStatus.FAILED:
            return "failed"
        return "ready" if self.generation else "empty"


async def add_source(
    db: Database,
    *,
    root: str,
    kind: SourceKind,
    name: str,
    version: str = "",
    settings: SourceSettings,
    secrets: Secrets | None = None,
    numbered: bool = False,
    rhythm: Rhythm | None = None,
) -> tuple[Source, bool]:
    """The source for this root and version, and whether it is new. The same root again is the same source.

    ``secrets``: where values go that only the site may see; without one, there must be none in the settings.
    ``numbered``: where the name is taken it becomes name-2, name-3 …
    """
    check_label(name, version)
    sealed = _sealed(settings, secrets)
    source, is_new = None, False
    try:
        source, is_new = await _insert(db, root, kind, name, version, sealed, numbered, rhythm)
    finally:
        if secrets and not is_new:
            secrets.forget(sealed)
    return source, is_new


async def _insert(
    db: Database,
    root: str,
    kind: SourceKind,
    name: str,
    version: str,
    settings: SourceSettings,
    numbered: bool,
    rhythm: Rhythm | None,
) -> tuple[Source, bool]:
    async with db.transaction(durable=True) as tx:
        for free in chain([name], (f"{name}-{number}" for number in count(2)) if numbered else []):
            if there := await sources.by_root(tx, root, version):
                return there, False
            if await sources.insert(
                tx, id=new_id(), name=free, version=version, kind=kind, root=root, settings=settings
            ):
                made = await sources.by_label(tx, free, version)
                assert made is not None, "it was made a moment ago"
                return await plan_run(tx, made, rhythm), True
        other = await sources.by_label(tx, name, version)
        kept = f" It keeps {other.root}." if other else ""
        raise WrongCall(f"There is already a source named '{name}'.{kept} Choose another name with --name.")


async def set_source(
    db: Database,
    label: str,
    change: Callable[[SourceSettings], SourceSettings],
    secrets: Secrets | None = None,
    rhythm: Rhythm | None = None,
) -> Source:
    """The source with its settings changed; they hold from its next crawl on."""
    async with db.transaction(durable=True) as tx:
        source = await source_of(tx, label)
        source = await sources.lock(tx, source.id) or source
        changed = replace(source, settings=_sealed(change(source.settings), secrets, source.settings))
        await sources.set_settings(tx, source.id, changed.settings)
        if changed.settings.schedule != source.settings.schedule:
            changed = await plan_run(tx, changed, rhythm)
    if secrets:
        secrets.forget(source.settings, but=changed.settings)
    return changed


async def list_sources(db: Database) -> list[SourceView]:
    async with db.snapshot() as snapshot:
        return [await _view(snapshot, source) for source in await sources.all(snapshot)]


async def show_source(db: Database, label: str, rhythm: Rhythm | None = None) -> SourceView:
    """One source, and what its history tells of it."""
    async with db.snapshot() as snapshot:
        source = await source_of(snapshot, label)
        view = await _view(snapshot, source)
        seen = looks(await generations.all(snapshot, source.id))
        lost = await notices.given_up(snapshot, source.id)
        given = await documents.has_validators(snapshot, source.id) if source.kind is SourceKind.WEB else None
    if seen:
        interval = refresh_interval(seen, (rhythm or Rhythm()).bounds)
        view = replace(view, changes_every=change_interval(seen), suggested=interval)
    validators = "wrong" if source.validators_wrong_at else "none" if given is False else None
    return replace(view, validators=validators, untold=lost.error if lost else None)


async def plan_run(tx: Connection, source: Source, rhythm: Rhythm | None) -> Source:
    """The source with its next run according to its schedule; one that is overdue is due at once."""
    planned, now = parse_schedule(source.settings.schedule), await moment(tx)
    last = await generations.last_verified(tx, source.id)
    at = await next_run(tx, source, planned, rhythm or Rhythm(), now=now, last=last) if planned else None
    await sources.plan_run(tx, source.id, at)
    return replace(source, next_run_at=at)


async def remove_source(db: Database, label: str, secrets: Secrets | None = None) -> Source:
    """Hides the source at once, frees its name and forgets its secrets; garbage collection takes its rows."""
    async with db.transaction(durable=True) as tx:
        source = await source_of(tx, label)
        await sources.lock(tx, source.id)
        if live := await jobs.live(tx, source.id):
            await jobs.cancel(tx, live.id)
        await activate.abandon(tx, source, "the source was removed")
        await sources.hide(tx, source.id)
    if secrets:
        secrets.forget(source.settings)
    return source


def _sealed(settings: SourceSettings, secrets: Secrets | None, before: SourceSettings | None = None) -> SourceSettings:
    """No value that only the site may see gets into the database."""
    if secrets:
        return secrets.seal(settings, before)
    values = [*(header.value for header in settings.access.headers), settings.access.proxy, settings.hook_secret]
    assert all(parse_reference(value) for value in values if value), "secrets need a place"
    return settings


async def _view(db: Connection, source: Source) -> SourceView:
    active = source.active_generation
    generation = await generations.get(db, source.id, active) if active else None
    return SourceView(
        source=source,
        documents=generation.documents if generation else 0,
        sections=await sections.count(db, source.id),
        generation=generation,
        upcoming=await generations.upcoming(db, source.id),
        last_job=await jobs.last(db, source.id),
        verified_at=await generations.last_verified(db, source.id),
    )
