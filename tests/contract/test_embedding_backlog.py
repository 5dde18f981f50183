"""Vectors: every section gets one, no text is embedded twice, and neither crawls nor searches wait for them."""

import asyncio
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import psycopg
import pytest
from aiohttp import web

from kept import settings
from kept.embed.embedder import normalize
from kept.errors import EmbedderUnavailable, TextRejected
from kept.maintenance import embedding_backlog
from kept.maintenance.embedding_backlog import EmbeddingBacklog, EmbeddingReport, delete_unused_vectors
from kept.maintenance.gc import Retention, collect
from kept.model.search_request import SearchRequest
from kept.runtime.runtime import Runtime
from kept.search.vector_search import VectorSearchOptions, nearest_sections
from kept.service import search
from kept.store import sources, vectors
from kept.store.database import Database
from kept.store.sqlite import SqliteDatabase
from kept.store.vector_index import VectorIndex
from tests.contract.databases import on_both_databases, run_sql
from tests.factories import ROOT, Page, Site, crawl, database_at, make_source
from tests.postgres import PostgresServer

WORDS = ("apple", "pear", "plum", "cherry", "quince", "medlar", "damson", "sloe")


class Killed(BaseException):
    """Stands for a killed process: nothing is cleaned up."""


class WordEmbedder:
    """Embeds each word as a dimension of its own. Counts the texts."""

    batch = 7

    def __init__(self, model: str = "words", dimensions: int = 64) -> None:
        self.model = model
        self.dimensions = dimensions
        self.embedded: Counter[str] = Counter()
        self.is_away = False
        self.refuses: Callable[[str], bool] = lambda text: False

    async def embed(self, texts: Sequence[str]) -> Any:
        await asyncio.sleep(0)
        if self.is_away:
            raise EmbedderUnavailable("It is away.")
        if any(map(self.refuses, texts)):
            raise TextRejected("It does not like that.")
        self.embedded.update(texts)
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.lower().split():
                row[zlib.crc32(word.encode()) % self.dimensions] += 1
        return normalize(rows)


def make_manual(count: int, prefix: str = "page") -> dict[str, Page]:
    """Create a source whose pages have different texts: a number and a fruit."""
    pages = {f"{ROOT}{n}": Page(f"{prefix} {n} {WORDS[n % len(WORDS)]}") for n in range(count)}
    return {ROOT: Page("the root of it all", tuple(pages))} | pages


async def counted(db: Database, table: str) -> int:
    async with db.snapshot() as snapshot:
        return int((await run_sql(snapshot, f"SELECT count(*) FROM {table}"))[0][0])


async def near(db: Database, embedder: WordEmbedder, text: str, limit: int = 3, **shown: int) -> list[str]:
    """Return the texts of the sections nearest to a text."""
    async with db.snapshot() as snapshot:
        searched = [source for source in await sources.all(snapshot) if not shown or source.name in shown]
        pairs = [(source.id, shown.get(source.name) or source.active_generation or 0) for source in searched]
        found = await nearest_sections(snapshot, {embedder.model: embedder}.get, text, pairs, limit=limit)
        ids = ", ".join(str(id) for id, _ in found) or "0"
        texts = dict(await run_sql(snapshot, f"SELECT id, text FROM sections WHERE id IN ({ids})"))
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
    return [texts[id] for id, _ in found]


# Once ----------------------------------------------------------------------------------------------------------


@on_both_databases
async def test_every_text_is_embedded_once_across_refreshes_versions_and_sources(db: Database) -> None:
    embedder = WordEmbedder()
    filler = EmbeddingBacklog(embedder)
    first, pages = await make_source(db, "first"), make_manual(100)
    await crawl(db, first, Site(pages))
    assert await filler.embed_pending(db) == EmbeddingReport(embedded=101, contents=101)

    await crawl(db, first, Site(pages))
    assert await filler.embed_pending(db) == EmbeddingReport(), "an unchanged refresh embeds nothing"

    second = await make_source(db, "second", root="https://docs.test/2/")
    shared = make_manual(90) | make_manual(10, "another page")
    moved = {url.replace(ROOT, second.root): page for url, page in shared.items()}
    moved[second.root] = Page("the root of it all", tuple(moved))
    await crawl(db, second, Site(moved, root=second.root))
    assert await filler.embed_pending(db) == EmbeddingReport(embedded=10, contents=10), (
        "a version that shares nine tenths embeds one"
    )
    assert set(embedder.embedded.values()) == {1}
    assert await counted(db, "vectors") == 111
    assert await search.count_missing_vectors(db) == {}


