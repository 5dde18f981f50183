"""The product's verbs. Every door (command line, API, web pages, MCP) parses, calls one of these, shows the answer."""

import difflib
import os
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain, count
from typing import TYPE_CHECKING, Any

from kept.errors import NoSuchThing, WrongCall
from kept.model.source import Source, SourceKind, SourceSettings, parse_label
from kept.model.url import anchor_of, canonical, canonical_route, file_url
from kept.search import search as finding
from kept.search.query import parse
from kept.search.search import Hit as Hit  # the doors show it
from kept.search.search import name_of
from kept.store import sections, sources
from kept.store.database import Connection, Database, Row, moment, when, when_if

if TYPE_CHECKING:  # a search at the command line answers at once: whatever it can do without, each verb loads itself
    from kept.crawl.sweep import Rules
    from kept.model.document import Lifecycle
    from kept.model.generation import Generation
    from kept.model.job import CrawlJob, CrawlMode

# Sources -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceView:
    """A source, and how it is."""

    source: Source
    documents: int
    sections: int
    generation: "Generation | None"
    upcoming: "Generation | None"
    last_job: "CrawlJob | None"
    verified_at: datetime | None

    @property
    def state(self) -> str:
        """How it is, in one word: what happens to it now, else what waits for a person, else what it has to show."""
        from kept.model.generation import GenerationState
        from kept.model.job import JobStatus

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
    numbered: bool = False,
) -> tuple[Source, bool]:
    """The source for this root and version, and whether it is new. The same root again is the same source.

    ``numbered``: where the name is taken it becomes name-2, name-3 …
    """
    from kept.model.ids import new_id
    from kept.model.root import check_label

    check_label(name, version)
    async with db.transaction(durable=True) as tx:
        for free in chain([name], (f"{name}-{number}" for number in count(2)) if numbered else []):
            if there := await sources.by_root(tx, root, version):
                return there, False
            if await sources.insert(
                tx, id=new_id(), name=free, version=version, kind=kind, root=root, settings=settings
            ):
                made = await sources.by_label(tx, free, version)
                assert made is not None, "it was made a moment ago"
                return made, True
        other = await sources.by_label(tx, name, version)
        kept = f" It keeps {other.root}." if other else ""
        raise WrongCall(f"There is already a source named '{name}'.{kept} Choose another name with --name.")


async def set_source(db: Database, label: str, change: Callable[[SourceSettings], SourceSettings]) -> Source:
    """The source with its settings changed; they hold from its next crawl on."""
    async with db.transaction(durable=True) as tx:
        source = await _source(tx, label)
        source = await sources.lock(tx, source.id) or source
        changed = replace(source, settings=change(source.settings))
        await sources.set_settings(tx, source.id, changed.settings)
        return changed


async def list_sources(db: Database) -> list[SourceView]:
    async with db.snapshot() as snapshot:
        return [await _view(snapshot, source) for source in await sources.all(snapshot)]


async def show_source(db: Database, label: str) -> SourceView:
    async with db.snapshot() as snapshot:
        return await _view(snapshot, await _source(snapshot, label))


async def remove_source(db: Database, label: str) -> Source:
    """Hides the source at once and frees its name; garbage collection takes its rows."""
    from kept.crawl import activate
    from kept.store import jobs

    async with db.transaction(durable=True) as tx:
        source = await _source(tx, label)
        await sources.lock(tx, source.id)
        if live := await jobs.live(tx, source.id):
            await jobs.cancel(tx, live.id)
        await activate.abandon(tx, source, "the source was removed")
        await sources.hide(tx, source.id)
        return source


# Crawls --------------------------------------------------------------------------------------------------------


async def request_crawl(db: Database, label: str, *, mode: "CrawlMode | None" = None, priority: int = 0) -> "CrawlJob":
    """Ask for a crawl of a source (a refresh, unless another mode is named). Asking again while one waits joins it."""
    from kept.model.job import CrawlMode
    from kept.work import queue

    async with db.snapshot() as snapshot:
        source = await _source(snapshot, label)
    return await queue.request(db, source.id, mode=mode or CrawlMode.REFRESH, priority=priority)


