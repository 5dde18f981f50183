"""Asking over the network: what callers of the server may have added and crawled, each within their quota."""

import asyncio
import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

from kept.errors import InvalidInput, QuotaExceeded
from kept.model.job import CrawlJob, CrawlMode
from kept.model.key import KeyScope
from kept.model.source import Limits, Source
from kept.service import jobs, keeping, keys, source_request, uploads
from kept.service import sources as kept
from kept.service.context import Services
from kept.service.jobs import IdempotencyKey
from kept.service.keys import Quota
from kept.service.source_options import SourceOptions
from kept.service.source_request import Permissions, SourceRequest
from kept.store import sources


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who asks, and what they may."""

    name: str | None = None  # of their key; None: they need none
    scope: KeyScope = KeyScope.READ
    permissions: Permissions = Permissions()
    quota: Quota = Quota()
    quota_lock: asyncio.Lock = field(
        default_factory=asyncio.Lock
    )  # of all with this key: two at once would both find room


async def add_source(
    services: Services,
    principal: Principal,
    request: SourceRequest,
    *,
    name: str | None = None,
    version: str | None = None,
    priority: int = 0,
    idempotency_key: IdempotencyKey | None = None,
) -> tuple[Source, bool, CrawlJob]:
    """The source of a wish, whether it is new, and the crawl of it that was asked for.

    The same request again changes nothing and makes nothing, whatever the quota.
    """
    if idempotency_key and (before := await jobs.find_previous_job(services.db, principal.name, idempotency_key)):
        async with services.db.snapshot() as snapshot:
            source = await sources.get(snapshot, before.source_id)
        if source:
            return source, False, before
    services.check_source(request.kind, request.root, request.settings)
    version = request.version if version is None else version
    if principal.quota.pages and request.settings.limits.max_pages is None:
        request = replace(
            request, root_settings=replace(request.root_settings, limits=Limits(max_pages=principal.quota.pages))
        )
    async with principal.quota_lock:
        await _check_quota(services, principal, request, version)
        source, is_new = await keeping.upsert_source(services, request, name=name, version=version)
        if is_new and principal.name:
            await keys.assign_owner(services.db, source, principal.name)
        job = await jobs.request_crawl(
            services.db, source.label, priority=priority, owner=principal.name, idempotency_key=idempotency_key
        )
    return source, is_new, job


async def add_upload(
    services: Services,
    principal: Principal,
    uploads_folder: Path,
    file: BinaryIO,
    filename: str,
    *,
    name: str | None,
    version: str,
) -> tuple[Source, bool, CrawlJob]:
    """Keeps a file, or what is in a zip, in the server's folder. Nothing is written there that may not be kept."""
    called, wish = uploads.build_request(uploads_folder, filename, name=name, version=version)
    await _check_quota(services, principal, wish, version)
    async with services.db.snapshot() as snapshot:
        other = await sources.by_label(snapshot, called, version)
    if other and other.root != wish.root:
        raise InvalidInput(
            f"There is already a source named '{other.label}', and it was not uploaded. Choose another name."
        )
    await asyncio.to_thread(uploads.store_upload, file, filename, wish)
    return await add_source(services, principal, wish, name=called, version=version)


async def remove_source_and_upload(services: Services, label: str, uploads_folder: Path) -> Source:
    """Removes a source, and what was uploaded for it to the server's folder."""
    source = await kept.remove_source(services.db, label, services.secrets)
    await asyncio.to_thread(uploads.delete_upload, uploads_folder, source)
    return source


async def change_settings(services: Services, principal: Principal, label: str, options: SourceOptions) -> Source:
    """The source with what was given; it holds from its next crawl on."""
    pages = options.apply_to(
        replace(source_request.DEFAULT_SOURCE_SETTINGS, limits=Limits(max_pages=1))
    ).limits.max_pages
    _check_page_quota(principal, math.inf if pages is None else pages)
    return await keeping.check_and_update_settings(services, label, options, principal.permissions)


async def request_crawl(
    services: Services,
    principal: Principal,
    label: str,
    *,
    mode: CrawlMode | None = None,
    priority: int = 0,
    idempotency_key: IdempotencyKey | None = None,
) -> CrawlJob:
    """The crawl that was asked for. The same request again is no other crawl, whatever the quota."""
    async with principal.quota_lock:
        if principal.name and not (
            idempotency_key and await jobs.find_previous_job(services.db, principal.name, idempotency_key)
        ):
            await keys.check_quota(services.db, principal.name, principal.quota)
        return await jobs.request_crawl(
            services.db, label, mode=mode, priority=priority, owner=principal.name, idempotency_key=idempotency_key
        )


async def _check_quota(services: Services, principal: Principal, request: SourceRequest, version: str) -> None:
    """LimitReached where the asker may not have this source, or another crawl."""
    _check_page_quota(principal, request.settings.limits.max_pages or 0)
    if principal.name is None:
        return
    async with services.db.snapshot() as snapshot:
        known = await sources.by_root(snapshot, request.root, version) is not None
    await keys.check_quota(services.db, principal.name, principal.quota, adds_source=not known)


def _check_page_quota(principal: Principal, pages: float) -> None:
    if principal.quota.pages and pages > principal.quota.pages:
        raise QuotaExceeded(f"No source of this key may have more than {principal.quota.pages} pages.")