@on_both_databases
async def test_several_at_once_embed_each_text_once(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding_backlog, "RETRY_DELAY", timedelta(milliseconds=20))
    monkeypatch.setattr(embedding_backlog, "BATCH_SIZE", 40)
    await crawl(db, await make_source(db), Site(make_manual(150)))
    embedders = [WordEmbedder() for _ in range(4)]

    async def work(embedder: WordEmbedder) -> None:
        filler = EmbeddingBacklog(embedder)
        while await counted(db, "unembedded"):
            await filler.embed_pending(db)

    await asyncio.gather(*map(work, embedders))
    together = sum((one.embedded for one in embedders), Counter())
    assert sum(bool(one.embedded) for one in embedders) > 1, "they did it together"
    assert set(together.values()) == {1}
    assert len(together) == await counted(db, "vectors") == 151
    assert await counted(db, "embedding_claims") == 0


@on_both_databases
async def test_what_a_killed_process_had_taken_is_embedded_by_the_next(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding_backlog, "RETRY_DELAY", timedelta(0))
    await crawl(db, await make_source(db), Site(make_manual(20)))
    dead, alive = EmbeddingBacklog(WordEmbedder()), EmbeddingBacklog(WordEmbedder())

    async def dies(*_: Any) -> Any:
        raise Killed

    async def leaves_it_taken(*_: Any) -> None: ...

    with monkeypatch.context() as killed:
        killed.setattr(dead, "_embed", dies)
        killed.setattr(vectors, "release_texts", leaves_it_taken)
        with pytest.raises(Killed):
            await dead.embed_pending(db)
    assert await counted(db, "embedding_claims") == WordEmbedder.batch
    done = await alive.embed_pending(db, seconds=0.5)
    assert done.embedded == 21 - WordEmbedder.batch, "it may still be at work"
    async with db.transaction() as tx:
        await run_sql(tx, "UPDATE embedding_claims SET until = '2001-01-01T00:00:00.000000+00:00'")
    assert await alive.embed_pending(db) == EmbeddingReport(embedded=WordEmbedder.batch, contents=21 - done.contents)


# Down ----------------------------------------------------------------------------------------------------------


@on_both_databases
async def test_while_the_embedder_is_away_words_find_everything_and_answers_can_say_what_is_missing(
    db: Database,
) -> None:
    embedder = WordEmbedder()
    embedder.is_away = True
    moments = iter(range(0, 10**9, 10_000))
    filler = EmbeddingBacklog(embedder, clock=lambda: float(next(moments)))
    source = await make_source(db)
    job = await crawl(db, source, Site(make_manual(30)))
    assert job.status == "completed"
    assert await filler.embed_pending(db) == EmbeddingReport()
    assert await search.count_missing_vectors(db) == {"docs": 31}
    by = VectorSearchOptions("fused", {embedder.model: embedder}.get)
    assert (await search.search_sections(db, SearchRequest(text="quince"), vectors=by))[0].text.endswith("quince")

    embedder.is_away, embedder.refuses = False, lambda text: "page 11 " in text
    assert await filler.embed_pending(db) == EmbeddingReport(embedded=30, refused=1, contents=31), (
        "one that is refused keeps none back"
    )
    assert await search.count_missing_vectors(db) == {}
    assert await filler.embed_pending(db) == EmbeddingReport(), "and is not tried again"
    embedder.is_away = True
    assert (await search.search_sections(db, SearchRequest(text="quince"), vectors=by))[0].text.endswith("quince")


@on_both_databases
async def test_an_embedder_that_is_away_is_left_alone_for_a_while(db: Database) -> None:
    embedder, now = WordEmbedder(), [0.0]
    embedder.is_away = True
    filler = EmbeddingBacklog(embedder, clock=lambda: now[0])
    await crawl(db, await make_source(db), Site(make_manual(3)))
    await filler.embed_pending(db)
    embedder.is_away = False
    assert await filler.embed_pending(db) == EmbeddingReport()
    now[0] += 2.1
    assert (await filler.embed_pending(db)).embedded == 4


