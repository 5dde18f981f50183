"""Sources: add, refresh, change, list, show and remove them.

add_source       permission, check, quota, probe, insert, enqueue: the one way in, for every interface
refresh_source   quota, enqueue
change_settings  permission, check, quota, update
rename_source    another name: ids, history and schedule stay
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain, count

from kept.crawl import abandon
from kept.crawl.change_rate import (
    change_samples,
    estimate_change_interval,
    is_observed_enough,
    suggest_refresh_interval,
)
from kept.errors import InvalidInput, NotFound
from kept.maintenance import scheduler
from kept.maintenance.next_run import SchedulePolicy, next_run
from kept.model.authority import why_change_refused
from kept.model.generation import Generation, GenerationState
from kept.model.ids import new_id
from kept.model.job import CrawlJob, CrawlMode, JobStatus
from kept.model.root import check_label, derive_name
from kept.model.schedule import parse_schedule
from kept.model.source import (
    Authority,
    Limits,
    Source,
    SourceKind,
    SourceSettings,
    format_label,
    parse_label,
    parse_secret_reference,
)
from kept.secrets import SecretStore
from kept.service import jobs as jobs_service
from kept.service.access import OWNER, Principal, check_page_limit, check_quota, pin_private_hosts
from kept.service.context import Services
from kept.service.jobs import IdempotencyKey
from kept.service.lookup import find_source, load_source
from kept.service.source_options import SourceOptions
from kept.service.source_request import (
    DEFAULT_SOURCE_SETTINGS,
    ResolvedSource,
    SourceRequest,
    check_settings,
    resolve_request,
)
from kept.store import documents, generations, jobs, keys, notifications, sections, sources
from kept.store.database import Connection, Database, ReadableDatabase, current_time


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceView:
    """A source with its state."""

    source: Source
    documents: int
    sections: int
    generation: Generation | None
    upcoming: Generation | None
    last_job: CrawlJob | None
    verified_at: datetime | None
    changes_every: timedelta | None = None  # estimated from its history, once that is a day long
    suggested_interval: timedelta | None = None  # of refreshes, by that estimate
    validators: str | None = None  # "wrong" or "none"; None: they are fine
    webhook_error: str | None = None  # of the last delivery that was given up

    @property
    def state(self) -> str:
        """Return the state: that of a live job, else of a decision that is due, else of what it shows."""
        job = self.last_job
        if job and job.status.is_live:
            return job.status
        if self.upcoming and self.upcoming.state is GenerationState.HELD:
            return "held"
        if job and job.status is JobStatus.FAILED:
            return "failed"
        return "ready" if self.generation else "empty"

    @property
    def next_step(self) -> str | None:
        """Return the commands to choose from where a person has to act, else None."""
        label = self.source.label
        match self.state:
            case "held":
                return f"kept activate {label}, or kept discard {label}"
            case "failed" if self.generation is None:
                return f"kept refresh {label} tries again; kept set {label} changes its settings; kept remove {label}"
            case _:
                return None


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedSource:
    """A source that was added or was there already, and the crawl of it that was enqueued."""

    source: Source
    is_new: bool
    job: CrawlJob


async def add_source(
    services: Services, principal: Principal, request: SourceRequest, idempotency_key: IdempotencyKey | None = None
) -> AddedSource:
    """Add a source and enqueue its first crawl. The same root again is the same source: its next crawl is enqueued.

    Raises InvalidInput for a request that is not valid or not permitted, QuotaExceeded, and SourceUnavailable where
    the root cannot be reached. The same idempotency key again changes nothing, whatever the quota.
    """
    resolved = resolve_request(request, principal)
    return await add_resolved_source(
        services,
        principal,
        resolved,
        name=request.name,
        version=resolved.version if request.version is None else request.version,
        priority=request.priority,
        idempotency_key=idempotency_key,
    )


async def add_resolved_source(
    services: Services,
    principal: Principal,
    resolved: ResolvedSource,
    *,
    name: str | None,
    version: str,
    priority: int = 0,
    idempotency_key: IdempotencyKey | None = None,
) -> AddedSource:
    """Add a source whose root is known to be permitted. Otherwise as ``add_source``."""
    if idempotency_key and (job := await jobs_service.find_previous_job(services.db, principal.name, idempotency_key)):
        async with services.db.snapshot() as snapshot:
            source = await sources.get(snapshot, job.source_id)
        if source:
            return AddedSource(source=source, is_new=False, job=job)
    check_label(name or derive_name(resolved.root, resolved.kind), version)
    known = await _find_known(services, resolved, version)
    if known:
        _check_same_source(principal, known, resolved, name)
        if refusal := why_change_refused(principal.permissions, known, _changed_names(known, resolved)):
            raise InvalidInput(refusal)
    check_page_limit(principal, resolved.settings.limits.max_pages or 0)
    await check_quota(services.db, principal, adds_source=known is None)  # without it, no site is contacted
    resolved = replace(resolved, root_settings=await pin_private_hosts(resolved.root_settings))
    settings = _merge(known, resolved) if known else resolved.settings
    authority = _joint_authority(known, principal)
    origin = services.make_origin(resolved.kind, resolved.root, settings, authority, known.settings if known else None)
    try:
        await origin.probe()
    finally:
        await origin.close()
    if principal.quota.pages and resolved.settings.limits.max_pages is None:
        limits = Limits(max_pages=principal.quota.pages)
        resolved = replace(resolved, root_settings=replace(resolved.root_settings, limits=limits))
    if known:
        await services.reap_jobs()  # a crawl whose worker was killed waits again, and the request joins it
    async with principal.quota_lock:
        await check_quota(services.db, principal, adds_source=known is None)
        source, is_new = await _upsert(services, principal, resolved, name, version)
        if is_new and principal.name:
            async with services.db.transaction() as tx:
                await keys.assign_source_owner(tx, source.id, principal.name)
        job = await jobs_service.request_crawl(
            services.db, source.label, priority=priority, owner=principal.name, idempotency_key=idempotency_key
        )
    return AddedSource(source=source, is_new=is_new, job=job)


async def refresh_source(
    services: Services,
    principal: Principal,
    label: str,
    *,
    mode: CrawlMode | None = None,
    priority: int = 0,
    idempotency_key: IdempotencyKey | None = None,
) -> CrawlJob:
    """Enqueue a crawl of a source. The same idempotency key again enqueues nothing, whatever the quota."""
    db, owner = services.db, principal.name
    await services.reap_jobs()  # a crawl whose worker was killed waits again, and the request joins it
    async with principal.quota_lock:
        if not (idempotency_key and await jobs_service.find_previous_job(db, owner, idempotency_key)):
            await check_quota(db, principal)
        return await jobs_service.request_crawl(
            db, label, mode=mode, priority=priority, owner=owner, idempotency_key=idempotency_key
        )


async def change_settings(services: Services, principal: Principal, label: str, options: SourceOptions) -> Source:
    """Change settings of a source, from its next crawl on. Raises InvalidInput and QuotaExceeded."""
    limit = options.apply_to(replace(DEFAULT_SOURCE_SETTINGS, limits=Limits(max_pages=1))).limits.max_pages
    check_page_limit(principal, math.inf if limit is None else limit)
    before = await load_source(services.db, label)
    settings = options.apply_to(before.settings)
    check_settings(settings, options, principal.permissions)

    def change(old: SourceSettings) -> SourceSettings:
        changed = options.changes(old)  # of the settings as they are now: the owner may have given it more meanwhile
        if refusal := why_change_refused(principal.permissions, replace(before, settings=old), changed):
            raise InvalidInput(refusal)
        return options.apply_to(old).record_given(changed, principal.authority)

    services.make_origin(before.kind, before.root, change(before.settings), before.authority, before.settings)
    return await update_settings(services.db, label, change, services.secrets, services.schedule_policy)


async def rename_source(db: Database, label: str, new: str) -> Source:
    """Give a source another name; its ids, history, settings and schedule stay. Raises NotFound and InvalidInput.

    ``new`` is a name, or a label such as ``django@5.2``; without a version the source keeps its own.
    """
    name, version = parse_label(new)
    async with db.transaction(durable=True) as tx:
        source = await find_source(tx, label)
        version = version if "@" in new else source.version
        check_label(name, version)
        await sources.lock(tx, source.id)
        if not await sources.rename(tx, source.id, name=name, version=version):
            taken = format_label(name, version)
            raise InvalidInput(f"'{taken}' is taken, or keeps the same root. 'kept list' shows what there is.")
    return replace(source, name=name, version=version)


async def _find_known(services: Services, resolved: ResolvedSource, version: str) -> Source | None:
    try:
        async with services.db.snapshot() as snapshot:
            return await sources.by_root(snapshot, resolved.root, version)
    except NotFound:  # no database yet: it is created when the root has been reached
        return None


async def _upsert(
    services: Services, principal: Principal, resolved: ResolvedSource, name: str | None, version: str
) -> tuple[Source, bool]:
    """Return the source, and whether it is new. One that was there gets the settings of the request."""
    source, is_new = await get_or_create_source(
        services.db,
        root=resolved.root,
        kind=resolved.kind,
        name=name or derive_name(resolved.root, resolved.kind),
        version=version,
        settings=resolved.settings,
        secrets=services.secrets,
        number_if_taken=name is None,
        schedule_policy=services.schedule_policy,
        authority=resolved.authority,
    )
    if not is_new:
        _check_same_source(principal, source, resolved, name)  # another request may have added it meanwhile
    if not is_new and resolved.authority is Authority.OWNER and source.authority is Authority.CALLER:
        async with services.db.transaction() as tx:  # the owner has named it too, so it is theirs from now on
            await sources.set_authority(tx, source.id, Authority.OWNER)
        source = replace(source, authority=Authority.OWNER)
    if not is_new and _merge(source, resolved) != source.settings:
        known = source
        source = await update_settings(
            services.db,
            source.label,
            lambda old: _merge(replace(known, settings=old), resolved),
            services.secrets,
            services.schedule_policy,
        )
    return source, is_new


def _check_same_source(principal: Principal, known: Source, resolved: ResolvedSource, name: str | None) -> None:
    """Raise InvalidInput where adding a root that is kept would rename its source, or change it by accident.

    The owner at the command line means the settings they type; a caller may not know that the source is there.
    """
    if name is not None and name != known.name:
        raise InvalidInput(
            f"{known.root} is kept already, as '{known.label}'. Leave out the name to refresh it, or add it with "
            f"another version; 'kept rename {known.label} {name}' gives it the other name."
        )
    merged = _merge(known, resolved)
    access = replace(merged.access, allowed=known.settings.access.allowed)  # the root's own host
    merged = replace(merged, access=access, given_by=known.settings.given_by)
    if principal is not OWNER and merged != known.settings:
        raise InvalidInput(
            f"{known.root} is kept already, as '{known.label}', with other settings. Nothing was changed. Leave out "
            f"the settings to refresh it; 'kept set {known.label}' or PATCH /api/v1/sources/{known.label} changes them."
        )


def _merge(known: Source, resolved: ResolvedSource) -> SourceSettings:
    """Return the settings of a known source whose root is named once more.

    That its host may be private is decided again only by one who could have decided it in the first place.
    """
    settings, new = known.settings, resolved.root_settings
    may_decide = resolved.authority is Authority.OWNER or known.authority is Authority.CALLER
    allowed = new.access.allowed if may_decide else ()
    headers = {header.name.lower(): header for header in (*settings.access.headers, *new.access.headers)}
    access = replace(settings.access, allowed=allowed or settings.access.allowed, headers=tuple(headers.values()))
    scope = replace(settings.scope, pages=new.scope.pages)
    merged = resolved.options.apply_to(replace(settings, scope=scope, access=access))
    return merged.record_given(_names_given(known, resolved), resolved.authority)


def _names_given(known: Source, resolved: ResolvedSource) -> list[str]:
    """Return the settings that are this request's from now on. A caller does not take over what stays as it is."""
    return resolved.given_names if resolved.authority is Authority.OWNER else _changed_names(known, resolved)


