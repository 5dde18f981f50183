"""Both databases give one result: the same random histories and queries give the same documents, states and hits.

Each crawl is made on both databases, with the same changes of the same sites; then what is shown, the state and reason
of each document, the ledger and the counts have to be equal. The last states are searched with random queries, whose
answers have room for every section that matches: the same sections have to be found. Their order may differ, because
each database counts words in its own way (docs/decisions/0015-one-ranking-for-both-databases.md).

``python -m tests.contract.test_one_result --histories 50 --queries 3000`` is the long form.
"""

import argparse
import asyncio
import os
import random
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack, ExitStack, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from kept.errors import InvalidInput, NeedsDecision
from kept.model.job import CrawlJob, CrawlMode
from kept.model.search_request import SearchRequest
from kept.model.source import Limits, Scope, Source, SourceSettings
from kept.service import search
from kept.store import sources
from kept.store.database import Database
from tests.contract.databases import run_sql
from tests.contract.test_search import keep
from tests.factories import ROOT, Page, Site, crawl, database_at, make_source
from tests.postgres import PostgresServer

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
COMMON = ["pool", "connection", "server", "option", "table"]  # on most pages
USUAL = [f"{one}{two}" for one in ("log", "form", "cache", "query", "index") for two in ("", "er", "ing", "s", "file")]
RARE = ["zebra", "quokka", "wait_for", "max_connections", "ArrayList", "std::vector", "--no-ff", "café", "全文検索"]
UNKNOWN = ["zzz", "qqqq", "xylophone_of_nowhere", "ñandú"]


def write_page(chance: random.Random, number: int) -> str:
    """Write a Markdown page of some sections."""
    parts = [f"# Page {number} about {chance.choice(USUAL)}"]
    for section in range(chance.randrange(1, 5)):
        words = [*chance.choices(COMMON, k=3), *chance.choices(USUAL, k=6)]
        words += chance.choices(RARE, k=1) if chance.random() < 0.15 else []
        chance.shuffle(words)
        heading = chance.choice([chance.choice(words), f"{chance.choice(USUAL)} {section}", f"{words[0]}.{words[1]}()"])
        parts.append(f"## {heading}\n\nOf {number}.{section}: the {' '.join(words)}.")
        if chance.random() < 0.2:
            parts.append(f"```python\n{chance.choice(USUAL)}({chance.choice(RARE)})\n```")
    return "\n\n".join(parts)


def make_query(chance: random.Random) -> str:
    """Return a query of unknown, rare, common and misspelt words, with operators."""
    parts = []
    for _ in range(chance.choice([1, 1, 2, 2, 3, 4])):
        word = chance.choice(chance.choice([COMMON, USUAL, USUAL, RARE, UNKNOWN]))
        match chance.randrange(9):
            case 0 if len(word) > 3:  # misspelt
                at = chance.randrange(len(word) - 1)
                word = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
            case 1:
                word = f"{word[:4]}*"
            case 2:
                word = f'"{word} {chance.choice(COMMON)}"'
            case 3 if parts:
                word = f"-{word}"
            case 4:
                word = word.upper()
        parts.append(word)
    return " ".join(parts)


@dataclass
class History:
    """A site and the random changes of it."""

    chance: random.Random
    pages: dict[str, Page] = field(default_factory=dict)
    settings: SourceSettings = field(default_factory=SourceSettings)

    def begin(self, count: int) -> None:
        urls = [f"{ROOT}{number}" for number in range(count)]
        for number, url in enumerate(urls):
            self.pages[url] = Page(write_page(self.chance, number), tuple(self.chance.sample(urls, 2)), tag=str(number))
        self.pages[ROOT] = Page("# Root\n\nOf the whole site.", tuple(urls[::2]))

    def change(self) -> None:
        for _ in range(self.chance.randrange(1, 6)):
            url = self.chance.choice([one for one in self.pages if one != ROOT])
            page, other = self.pages[url], self.chance.choice(list(self.pages))
            text = write_page(self.chance, self.chance.randrange(1000))
            changes: dict[str, Any] = self.chance.choice(
                [
                    {"text": text, "gone": False, "error": None},
                    {"gone": not page.gone},
                    {"error": None if page.error else "500"},
                    {"refused": None if page.refused else "robots.txt"},
                    {"redirect": None if page.redirect or other == url else other},
                    {"links": (other, f"{ROOT}dead{self.chance.randrange(5)}")},
                    {"canonical": other},
                    {"tag": text[:20]},
                ]
            )
            self.pages[url] = replace(page, **changes)
        if self.chance.random() < 0.3:
            limits = self.chance.choice([Limits(), Limits(), Limits(max_pages=12), Limits(max_depth=1)])
            exclude = self.chance.choice([(), (), ("1*",)])
            self.settings = SourceSettings(limits=limits, scope=Scope(exclude=exclude))

    def site(self) -> Site:
        excluded = [url for url in self.pages if self.settings.scope.exclude and url.startswith(f"{ROOT}1")]
        return Site(dict(self.pages), excluded=frozenset(excluded))