# Another model -------------------------------------------------------------------------------------------------


@on_both_databases
async def test_a_new_model_serves_when_it_is_complete_and_the_old_one_until_then(db: Database) -> None:
    old, new = WordEmbedder("old"), WordEmbedder("new", dimensions=32)
    source = await make_source(db)
    pages = make_manual(60)
    await crawl(db, source, Site(pages))
    await EmbeddingBacklog(old).embed_pending(db)
    filler = EmbeddingBacklog(new)
    new.is_away = True
    await filler.embed_pending(db)
    assert (await near(db, old, "page 7 sloe"))[0] == "page 7 sloe"
    assert await near(db, new, "page 7 sloe") == [], "it does not serve yet"
    assert await search.count_missing_vectors(db) == {}, "the old one lacks nothing"
    pages |= {f"{ROOT}new": Page("a fresh page of medlar"), ROOT: Page("the root", (f"{ROOT}new", *pages))}
    await crawl(db, source, Site(pages))
    assert await search.count_missing_vectors(db) == {"docs": 2}

    assert await EmbeddingBacklog(new).embed_pending(db) == EmbeddingReport()
    assert not new.embedded
    new.is_away = False
    filled = await EmbeddingBacklog(new).embed_pending(db)
    assert filled == EmbeddingReport(embedded=63, contents=63), "what is in the history too"
    assert (await near(db, new, "page 7 sloe"))[0] == "page 7 sloe"
    assert await near(db, old, "page 7 sloe") == []
    assert await EmbeddingBacklog(new).embed_pending(db) == EmbeddingReport()

    assert await delete_unused_vectors(db) == 61
    assert await counted(db, "vectors") == 63
    assert (await EmbeddingBacklog(old).embed_pending(db)).embedded == 63, "back to the one before, which had gone"
    assert (await near(db, old, "a fresh medlar"))[0] == "a fresh page of medlar"


@on_both_databases
async def test_a_process_that_was_told_of_another_model_before_does_not_turn_it_back(db: Database) -> None:
    old, new = EmbeddingBacklog(WordEmbedder("old")), EmbeddingBacklog(WordEmbedder("new"))
    source = await make_source(db)
    await crawl(db, source, Site(make_manual(5)))
    assert (await old.embed_pending(db)).embedded == 6
    assert (await new.embed_pending(db)).embedded == 6
    await crawl(db, source, Site(make_manual(7)))
    assert await old.embed_pending(db) == EmbeddingReport()
    assert (await new.embed_pending(db)).embedded == 2


@on_both_databases
async def test_a_model_whose_vectors_change_their_size_is_not_mixed_up(db: Database) -> None:
    embedder = WordEmbedder()
    source = await make_source(db)
    await crawl(db, source, Site(make_manual(5)))
    await EmbeddingBacklog(embedder).embed_pending(db)
    embedder.dimensions = 32
    await crawl(db, source, Site(make_manual(7)))
    assert await EmbeddingBacklog(embedder).embed_pending(db) == EmbeddingReport()
    assert await counted(db, "vectors") == 6
    assert await near(db, embedder, "page 3 cherry") == []


# Finding -------------------------------------------------------------------------------------------------------


@on_both_databases
async def test_the_nearest_are_found_in_whatever_is_asked_for(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding_backlog, "MIN_VECTORS_FOR_INDEX", 100)  # PostgreSQL makes its index
    monkeypatch.setattr("kept.search.vector_search.MIN_VECTOR_CANDIDATES", 4)
    monkeypatch.setattr("kept.search.vector_search.MAX_VECTOR_CANDIDATES", 8)
    if isinstance(db, SqliteDatabase):
        db._vector_index = VectorIndex(max_floats=60)  # from there on as bytes
    embedder = WordEmbedder(dimensions=256)
    filler = EmbeddingBacklog(embedder)
    large = await make_source(db, "large")
    await crawl(db, large, Site(make_manual(40)))
    await filler.embed_pending(db)
    assert (await near(db, embedder, "page 9 pear"))[0] == "page 9 pear"
    await crawl(db, large, Site(make_manual(150)))
    small = await make_source(db, "small", root="https://small.test/")
    pages = {small.root: Page("small page of quince", (f"{small.root}1",)), f"{small.root}1": Page("nothing like it")}
    await crawl(db, small, Site(pages, root=small.root))
    await filler.embed_pending(db)

    assert (await near(db, embedder, "page 149 medlar"))[0] == "page 149 medlar", "what came later is there"
    assert (await near(db, embedder, "page 12 quince", small=1))[0] == "small page of quince", "however much is nearer"
    assert "page 149 medlar" not in await near(db, embedder, "page 149 medlar", limit=200, large=1), "not yet then"
    assert len(await near(db, embedder, "page", limit=200, large=1)) == 41
    assert len(await near(db, embedder, "page", limit=500)) == 153, "every section, once"
    if not isinstance(db, SqliteDatabase):
        async with db.snapshot() as snapshot:
            assert await run_sql(snapshot, "SELECT 1 FROM pg_indexes WHERE indexname = 'vectors_near_1'")


