"""Databases, sources, leases and scripted sites for tests."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime

from kept.crawl.engine import CrawlRun
from kept.crawl.lifecycle import LifecycleRules
from kept.extract.sections import SectionNode, SectionRules, Unreadable, build_content
from kept.jobs import queue
from kept.jobs.worker import claim_and_run
from kept.model.document import ParsedPage, Validators
from kept.model.frontier import (
    Fetched,
    FrontierEntry,
    Gone,
    ListedUrl,
    ListingFailure,
    NotModified,
    Redirected,
    Refused,
    Unreachable,
    UrlFamily,
    Visit,
)
from kept.model.ids import new_id
from kept.model.job import CrawlJob, CrawlMode, Lease
from kept.model.source import Source, SourceKind, SourceSettings
from kept.origins.origin import AllotHostSlots
from kept.origins.web.traps import find_url_family
from kept.store import documents, jobs, sources
from kept.store.database import Database, open_database

ROOT = "https://docs.test/"
CANONICAL = "canonical: "


@asynccontextmanager
async def database_at(url: str) -> AsyncIterator[Database]:
    db = await open_database(url)
    try:
        yield db
    finally:
        await db.close()


async def make_source(
    db: Database,
    name: str = "docs",
    *,
    version: str = "",
    root: str = ROOT,
    kind: SourceKind = SourceKind.WEB,
    settings: SourceSettings | None = None,
) -> Source:
    async with db.transaction() as tx:
        id = new_id()
        assert await sources.insert(
            tx, id=id, name=name, version=version, kind=kind, root=root, settings=settings or SourceSettings()
        )
        source = await sources.get(tx, id)
    assert source is not None
    return source


async def make_lease(db: Database, *, host: str = "elsewhere/1", pid: int = 1) -> Lease:
    """Claim a job as a worker of another machine, and return the lease."""
    async with db.transaction() as tx:
        job = await jobs.claim(tx, worker=new_id())
        assert job is not None
        lease = Lease(
            id=new_id(), job_id=job.id, worker_name="w", host=host, pid=pid, process_started="1", attempt=job.attempt
        )
        await jobs.acquire_lease(tx, lease)
    return lease


@dataclass(frozen=True)
class Page:
    """A page of a scripted site."""

    text: str = ""
    links: tuple[str, ...] = ()
    redirect: str | None = None
    error: str | None = None
    gone: bool = False
    refused: str | None = None
    canonical: str | None = None
    content_type: str = "text/html"
    tag: str | None = None  # the ETag; None: no validators

    @property
    def body(self) -> bytes:
        canonical = (f"{CANONICAL}{self.canonical}",) if self.canonical else ()
        return "\n".join([self.text, *self.links, *canonical]).encode()


@dataclass
class Site:
    """An origin with scripted pages. Records visits and counts 304 responses."""

    pages: Mapping[str, Page]
    lists_everything: bool = False
    root: str = ROOT
    concurrency: int = 4
    unlisted: tuple[ListingFailure, ...] = ()
    excluded: frozenset[str] = frozenset()
    sitemap: Mapping[str, datetime | None] = field(default_factory=dict)  # URLs besides the root -> modification time
    renames: Mapping[str, str] = field(default_factory=dict)
    visits: list[str] = field(default_factory=list)
    not_modified: int = 0

    async def renew_host_slots(self, allot: AllotHostSlots) -> None: ...

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    def admits(self, url: str) -> bool:
        return url not in self.excluded

    def find_family(self, url: str) -> UrlFamily | None:
        return find_url_family(url)

    async def list(self) -> AsyncIterator[ListedUrl | ListingFailure]:
        for unlisted in self.unlisted:
            yield unlisted
        if not self.lists_everything:
            yield ListedUrl(url=self.root)
            for url, modified_at in self.sitemap.items():
                yield ListedUrl(url=url, modified_at=modified_at)
            return
        for url, page in self.pages.items():
            if not page.gone and url not in self.excluded:
                yield ListedUrl(url=url, etag=page.tag)

    async def find_renames(self, missing: Mapping[str, Validators], new_urls: Sequence[str]) -> Mapping[str, str]:
        return {url: to for url, to in self.renames.items() if url in missing and to in new_urls}

    async def visit(self, entry: FrontierEntry, *, conditional: bool) -> Visit:
        self.visits.append(entry.url)
        page = self.pages.get(entry.url)
        if page is None or page.gone:
            return Gone(reason="404 Not Found", status=404)
        if entry.url in self.excluded:
            return Refused(reason="left out by the source's settings", by_settings=True)
        if page.redirect:
            return Redirected(to=page.redirect, status=301)
        if page.error:
            return Unreachable(reason=page.error, status=500, is_retryable=False)
        if page.refused:
            return Refused(reason=page.refused)
        if conditional and page.tag and entry.base_version and entry.base_version.validators.etag == page.tag:
            self.not_modified += 1
            return NotModified(status=304)
        tag = Validators(etag=page.tag)
        return Fetched(body=page.body, content_type=page.content_type, validators=tag, status=200)

    async def render(self, entry: FrontierEntry, fetched: Fetched) -> Visit | None:
        return None


async def read_scripted(body: bytes, content_type: str, url: str) -> ParsedPage | Unreadable:
    text, *links = body.decode().split("\n")
    canonical = links.pop().removeprefix(CANONICAL) if links and links[-1].startswith(CANONICAL) else None
    content = build_content("", text, SectionNode(content=text), SectionRules())
    return ParsedPage(content=content, links=tuple(link for link in links if link), canonical=canonical)


async def crawl(
    db: Database,
    source: Source,
    site: Site,
    *,
    mode: CrawlMode = CrawlMode.REFRESH,
    rules: LifecycleRules | None = None,
    signature: str = "1",
    now: datetime | None = None,
) -> CrawlJob:
    """Crawl a scripted site from the request to the end of the job, and return the job."""
    job = await queue.enqueue(db, source.id, mode=mode)

    def make_run(lease: Lease, claimed: Source) -> CrawlRun:
        return CrawlRun(
            db,
            lease,
            claimed,
            site,
            read=read_scripted,
            signature=signature,
            rules=rules or LifecycleRules(),
            now=now,
        )

    done = await claim_and_run(db, job.id, make_run)
    assert done is not None
    return done


async def shown(db: Database, source: Source, generation: int | None = None) -> dict[str, tuple[str, str]]:
    """Return the documents of a generation: URL → (document id, content hash)."""
    async with db.snapshot() as snapshot:
        current = await sources.get(snapshot, source.id)
        number = generation or (current.active_generation if current else None)
        if number is None:
            return {}
        rows = await documents.of_generation(snapshot, source.id, number, limit=1_000_000)
    return {one.url: (one.id, one.content_hash) for one in rows}