async def crawl_both(dbs: Sequence[Database], kept: Sequence[Source], history: History, now: datetime) -> None:
    mode = history.chance.choice([CrawlMode.REFRESH, CrawlMode.REFRESH, CrawlMode.FULL, CrawlMode.FAILED])
    found = []
    for db, source in zip(dbs, kept, strict=True):
        async with db.transaction() as tx:
            await sources.set_settings(tx, source.id, history.settings)
        job = await crawl(db, source, history.site(), mode=mode, now=now)
        found.append(await describe(db, job))
    assert found[0] == found[1], "the same crawl has another result"


async def describe(db: Database, job: CrawlJob) -> dict[str, Any]:
    """Return all that a crawl came to, without what each database makes up: ids and times."""
    async with db.snapshot() as snapshot:
        generations = await run_sql(snapshot, "SELECT number, state, documents, partial, reason FROM generations")
        documents = await run_sql(
            snapshot,
            "SELECT v.url, v.born, v.died, v.end_reason, c.hash, d.lifecycle, d.reason, d.retry_count, d.missed_crawls"
            " FROM versions v JOIN documents d ON d.id = v.document_id JOIN contents c ON c.id = v.content_id",
        )
        ledger = await run_sql(
            snapshot, f"SELECT url, depth, outcome, reason, redirect_to FROM frontier WHERE job_id = '{job.id}'"
        )
    return {
        "job": (job.status, job.held, job.generation, job.progress.tally),
        "generations": sorted(map(repr, generations)),
        "documents": sorted(map(repr, documents)),
        "ledger": sorted(map(repr, ledger)),
    }


async def compare_searches(dbs: Sequence[Database], chance: random.Random, queries: int) -> Counter[str]:
    """Ask both databases the same questions. Returns how often what differed."""
    counts: Counter[str] = Counter()
    for _ in range(queries):
        text = make_query(chance)
        answers: list[Any] = []
        for db in dbs:
            try:
                hits = await search.search_sections(db, SearchRequest(text=text, limit=50))
                answers.append([(hit.url, hit.text) for hit in hits])
            except InvalidInput as refused:
                answers.append(str(refused))
        counts["queries"] += 1
        counts["with hits"] += bool(answers[0])
        if sorted(answers[0]) != sorted(answers[1]):
            counts["other hits"] += 1
            print(repr(text), len(answers[0]), len(answers[1]), flush=True)
        counts["another first"] += answers[0][:1] != answers[1][:1]
        counts["another order"] += answers[0][:10] != answers[1][:10]
    return counts


async def run_history(dbs: Sequence[Database], chance: random.Random, *, crawls: int, queries: int) -> Counter[str]:
    """Crawl a changing site on both databases, and then a manual whose sections are searched, too."""
    history, kept = History(chance), [await make_source(db) for db in dbs]
    history.begin(chance.randrange(8, 20))
    now = BEGINNING
    for _ in range(crawls):
        with suppress(NeedsDecision):
            await crawl_both(dbs, kept, history, now)
        history.change()
        now += timedelta(days=chance.randrange(1, 6))
    manual = {f"{number}.md": write_page(chance, number) for number in range(8)}
    for db in dbs:
        await keep(db, "manual", "", manual)
    return await compare_searches(dbs, chance, queries)


async def compare(chance: random.Random, server: PostgresServer, *, crawls: int, queries: int) -> Counter[str]:
    """Compare an SQLite and a PostgreSQL database that have the same history."""
    url = server.create_database()
    try:
        async with AsyncExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            dbs = [await stack.enter_async_context(database_at(one)) for one in (f"sqlite:///{folder}/kept.db", url)]
            return await run_history(dbs, chance, crawls=crawls, queries=queries)
    finally:
        server.drop_database(url)


def test_both_databases_give_the_same_documents_states_reasons_and_hits(postgres_server: PostgresServer) -> None:
    chance = random.Random(os.environ["KEPT_TEST_SEED"])
    counts = asyncio.run(compare(chance, postgres_server, crawls=6, queries=100))
    assert counts["with hits"] > 50
    assert counts["other hits"] == 0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.contract.test_one_result")
    parser.add_argument("--histories", type=int, default=20)
    parser.add_argument("--crawls", type=int, default=15)
    parser.add_argument("--queries", type=int, default=3000, help="of all histories together")
    parser.add_argument("--seed", default=str(random.randrange(2**32)))
    arguments = parser.parse_args()
    counts: Counter[str] = Counter()
    with ExitStack() as stack:
        server = PostgresServer(os.environ.get("KEPT_TEST_POSTGRES"))
        stack.callback(server.close)
        if not os.environ.get("KEPT_TEST_POSTGRES"):
            server.start()
        for number in range(arguments.histories):
            chance = random.Random(f"{arguments.seed}-{number}")
            queries = -(-arguments.queries // arguments.histories)
            counts += asyncio.run(compare(chance, server, crawls=arguments.crawls, queries=queries))
            print(f"history {number} of seed {arguments.seed}: {dict(counts)}", flush=True)
    assert counts["other hits"] == 0


if __name__ == "__main__":
    main()