async def get_job(db: Database, job_id: str) -> "CrawlJob":
    from kept.store import jobs

    async with db.snapshot() as snapshot:
        job = await jobs.get(snapshot, job_id.lower()) if _is_id(job_id) else None
    if job is None:
        raise NoSuchThing(f"There is no job {job_id}.")
    return job


# Generations ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What one generation shows and another does not."""

    source: str
    a: int
    b: int
    added: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    moved: list[dict[str, str]] = field(default_factory=list)  # from, to, document


async def list_generations(db: Database, label: str) -> "tuple[Source, list[Generation]]":
    from kept.store import generations

    async with db.snapshot() as snapshot:
        source = await _source(snapshot, label)
        return source, await generations.all(snapshot, source.id)


async def diff(db: Database, label: str, a: int, b: int, rules: "Rules | None" = None) -> Difference:
    """What was added, removed, changed and moved from generation ``a`` to ``b``.

    From its base to a held generation: what activating it would do.
    """
    from kept.model.generation import GenerationState
    from kept.store import documents, generations

    async with db.snapshot() as snapshot:
        source = await _source(snapshot, label)
        upcoming = await generations.upcoming(snapshot, source.id)
        if upcoming and upcoming.state is GenerationState.HELD and (a, b) == (upcoming.base, upcoming.number):
            return await _review(snapshot, source, upcoming, rules)
        for number in (a, b):
            await _readable(snapshot, source, number)
        rows = await documents.differing(snapshot, source.id, a, b)
    before = {row["document_id"]: row for row in rows if row["side"] == "a"}
    after = {row["document_id"]: row for row in rows if row["side"] == "b"}
    both = before.keys() & after.keys()
    moved = [id for id in both if before[id]["url"] != after[id]["url"]]
    return Difference(
        source=source.label,
        a=a,
        b=b,
        added=sorted(after[id]["url"] for id in after.keys() - both),
        removed=sorted(before[id]["url"] for id in before.keys() - both),
        changed=sorted(after[id]["url"] for id in both if before[id]["content_hash"] != after[id]["content_hash"]),
        moved=sorted(
            ({"from": before[id]["url"], "to": after[id]["url"], "document": id} for id in moved),
            key=lambda move: move["to"],
        ),
    )


async def _review(db: Connection, source: Source, held: "Generation", rules: "Rules | None") -> Difference:
    """A held generation as its base, plus its own versions, minus its losses."""
    from kept.crawl.plan import plan
    from kept.crawl.sweep import Rules
    from kept.store import documents, generations, jobs

    base, job = await generations.get(db, source.id, held.base or 0), await jobs.get(db, held.job_id or "")
    assert base is not None, "only a generation with a base is held"
    assert job is not None, "a held generation was made by a job"
    made = await plan(db, held, base, job, rules or Rules(), await moment(db))
    ended = {id: await documents.in_generation(db, id, base.number) for id in made.ended}
    moved = [
        {"from": adoption.from_url, "to": adoption.arrival.url, "document": adoption.document}
        for adoption in made.adoptions
        if await documents.in_generation(db, adoption.document, base.number)
    ]
    born = await documents.born_in(db, source.id, held.number)
    at_home = {move["to"] for move in moved}
    return Difference(
        source=source.label,
        a=base.number,
        b=held.number,
        added=sorted(row["url"] for row in born if not row["pending"] and row["url"] not in at_home),
        removed=sorted(row["url"] for row in ended.values() if row),
        changed=sorted(row["url"] for row in born if row["pending"] and row["document_id"] not in ended),
        moved=sorted(moved, key=lambda move: move["to"]),
    )


