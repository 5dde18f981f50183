"""A page whose canonical URL is another page with the same content is dropped. On both databases."""

import asyncio
from collections.abc import Mapping
from itertools import permutations

import pytest

from kept.crawl.lifecycle import LifecycleRules
from kept.model.frontier import Outcome
from kept.model.job import CrawlMode
from kept.model.source import Source
from kept.store import frontier
from kept.store.database import Database
from tests.factories import ROOT, Page, Site, crawl, database_at, make_source, shown

A, B, C = f"{ROOT}a", f"{ROOT}b", f"{ROOT}c"
WORDS = "the same words, enough of them that nobody takes it for a tiny page at all"
OTHER = "quite other words, and again enough of them that nobody takes it for a tiny page"


def home(*links: str) -> Page:
    return Page("home", links)


async def _outcome(db: Database, job: str, url: str) -> tuple[str, str | None]:
    async with db.snapshot() as snapshot:
        result = await frontier.get_result(snapshot, job, url)
    assert result is not None
    assert result.outcome is not None
    return result.outcome, result.reason


def test_in_whatever_order_they_arrive_the_canonical_page_stays(database_url: str) -> None:
    async def scenario() -> None:
        async with database_at(database_url) as db:
            for number, order in enumerate(permutations((A, B, C))):
                root = f"{ROOT}{number}"
                source = await make_source(db, f"docs{number}", root=root)
                pages = {
                    root: home(*order),
                    A: Page(WORDS, (C,), canonical=B),
                    B: Page(WORDS, (A,)),
                    C: Page(OTHER, canonical=B),  # says something else: both stay
                }
                job = await crawl(db, source, Site(pages, root=root, concurrency=1))
                assert (await shown(db, source)).keys() == {root, B, C}
                assert await _outcome(db, job.id, A) == (Outcome.SKIPPED, f"a duplicate of {B}")
                assert (job.progress.tally.new, job.progress.tally.skipped) == (3, 1)

    asyncio.run(scenario())


def test_a_refresh_changes_nothing_and_loses_nothing(database_url: str) -> None:
    async def scenario() -> None:
        async with database_at(database_url) as db:
            source = await make_source(db)
            pages = {ROOT: home(A, B), A: Page(WORDS, canonical=B, tag="1"), B: Page(WORDS, tag="2")}
            await crawl(db, source, Site(pages))
            before = await shown(db, source)
            for _ in range(2):
                job = await crawl(db, source, Site(pages))
                assert not job.held
                assert await shown(db, source) == before
                assert (job.progress.tally.new, job.progress.tally.skipped) == (0, 1)

            # A page that fails is still shown, so what repeats it is still dropped; when it is gone, the other stays.
            await crawl(db, source, Site(pages | {B: Page(error="500")}))
            assert await shown(db, source) == before
            await crawl(db, source, Site(pages | {B: Page(gone=True)}))
            after = await shown(db, source)
            assert after.keys() == {ROOT, A}
            assert after[A] == before[B]  # the same document, moved

    asyncio.run(scenario())


@pytest.mark.parametrize("tag", [None, "1"])
def test_a_document_moves_to_its_canonical_page_when_that_comes(database_url: str, tag: str | None) -> None:
    """With an ETag the page answers 304, and its canonical URL comes from the last visit."""

    async def scenario() -> None:
        async with database_at(database_url) as db:
            source = await make_source(db)
            pages = {ROOT: home(A, B), A: Page(WORDS, canonical=B, tag=tag), B: Page(error="500")}
            await crawl(db, source, Site(pages))
            before = await shown(db, source)
            assert before.keys() == {ROOT, A}

            site = Site(pages | {B: Page(WORDS)})
            job = await crawl(db, source, site)
            assert site.not_modified == (1 if tag else 0)
            after = await shown(db, source)
            assert after.keys() == {ROOT, B}
            assert after[B] == before[A]
            assert await _outcome(db, job.id, A) == (Outcome.MOVED, f"moved to {B}")
            assert job.progress.tally.moved == 1

    asyncio.run(scenario())