@on_both_databases
async def test_the_modes_of_a_search_agree_on_what_is_shown(db: Database) -> None:
    embedder = WordEmbedder()
    await crawl(db, await make_source(db), Site(make_manual(30)))
    await EmbeddingBacklog(embedder).embed_pending(db)
    embedder_of = {embedder.model: embedder}.get
    words = await search.search_sections(db, SearchRequest(text="page 12 quince", limit=5))
    fused = await search.search_sections(
        db, SearchRequest(text="page 12 quince", limit=5), vectors=VectorSearchOptions("fused", embedder_of)
    )
    meant = await search.search_sections(
        db, SearchRequest(text="page 12 quince", limit=5), vectors=VectorSearchOptions("meaning", embedder_of)
    )
    assert words[0].section == fused[0].section == meant[0].section
    assert len(fused) == len(meant) == 5
    assert fused[0].score == pytest.approx(1.0)
    without = await search.search_sections(
        db, SearchRequest(text='page quince -"12"', limit=50), vectors=VectorSearchOptions("meaning", embedder_of)
    )
    assert without
    assert not any("12" in hit.text for hit in without)

    await crawl(db, await make_source(db, "docs", version="2"), Site(make_manual(30)))
    for by in (None, VectorSearchOptions("fused", embedder_of), VectorSearchOptions("meaning", embedder_of)):
        found = await search.search_sections(db, SearchRequest(text="page 12 quince", limit=5), vectors=by)
        assert found[0].version == "2"
        assert [other["version"] for other in found[0].also] == [""], "what is in several versions is shown once"
        assert len({hit.url for hit in found}) == 5


@on_both_databases
async def test_garbage_collection_takes_the_vectors_that_no_section_needs_and_no_others(db: Database) -> None:
    embedder = WordEmbedder()
    source = await make_source(db)
    await crawl(db, source, Site(make_manual(10)))
    await crawl(db, source, Site(make_manual(10, "another page") | {ROOT: Page("other root", tuple(make_manual(10)))}))
    await EmbeddingBacklog(embedder).embed_pending(db)
    assert await counted(db, "vectors") == 22
    assert await delete_unused_vectors(db) == 0, "history still shows them"
    collected = await collect(db, Retention(generations=1, younger_than=timedelta(0)))
    assert collected.vectors == 11
    assert (await near(db, embedder, "another page 3 cherry"))[0] == "another page 3 cherry"
    await crawl(db, source, Site(make_manual(10) | {ROOT: Page("third root", tuple(make_manual(10)))}))
    assert (await EmbeddingBacklog(embedder).embed_pending(db)).embedded == 11
    assert (await near(db, embedder, "page 3 cherry", limit=1)) == ["page 3 cherry"]


def test_postgresql_without_pgvector_goes_by_words_alone(postgres_server: PostgresServer) -> None:
    url = postgres_server.create_database(vector=False)
    role = urlsplit(url).path.removeprefix("/kept_test_")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE limited_{role} LOGIN".encode())
        connection.execute(f"GRANT ALL ON SCHEMA public TO limited_{role}".encode())
    parts = urlsplit(url)
    limited = parts._replace(netloc=f"limited_{role}@{parts.netloc.rpartition('@')[2]}").geturl()

    async def scenario() -> None:
        embedder = WordEmbedder()
        async with database_at(limited) as db:
            await crawl(db, await make_source(db), Site(make_manual(5)))
            assert await EmbeddingBacklog(embedder).embed_pending(db) == EmbeddingReport()
            assert not embedder.embedded
            hits = await search.search_sections(
                db, SearchRequest(text="cherry"), vectors=VectorSearchOptions("fused", {embedder.model: embedder}.get)
            )
            assert hits[0].text == "page 3 cherry"

    try:
        asyncio.run(scenario())
    finally:
        postgres_server.drop_database(url)