async def roll_back(db: Database, label: str, number: int) -> int:
    """A new generation that shows what an earlier one showed. Its number."""
    from kept.crawl import activate

    return await activate.roll_back(db, (await _named(db, label)).id, number)


async def activate_held(db: Database, label: str, rules: "Rules") -> int:
    from kept.crawl import activate

    return await activate.activate_held(db, (await _named(db, label)).id, rules)


async def discard_held(db: Database, label: str) -> int:
    from kept.crawl import activate

    return await activate.discard_held(db, (await _named(db, label)).id)


# Search and reading --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A document, or a section of it, as one generation shows it."""

    document: str
    source: str
    version: str
    generation: int
    url: str
    title: str
    markdown: str
    lifecycle: "Lifecycle"
    fetched_at: datetime
    verified_at: datetime
    partial: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What a document was."""

    document: str
    source: str
    lifecycle: "Lifecycle"
    first_seen: datetime
    versions: list[dict[str, Any]]


async def search(
    db: Database, text: str, *, labels: Sequence[str] = (), limit: int = 10, generation: int | None = None
) -> list[Hit]:
    """The best sections for a query; across all sources unless some are named."""
    query = parse(text)
    if limit < 1:
        raise WrongCall("--limit should be at least 1.")
    if generation is not None and len(labels) != 1:
        raise WrongCall("A generation belongs to one source: name it with --source.")
    async with db.snapshot() as snapshot:
        asked = [await _source(snapshot, label) for label in labels] or await sources.all(snapshot)
        shown = [(source.id, generation or source.active_generation) for source in asked]
        if generation is not None:
            await _readable(snapshot, asked[0], generation)
        numbered = [(id, number) for id, number in shown if number is not None]
        return await finding.search(snapshot, query, numbered, limit=limit)


async def read(db: Database, what: str, *, section: str | None = None, generation: int | None = None) -> Page:
    """A document by its URL, path or id, as the active generation shows it, or another one that is retained."""
    from kept.store import documents
    from kept.store.packing import unpack

    async with db.snapshot() as snapshot:
        document_id, fragment = await _document(snapshot, what, generation)
        document = await documents.get(snapshot, document_id)
        source = await sources.get(snapshot, document.source_id) if document else None
        if document is None or source is None:
            raise NoSuchThing(f"There is no document {what}. 'kept search' finds what is kept.")
        number = (source.active_generation or 0) if generation is None else generation
        shown = await _readable(snapshot, source, number)
        row = await documents.in_generation(snapshot, document.id, number)
        if row is None:
            raise NoSuchThing(
                f"Generation {number} of {source.label} does not show {what}. 'kept history' tells its story."
            )
        markdown = unpack(row["markdown"])
        if section or fragment:
            markdown = await _section_text(snapshot, row, section or fragment or "")
        return Page(
            document=document.id,
            source=source.name,
            version=source.version,
            generation=number,
            url=row["url"],
            title=row["title"] or name_of(row["url"]),
            markdown=markdown,
            lifecycle=document.lifecycle,
            fetched_at=when(row["fetched_at"]),
            verified_at=when(row["verified_at"]),
            partial=shown.partial is not None,
        )


async def history(db: Database, what: str) -> History:
    """A document's versions and moves, oldest first."""
    from kept.store import documents

    async with db.snapshot() as snapshot:
        document_id, _ = await _document(snapshot, what)
        document = await documents.get(snapshot, document_id)
        source = await sources.get(snapshot, document.source_id) if document else None
        if document is None or source is None:
            raise NoSuchThing(f"There is no document {what}.")
        return History(
            document=document.id,
            source=source.label,
            lifecycle=document.lifecycle,
            first_seen=document.first_seen,
            versions=[_version(row) for row in await documents.versions_of(snapshot, document.id)],
        )


# How things are named ------------------------------------------------------------------------------------------


async def _named(db: Database, label: str) -> Source:
    async with db.snapshot() as snapshot:
        return await _source(snapshot, label)