def _changed_names(known: Source, resolved: ResolvedSource) -> list[str]:
    login = ["header"] if resolved.root_settings.access.headers else []
    return [*login, *resolved.options.changes(known.settings)]


def _joint_authority(known: Source | None, principal: Principal) -> Authority:
    """Return the authority of a source that is named by this principal: the owner's where either is the owner."""
    is_owners = principal.authority is Authority.OWNER or (known and known.authority is Authority.OWNER)
    return Authority.OWNER if is_owners else Authority.CALLER


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
    authority: Authority = Authority.OWNER,
) -> tuple[Source, bool]:
    """Return the source with this root and version, inserted if it is new, and whether it is. Raises InvalidInput.

    ``secrets`` stores the secret values of the settings; without it, there must be none.
    ``number_if_taken``: where the name is taken it becomes name-2, name-3 …
    """
    check_label(name, version)
    sealed = _seal_secrets(settings, secrets)
    source, is_new = None, False
    try:
        source, is_new = await _insert(
            db, root, kind, name, version, sealed, number_if_taken, schedule_policy, authority
        )
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
    authority: Authority,
) -> tuple[Source, bool]:
    async with db.transaction(durable=True) as tx:
        for free in chain([name], (f"{name}-{number}" for number in count(2)) if number_if_taken else []):
            if known := await sources.by_root(tx, root, version):
                return known, False
            if await sources.insert(
                tx,
                id=new_id(),
                name=free,
                version=version,
                kind=kind,
                root=root,
                settings=settings,
                authority=authority,
            ):
                inserted = await sources.by_label(tx, free, version)
                assert inserted is not None, "inserted by the statement before"
                return await schedule_next_run(tx, inserted, schedule_policy), True
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
    """Change the settings of a source, from its next crawl on. Raises NotFound."""
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
    """Return one source with its state and what follows from its history. Raises NotFound."""
    async with db.snapshot() as snapshot:
        source = await find_source(snapshot, label)
        view = await _view(snapshot, source)
        samples = change_samples(await generations.all(snapshot, source.id))
        undelivered = await notifications.latest_undelivered(snapshot, source.id)
        has_validators = await documents.has_validators(snapshot, source.id) if source.kind is SourceKind.WEB else None
    if is_observed_enough(samples):
        interval = suggest_refresh_interval(samples, (schedule_policy or SchedulePolicy()).bounds)
        view = replace(view, changes_every=estimate_change_interval(samples), suggested_interval=interval)
    validators = "wrong" if source.validators_wrong_at else "none" if has_validators is False else None
    return replace(view, validators=validators, webhook_error=undelivered.error if undelivered else None)


async def is_schedule_obeyed(db: ReadableDatabase) -> bool:
    """Return whether a worker or server obeyed the schedules of this database within the last minutes."""
    return await scheduler.is_running(db)


async def schedule_next_run(tx: Connection, source: Source, schedule_policy: SchedulePolicy | None) -> Source:
    """Store the next run of a source by its schedule; one that is overdue is due now."""
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
    """Hide a source, free its name and delete its secrets. Its rows are deleted by garbage collection."""
    async with db.transaction(durable=True) as tx:
        source = await find_source(tx, label, exact=True)
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
    """Return the settings with references in place of secret values: those never get into the database."""
    if secrets:
        return secrets.seal(settings, before)
    access = settings.access
    values = [*(header.value for header in access.headers), access.proxy, settings.webhook_secret, settings.hook_secret]
    assert all(parse_secret_reference(value) for value in values if value), "secret values need a store"
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
