"""What is kept: sources, their settings, and how they are."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain, count

from kept.crawl import abandon
from kept.crawl.change_rate import change_samples, estimate_change_interval, suggest_refresh_interval
from kept.errors import InvalidInput
from kept.maintenance.next_run import SchedulePolicy, next_run
from kept.model.generation import Generation, GenerationState
from kept.model.ids import new_id
from kept.model.job import CrawlJob, JobStatus
from kept.model.root import check_label
from kept.model.schedule import parse_schedule
from kept.model.source import Source, SourceKind, SourceSettings, parse_secret_reference
from kept.secrets import SecretStore
from kept.service.lookup import find_source
from kept.store import documents, generations, jobs, notifications, sections, sources
from kept.store.database import Connection, Database, ReadableDatabase, current_time


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
    suggested_interval: timedelta | None = None  # how often to refresh it, therefore
    validators: str | None = None  # what is wrong with them: "wrong" or "none"
    webhook_error: str | None = None  # why its webhook was given up, the last time

    @property
    def state(self) -> str:
        """How it is, in one word: what happens to it now, else what waits for a person, else what it has to show."""
        job = self.last_job
        if job and job.status.is_live:
            return job.status
        if self.upcoming and self.upcoming.state is GenerationState.HELD:
            return "held"
        if job and job.status is JobStatus.FAILED:
            return "failed"
        return "ready" if self.generation else "empty"


async def get_or_create_source(
    db: Database,
    *,
    root: str,
    kind: SourceKind,
    name: str,
    version: str = "",
    settings: SourceSettings,
    secrets: SecretStore | None = None,
    number_if_taken: bool = False,
    schedule_policy: SchedulePolicy | None = None,
) -> tuple[Source, bool]:
    """The source for this root and version, and whether it is new. The same root again is the same source.

    ``secrets``: where values go that only the site may see; without one, there must be none in the settings.
    ``numbered``: where the name is taken it becomes name-2, name-3 …
    """
    check_label(name, version)
    sealed = _seal_secrets(settings, secrets)
    source, is_new = None, False
    try:
        source, is_new = await _insert(db, root, kind, name, version, sealed, number_if_taken, schedule_policy)
    finally:
        if secrets and not is_new:
            secrets.delete(sealed)
    return source, is_new


async def _insert(
    db: Database,
    root: str,
    kind: SourceKind,
    name: str,
    version: str,
    settings: SourceSettings,
    number_if_taken: bool,
    schedule_policy: SchedulePolicy | None,
) -> tuple[Source, bool]:
    async with db.transaction(durable=True) as tx:
        for free in chain([name], (f"{name}-{number}" for number in count(2)) if number_if_taken else []):
            if there := await sources.by_root(tx, root, version):
                return there, False
            if await sources.insert(
                tx, id=new_id(), name=free, version=version, kind=kind, root=root, settings=settings
            ):
                made = await sources.by_label(tx, free, version)
                assert made is not None, "it was made a moment ago"
                return await schedule_next_run(tx, made, schedule_policy), True
        other = await sources.by_label(tx, name, version)
        kept = f" It keeps {other.root}." if other else ""
        raise InvalidInput(f"There is already a source named '{name}'.{kept} Choose another name with --name.")


async def update_settings(
    db: Database,
    label: str,
    change: Callable[[SourceSettings], SourceSettings],
    secrets: SecretStore | None = None,
    schedule_policy: SchedulePolicy | None = None,
) -> Source:
    """The source with its settings changed; they hold from its next crawl on."""
    async with db.transaction(durable=True) as tx:
        source = await find_source(tx, label)
        source = await sources.lock(tx, source.id) or source
        changed = replace(source, settings=_seal_secrets(change(source.settings), secrets, source.settings))
        await sources.set_settings(tx, source.id, changed.settings)
        if changed.settings.schedule != source.settings.schedule:
            changed = await schedule_next_run(tx, changed, schedule_policy)
    if secrets:
        secrets.delete(source.settings, keep=changed.settings)
    return changed


async def list_sources(db: ReadableDatabase) -> list[SourceView]:
    async with db.snapshot() as snapshot:
        return [await _view(snapshot, source) for source in await sources.all(snapshot)]


async def show_source(db: ReadableDatabase, label: str, schedule_policy: SchedulePolicy | None = None) -> SourceView:
    """One source, and what its history tells of it."""
    async with db.snapshot() as snapshot:
        source = await find_source(snapshot, label)
        view = await _view(snapshot, source)
        seen = change_samples(await generations.all(snapshot, source.id))
        lost = await notifications.latest_undelivered(snapshot, source.id)
        given = await documents.has_validators(snapshot, source.id) if source.kind is SourceKind.WEB else None
    if seen:
        interval = suggest_refresh_interval(seen, (schedule_policy or SchedulePolicy()).bounds)
        view = replace(view, changes_every=estimate_change_interval(seen), suggested_interval=interval)
    validators = "wrong" if source.validators_wrong_at else "none" if given is False else None
    return replace(view, validators=validators, webhook_error=lost.error if lost else None)


async def schedule_next_run(tx: Connection, source: Source, schedule_policy: SchedulePolicy | None) -> Source:
    """The source with its next run according to its schedule; one that is overdue is due at once."""
    planned, now = parse_schedule(source.settings.schedule), await current_time(tx)
    last = await generations.last_verified(tx, source.id)
    at = (
        await next_run(tx, source, planned, schedule_policy or SchedulePolicy(), now=now, last=last)
        if planned
        else None
    )
    await sources.set_next_run(tx, source.id, at)
    return replace(source, next_run_at=at)


async def remove_source(db: Database, label: str, secrets: SecretStore | None = None) -> Source:
    """Hides the source at once, frees its name and forgets its secrets; garbage collection takes its rows."""
    async with db.transaction(durable=True) as tx:
        source = await find_source(tx, label)
        await sources.lock(tx, source.id)
        if live := await jobs.lock_live(tx, source.id):
            await jobs.cancel(tx, live.id)
        await abandon.abandon_generation(tx, source, "the source was removed")
        await sources.mark_removed(tx, source.id)
    if secrets:
        secrets.delete(source.settings)
    return source


def _seal_secrets(
    settings: SourceSettings, secrets: SecretStore | None, before: SourceSettings | None = None
) -> SourceSettings:
    """No value that only the site may see gets into the database."""
    if secrets:
        return secrets.seal(settings, before)
    values = [*(header.value for header in settings.access.headers), settings.access.proxy, settings.hook_secret]
    assert all(parse_secret_reference(value) for value in values if value), "secrets need a place"
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