def test_a_document_that_becomes_a_duplicate_of_another_ends_and_counts_as_lost(database_url: str) -> None:
    async def scenario() -> None:
        async with database_at(database_url) as db:
            source = await make_source(db)
            copies = [f"{ROOT}copy{number}" for number in range(6)]
            pages: Mapping[str, Page] = {ROOT: home(B, *copies), B: Page(WORDS)}
            own = {url: Page(f"{url} {WORDS}") for url in copies}
            await crawl(db, source, Site({**pages, **own}))

            alike = {url: Page(WORDS, canonical=B) for url in copies}
            one = {**pages, **own, copies[0]: alike[copies[0]]}
            job = await crawl(db, source, Site(one))
            assert copies[0] not in await shown(db, source)
            assert await _outcome(db, job.id, copies[0]) == (Outcome.SKIPPED, f"a duplicate of {B}")

            held = await crawl(db, source, Site({**pages, **alike}))
            assert held.held, "five of seven would be lost"
            assert set(copies[1:]) <= (await shown(db, source)).keys()

    asyncio.run(scenario())


def test_a_canonical_link_that_is_new_counts_though_the_page_is_not(database_url: str) -> None:
    async def scenario() -> None:
        async with database_at(database_url) as db:
            source = await make_source(db)
            pages = {ROOT: home(A, B), A: Page(WORDS), B: Page(WORDS)}
            await crawl(db, source, Site(pages))
            assert (await shown(db, source)).keys() == {ROOT, A, B}
            brave = LifecycleRules(brake_share=1.0)
            await crawl(db, source, Site(pages | {A: Page(WORDS, canonical=B)}), rules=brave)
            assert (await shown(db, source)).keys() == {ROOT, B}
            # And back: it is itself again.
            await crawl(db, source, Site(pages), rules=brave)
            assert (await shown(db, source)).keys() == {ROOT, A, B}

    asyncio.run(scenario())


def test_of_pages_that_name_each_other_one_stays(database_url: str) -> None:
    async def scenario() -> None:
        async with database_at(database_url) as db:
            source = await make_source(db)
            ring = {A: Page(WORDS, canonical=B), B: Page(WORDS, canonical=C), C: Page(WORDS, canonical=A)}
            await crawl(db, source, Site({ROOT: home(C, A, B), **ring}))
            assert (await shown(db, source)).keys() == {ROOT, A}

    asyncio.run(scenario())


def test_what_redirects_to_a_duplicate_moves_to_the_page_that_stays(database_url: str) -> None:
    async def scenario() -> None:
        async with database_at(database_url) as db:
            source = await make_source(db)
            old = f"{ROOT}old"
            await crawl(db, source, Site({ROOT: home(old), old: Page(OTHER)}))
            before = await shown(db, source)
            pages = {ROOT: home(old), old: Page(redirect=A), A: Page(WORDS, (B,), canonical=B), B: Page(WORDS)}
            await crawl(db, source, Site(pages))
            after = await shown(db, source)
            assert after.keys() == {ROOT, B}
            assert after[B][0] == before[old][0]

    asyncio.run(scenario())


def test_a_page_is_not_kept_as_markdown_beside_its_html(database_url: str) -> None:
    async def scenario() -> None:
        async with database_at(database_url) as db:
            source = await make_source(db)
            markdown = {
                f"{ROOT}{stem}.md": Page(f"{stem} in Markdown", canonical=f"{ROOT}{stem}", content_type="text/markdown")
                for stem in ("guide", "api.html", "intro/index.html", "index", "faq", "alone")
            }
            html = [f"{ROOT}guide", f"{ROOT}api.html", f"{ROOT}intro/", f"{ROOT}faq/index.html"]
            pages = {ROOT: home(*markdown, *html), **markdown, **{url: Page(f"{url} {WORDS}") for url in html}}
            await crawl(db, source, Site(pages))
            assert (await shown(db, source)).keys() == {ROOT, *html, f"{ROOT}alone.md"}

    asyncio.run(scenario())


def test_a_repair_drops_what_repeats_a_page_that_it_does_not_visit(database_url: str) -> None:
    async def scenario() -> None:
        async with database_at(database_url) as db:
            source: Source = await make_source(db)
            pages = {ROOT: home(A, B), A: Page(error="500"), B: Page(WORDS)}
            await crawl(db, source, Site(pages))
            await crawl(db, source, Site(pages | {A: Page(WORDS, canonical=B)}), mode=CrawlMode.FAILED)
            assert (await shown(db, source)).keys() == {ROOT, B}

    asyncio.run(scenario())
