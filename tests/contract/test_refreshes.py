"""Refreshes of a site that changes in every possible way (tests/sites/changing_site.py), with a real server."""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from kept.crawl import decide
from kept.crawl.engine import CrawlRun
from kept.crawl.lifecycle import LifecycleRules
from kept.extract.reader import parse_page, pipeline_signature
from kept.extract.sections import Unreadable
from kept.jobs import queue
from kept.jobs.worker import claim_and_run
from kept.model.document import ParsedPage
from kept.model.job import CrawlJob, CrawlMode, JobStatus, Lease
from kept.model.search_request import SearchRequest
from kept.model.source import Access, RenderMode, Source, SourceSettings, host_and_port
from kept.origins.web import make_web_origin, robots
from kept.origins.web.rate_limiter import RateLimiters
from kept.service import generations, jobs, search
from kept.store import documents, sources
from kept.store.database import Database
from tests.contract.databases import on_both_databases, run_sql
from tests.factories import make_source
from tests.sites.changing_site import CHAPTERS, LOG_IN, SHELL, Chapter, Reply, Row, Site, moved, serving, state

BEGINNING = datetime(2026, 11, 1, tzinfo=UTC)
APART = timedelta(days=4)  # the chapters: grace is over with the second that follows


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry failed requests without waiting."""
    monkeypatch.setattr(decide, "backoff_delay", lambda attempts: timedelta())
    monkeypatch.setattr(robots, "_FIRST_RETRY_SECONDS", 0.0)


async def refresh(db: Database, source: Source, now: datetime, mode: str = "refresh") -> CrawlJob:
    job = await queue.enqueue(db, source.id, mode=CrawlMode(mode))
    done = await claim_and_run(db, job.id, lambda lease, claimed: make_run(db, lease, claimed, now), heartbeat=0.5)
    assert done is not None
    return done


def make_run(db: Database, lease: Lease, source: Source, now: datetime) -> CrawlRun:
    region = source.settings.region

    async def reading(body: bytes, content_type: str, url: str) -> ParsedPage | Unreadable:
        return parse_page(body, content_type=content_type, url=url, region=region)

    origin = make_web_origin(source.root, source.settings, rate_limiters=RateLimiters())
    return CrawlRun(
        db,
        lease,
        source,
        origin,
        read=reading,
        signature=pipeline_signature(region=region),
        rules=LifecycleRules(),
        now=now,
    )


async def keep(db: Database, site: Site) -> Source:
    access = Access(allowed=(host_and_port(site.root),), render=RenderMode.NEVER)
    return await make_source(db, "story", root=site.root, settings=SourceSettings(access=access))


# The story ----------------------------------------------------------------------------------------------------------


@dataclass
class Reader:
    """Compares the documents with the table, and remembers which document belongs to which line."""

    db: Database
    source: Source
    site: Site
    ids: dict[int, str] = field(default_factory=dict)  # by line of the table

    async def compare(self, number: int) -> None:
        expected = state(number)
        assert await self._documents(expected) == expected, f"chapter {number}: {CHAPTERS[number].happens}"
        shown = sorted((row.path, f"On the {row.word}") for row in expected if row.word)
        assert await self._found("everywhere") == shown, f"search, chapter {number}"
        words = {row.word for row in state(number - 1)} ^ {row.word for row in expected}
        for word in words - {None}:
            found = [(path, title) for path, title in shown if title == f"On the {word}"]
            assert await self._found(word) == found, f"search for {word}, chapter {number}"

    async def _documents(self, expected: list[Row]) -> list[Row]:
        async with self.db.snapshot() as snapshot:
            source = await sources.get(snapshot, self.source.id)
            assert source is not None
            active = source.active_generation or 0
            known = await run_sql(snapshot, "SELECT id, lifecycle FROM documents ORDER BY id")
            found = []
            for id, lifecycle in known:
                versions = await documents.versions_of(snapshot, id)
                now = await documents.version_in_generation(snapshot, id, active)
                path = (now or versions[-1]).url.removeprefix(self.site.origin)
                word = now.title.removeprefix("On the ") if now else None
                line = self._line(id, path, expected)
                found.append(Row(number=line, path=path, word=word, versions=len(versions), lifecycle=lifecycle))
        return sorted(found, key=lambda row: row.number)

    def _line(self, id: str, path: str, expected: list[Row]) -> int:
        """Return the line of the table of this document; a new document has the new line."""
        if id not in self.ids.values():
            new = [row.number for row in expected if row.number not in self.ids and row.path == path]
            assert new, f"there should be no new document at {path}"
            self.ids[new[0]] = id
        return next(line for line, known in self.ids.items() if known == id)

    async def _found(self, word: str | None) -> list[tuple[str, str]]:
        hits = await search.search_sections(self.db, SearchRequest(text=word or "", limit=1000))
        titles = [(url, hit.title) for hit in hits for url in (hit.url, *(other["url"] for other in hit.also))]
        return sorted({(url.partition("#")[0].removeprefix(self.site.origin), title) for url, title in titles})


@on_both_databases
async def test_after_every_chapter_documents_ids_versions_and_search_are_as_the_table_has_them(db: Database) -> None:
    async with serving() as site:
        source = await keep(db, site)
        reader = Reader(db, source, site)
        for number, chapter in CHAPTERS.items():
            site.turn(chapter)
            await play(db, reader, number, chapter)
            if number in (2, 10):
                known = {row.path for row in state(number) if row.word} - {"/unmarked.html"}
                assert [path for path, status in site.requests if path in known and status != 304] == []


async def play(db: Database, reader: Reader, number: int, chapter: Chapter) -> None:
    source, now = reader.source, BEGINNING + number * APART
    async with db.transaction() as tx:
        current = await sources.get(tx, source.id)
        assert current is not None
        await sources.set_settings(tx, source.id, chapter.settings(current.settings))
    if chapter.mode == "rollback":
        _, made = await generations.list_generations(db, "story")
        await generations.roll_back(db, "story", [one.number for one in made if one.activated_at][-2])
    elif chapter.ends == "cancelled":
        crawling = asyncio.create_task(refresh(db, source, now))
        await reader.site.hanging.wait()
        async with db.snapshot() as snapshot:
            [[job]] = await run_sql(snapshot, "SELECT id FROM crawl_jobs WHERE status = 'processing'")
        await jobs.cancel_job(db, job)
        assert (await crawling).status is JobStatus.CANCELLED
    else:
        job = await refresh(db, source, now, chapter.mode)
        ended = JobStatus.FAILED if chapter.ends == "failed" else JobStatus.COMPLETED
        assert (job.status, job.held) == (ended, chapter.ends == "held"), f"chapter {number}: {job.error}"
    if chapter.then:
        await reader.compare(number - 1)
        decided = generations.activate_held(db, "story", LifecycleRules()) if chapter.then == "activate" else None
        await (decided or generations.discard_held(db, "story"))
    await reader.compare(number)


# The whole site is out of order -------------------------------------------------------------------------------------

CLOSED = b"<!doctype html><title>Closed</title><h1>We are closed</h1><p>The builders are in. Come back on Tuesday.</p>"
OUTAGES = {
    "404": Reply(status=404),
    "500": Reply(status=500),
    "a redirect to a log-in": moved("/login?next=/here", 302),
    "a log-in form": Reply(body=LOG_IN),
    "one empty shell": Reply(body=SHELL),
    "one page that says closed": Reply(body=CLOSED),
}


@pytest.mark.parametrize(
    ("database_url", "outage"),
    [*(("sqlite", outage) for outage in OUTAGES), ("postgres", "404")],
    indirect=["database_url"],
)
@on_both_databases
async def test_a_site_that_is_out_of_order_is_held_until_a_person_decides_and_search_is_as_before(
    db: Database, outage: str
) -> None:
    async with serving() as site:
        reader = Reader(db, source := await keep(db, site), site)
        site.turn(CHAPTERS[1])
        await refresh(db, source, BEGINNING)
        await reader.compare(1)

        everything = [path for path in site.paths() if path not in ("/robots.txt", "/sitemap.xml")]
        site.answer(dict.fromkeys(everything, OUTAGES[outage]), absent=OUTAGES[outage])
        job = await refresh(db, source, BEGINNING + APART)
        assert (job.status, job.held) == (JobStatus.COMPLETED, True)
        await reader.compare(1)
        assert await generations.discard_held(db, "story") == 2
        await reader.compare(1)

        job = await refresh(db, source, BEGINNING + 2 * APART)
        assert job.held, "discarding one does not approve the next"
        assert await generations.activate_held(db, "story", LifecycleRules()) == 3
        shown = [path for path, _ in await reader._found("everywhere")]
        if outage == "404":
            assert shown == [], "a person has said that all of it is gone"
        else:
            closed = {"/"} if "closed" in outage else set()
            assert shown == sorted({row.path for row in state(1)} - closed), "what could not be read is shown as it was"

        site.turn(CHAPTERS[1])
        job = await refresh(db, source, BEGINNING + 3 * APART)
        assert not job.held
        assert [path for path, _ in await reader._found("everywhere")] == sorted(row.path for row in state(1))
        async with db.snapshot() as snapshot:
            assert await run_sql(snapshot, "SELECT lifecycle, count(*) FROM documents GROUP BY 1") == [
                ("active", len(state(1)))
            ]