async def _source(db: Connection, label: str) -> Source:
    """The source of this name, or an error that says which one was perhaps meant."""
    source = await sources.by_label(db, *parse_label(label)) if label.isprintable() else None
    if source:
        return source
    labels = [other.label for other in await sources.all(db)]
    versions = [other for other in labels if parse_label(other)[0] == label]
    close = versions or difflib.get_close_matches(label, labels, n=1)
    hint = f"Did you mean '{close[0]}'?" if close else "'kept list' shows what there is."
    raise NoSuchThing(f"There is no source named '{label}'. {hint}")


async def _readable(db: Connection, source: Source, number: int) -> "Generation":
    """A generation that was once active and is still retained."""
    from kept.model.generation import GenerationState
    from kept.store import generations

    generation = await generations.get(db, source.id, number)
    if generation and generation.state in (GenerationState.ACTIVE, GenerationState.RETIRED):
        return generation
    if source.active_generation is None:
        raise NoSuchThing(f"{source.label} has no generation to show yet: its first crawl is not finished.")
    raise NoSuchThing(
        f"{source.label} has no generation {number} to show. 'kept generations {source.label}' lists them."
    )


async def _document(db: Connection, what: str, generation: int | None = None) -> tuple[str, str | None]:
    """The id of a document by its id, URL or path, and the fragment of the URL.

    What the generation shows at the URL comes first, then what is shown there now, then what was.
    """
    from kept.store import documents

    if _is_id(what):
        return what.lower(), None
    url, _, fragment = what.partition("#")
    spelled = _spelled(url)
    if fragment and (route := canonical_route(what)) != spelled and route and await documents.once_at(db, route):
        spelled, fragment = route, anchor_of(what)
    rows = [*await documents.shown_at(db, spelled), *await documents.once_at(db, spelled)] if spelled else []
    if generation is not None:
        for id in dict.fromkeys(row["document_id"] for row in rows):
            for one in await documents.versions_of(db, id):
                if one["url"] == spelled and one["born"] <= generation < (one["died"] or generation + 1):
                    return id, fragment or None
    if rows:
        return rows[0]["document_id"], fragment or None
    raise NoSuchThing(f"There is no document {what}. 'kept search' finds what is kept.")


def _spelled(text: str) -> str | None:
    """The canonical URL behind a URL or a path; None if it can be neither."""
    try:
        return canonical(text) if "://" in text else file_url(os.path.abspath(text))
    except ValueError:
        return None


def _is_id(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False


# How answers are put together ----------------------------------------------------------------------------------


async def _view(db: Connection, source: Source) -> SourceView:
    from kept.store import generations, jobs

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


async def _section_text(db: Connection, row: Row, anchor: str) -> str:
    """A section with everything below it."""
    found = await sections.of_content(db, row["content_id"])
    first = next((at for at, section in enumerate(found) if section["anchor"] == anchor), None)
    if first is None:
        known = ", ".join(dict.fromkeys(section["anchor"] for section in found if section["anchor"]))
        raise NoSuchThing(f"{row['url']} has no section '{anchor}'. It has: {known or 'none'}.")
    level = found[first]["level"]
    parts = [found[first]["text"]]
    for section in found[first + 1 :]:
        if section["level"] <= level and section["anchor"] != anchor:
            break
        parts.append(section["text"])
    return "\n\n".join(part.strip("\n") for part in parts)


def _version(row: Row) -> dict[str, Any]:
    return {
        "version": row["born"],
        "generation": row["born"],
        "until": row["died"],
        "url": row["url"],
        "title": row["title"] or name_of(row["url"]),
        "content_hash": row["content_hash"],
        "size": row["size"],
        "read_again": bool(row["read_again"]),
        "fetched_at": when(row["fetched_at"]).isoformat(),
        "activated_at": activated.isoformat() if (activated := when_if(row["activated_at"])) else None,
    }