# A server ------------------------------------------------------------------------------------------------------


class EmbeddingServer:
    """An OpenAI-compatible server on loopback: slow, sometimes overloaded, and down on demand."""

    def __init__(self) -> None:
        self.embedded: Counter[str] = Counter()
        self.requests = 0
        self.is_troubled = True
        self.port = 0
        self.keys: set[str | None] = set()
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application(client_max_size=1 << 24)
        app.router.add_post("/v1/embeddings", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        if self._runner:
            await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.requests += 1
        self.keys.add(request.headers.get("Authorization"))
        payload = await request.json()
        if self.is_troubled and self.requests % 5 == 2:
            return web.Response(status=429, headers={"Retry-After": "0"})
        if self.is_troubled and self.requests % 5 == 3:
            assert request.transport is not None
            request.transport.close()  # in the middle of it
            return web.Response()
        await asyncio.sleep(0.02)
        self.embedded.update(payload["input"])
        rows = await WordEmbedder(payload["model"]).embed(payload["input"])
        data = [{"object": "embedding", "index": n, "embedding": row.tolist()} for n, row in enumerate(rows)]
        return web.json_response({"object": "list", "data": data, "model": payload["model"]})


@asynccontextmanager
async def open_runtime(url: str, database: str, folder: Path) -> AsyncIterator[Runtime]:
    options = {"PROVIDER": "openai", "URL": url, "MODEL": "words", "KEY": "env:THE_KEY", "BATCH_SIZE": "16"}
    environment = {f"KEPT_EMBED__{name}": value for name, value in options.items()} | {
        "THE_KEY": "sesame-open-the-door",
        "KEPT_SEARCH__MODE": "fused",
    }
    async with database_at(database) as db:
        runtime = Runtime(settings.load(environment=environment, folder=folder, database=database), db)
        try:
            yield runtime
        finally:
            await runtime.services.models.close()


def test_a_server_that_is_slow_busy_dead_and_back_again_embeds_each_text_once(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kept.embed.remote.INITIAL_BACKOFF_SECONDS", 0.02)
    monkeypatch.setattr("kept.embed.providers.QUERY_TIMEOUT_SECONDS", 60.0)  # however busy this machine is

    async def scenario() -> None:
        server = EmbeddingServer()
        await server.start()
        async with open_runtime(f"http://127.0.0.1:{server.port}/v1", database_url, tmp_path) as runtime:
            db, embedder = runtime.db, runtime.services.models.providers.for_indexing()
            assert embedder is not None
            moments = iter(range(0, 10**9, 10_000))
            filler = EmbeddingBacklog(embedder, clock=lambda: float(next(moments)))
            source = await make_source(db)
            await crawl(db, source, Site(make_manual(100)))
            await filler.embed_pending(db)
            await server.stop()
            await crawl(db, source, Site(make_manual(200)))
            await filler.embed_pending(db)
            assert (await search.count_missing_vectors(db))["docs"] >= 100
            hits = await search.search_sections(
                db, SearchRequest(text="page 150 damson"), vectors=runtime.services.vector_search()
            )
            assert hits[0].text == "page 150 damson", "the server is down, and lexical search finds it"
            await server.start()
            for _ in range(20):
                await filler.embed_pending(db)
            assert await search.count_missing_vectors(db) == {}
            assert set(server.embedded.values()) == {1}
            assert len(server.embedded) == await counted(db, "vectors")
            assert server.keys == {"Bearer sesame-open-the-door"}
            server.is_troubled = False
            assert "sesame" not in repr(runtime.settings.embed) + repr(runtime.services.models._clients)
            hits = await search.search_sections(
                db, SearchRequest(text="page 150 damson"), vectors=runtime.services.vector_search()
            )
            assert (hits[0].text, hits[0].score) == ("page 150 damson", pytest.approx(1.0))
        await server.stop()

    asyncio.run(scenario())
