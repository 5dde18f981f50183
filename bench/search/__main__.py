"""Compare the time of search with a bare full-text query on the same rows, in the same run.

    python -m bench.search [--sections 20000]… [--store sqlite|postgres]… [--queries 200] [--crawl]

Sections are the pages of the Django manual (from bench.quality), repeated under other names until there are enough,
each a little different, because hits with equal text are grouped. Queries are one to four of their words, rare and
common, and the questions of bench/quality. For each: Kept's search with ten hits, and

    sqlite      a bare FTS5 BM25 query: all words, then any if there are fewer than ten hits
    postgres    a bare ts_rank query with all words

--crawl measures again while a crawl writes to the same database. Hard queries (only the most common words, phrases,
prefixes) come last, one row each; none may take a second.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from statistics import median
from typing import Any

import apsw

from bench.quality.labels import labels
from bench.quality.manuals import on_sqlite
from kept.model.document import Content, NewVersion, Section, Validators
from kept.model.ids import new_id
from kept.model.search_request import SearchRequest
from kept.model.source import SourceKind, SourceSettings
from kept.model.tokens import tokenize
from kept.search.query import parse_query
from kept.service import search
from kept.store import contents, documents, generations, sections, sources
from kept.store.database import Database, open_database
from tests.postgres import PostgresServer

AT_ONCE = 200  # contents
COMMON = (
    "model field default object class value form query name method set use returns data database file user view request"
    " response template django python code example option function string type list key"
)
HARD: list[tuple[str, str, dict[str, Any]]] = [
    ("one common word", "django", {}),
    ("thirty common words", COMMON, {}),
    ("a prefix of one letter", "s*", {}),
    ("prefixes of two letters", "re* co* in* de*", {}),
    ("a common phrase", '"of the"', {}),
    ("sixteen common phrases", " ".join(f"a_{word}" for word in COMMON.split()[:16]), {}),
    ("a phrase that is nowhere", '"the the the"', {}),
    ("thirty exclusions", "the -" + " -".join(COMMON.split()), {}),
    ("in code only", "django", {"kind": "code"}),
    ("below a path that is nowhere", "django", {"path": "nothing/here"}),
]


def main() -> None:
    arguments = _arguments()
    pages = _pages()
    queries = _queries(pages, arguments.queries)
    server = PostgresServer() if "postgres" in arguments.store else None
    try:
        if server:
            server.start()
        with tempfile.TemporaryDirectory(prefix="bench") as folder:
            print("| store | sections | | p50 ms | p95 ms | worst ms |\n| --- | ---: | --- | ---: | ---: | ---: |")
            for sections in arguments.sections:
                for store in arguments.store:
                    url = (
                        f"sqlite:///{folder}/{sections}.db"
                        if store == "sqlite"
                        else (server and server.create_database())
                    )
                    asyncio.run(_measure(str(url), store, pages, sections, queries, crawl=arguments.crawl))
    finally:
        if server:
            server.close()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("bench.search", description="Measure the time of search.")
    parser.add_argument("--sections", action="append", type=int)
    parser.add_argument("--store", action="append", choices=["sqlite", "postgres"])
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--crawl", action="store_true")
    arguments = parser.parse_args()
    arguments.sections = arguments.sections or [20_000, 200_000]
    arguments.store = arguments.store or ["sqlite", "postgres"]
    return arguments


async def _search(db: Database, text: str, **options: Any) -> object:
    return await search.search_sections(db, SearchRequest(text=text, **options))


async def _measure(
    url: str, store: str, pages: Sequence[Content], sections: int, queries: Sequence[str], *, crawl: bool
) -> None:
    db = await open_database(url)
    try:
        source, number = await _begin(db)
        await _fill(db, source, number, pages, sections)
        await _end(db, source, number)
        bare, kept = await _times(queries, partial(_bare, db, store), partial(_search, db))
        _show(store, sections, "bare", bare)
        _show(store, sections, "kept", kept)
        if crawl:
            other, its = await _begin(db, "other")
            writing = asyncio.create_task(_fill(db, other, its, pages, sections, first=10_000))
            [busy] = await _times(queries, partial(_search, db))
            _show(store, sections, "kept during a crawl", busy)
            writing.cancel()
        for what, query, narrowed in HARD:
            [taken] = await _times([query] * 5, partial(_search, db, **narrowed), rounds=1)
            _show(store, sections, what, taken)
        ratio = [round(_at(kept, part) / _at(bare, part), 1) for part in (0.5, 0.95)]
        print(f"{store}, {sections:,}: p50 × {ratio[0]}, p95 × {ratio[1]}", file=sys.stderr, flush=True)
    finally:
        await db.close()


async def _times(
    queries: Sequence[str], *asks: Callable[[str], Awaitable[object]], rounds: int = 3
) -> list[list[float]]:
    """Return the sorted times of all queries for each kind of search: the median of some rounds.

    They alternate, so that noise of the machine affects them alike, and with different queries, so that none profits
    from the cache of another.
    """
    taken: list[dict[int, list[float]]] = [defaultdict(list) for _ in asks]
    apart = len(queries) // len(asks)
    for round in range(rounds + 1):
        for turn in range(len(queries)):
            for number, ask in enumerate(asks):
                at = (turn + number * apart) % len(queries)
                start = time.perf_counter()
                await ask(queries[at])
                if round:  # the first round warms up
                    taken[number][at].append((time.perf_counter() - start) * 1000)
    return [sorted(map(median, one.values())) for one in taken]


async def _bare(db: Database, store: str, query: str) -> None:
    """Query only the full-text index, without the statements of the store."""
    terms = parse_query(query).terms
    async with db.snapshot() as snapshot:
        if store == "postgres":
            text = " & ".join(" <-> ".join(f"'{word}'" for word in term.words) for term in terms)
            cursor = await snapshot._connection.execute(  # type: ignore[attr-defined]
                "SELECT id, ts_rank(words, q) AS rank FROM sections, to_tsquery('kept', %s) AS q WHERE words @@ q"
                " ORDER BY rank DESC LIMIT 10",
                [text],
            )
            await cursor.fetchall()
            return
        found = 0
        for joint in (" AND ", " OR "):
            text = joint.join(f'"{" ".join(term.words)}"' for term in terms)
            if found < 10 and (joint == " AND " or len(terms) > 1):
                rows = await snapshot.thread.run(_bm25, text)  # type: ignore[attr-defined]
                found += len(rows)


def _bm25(connection: apsw.Connection, text: str) -> list[object]:
    return connection.execute(
        "SELECT rowid FROM section_words WHERE section_words MATCH ? ORDER BY bm25(section_words) LIMIT 10", (text,)
    ).fetchall()


def _show(store: str, sections: int, what: str, taken: Sequence[float]) -> None:
    print(
        f"| {store} | {sections:,} | {what} | {_at(taken, 0.5):.1f} | {_at(taken, 0.95):.1f} | {taken[-1]:.1f} |",
        flush=True,
    )


def _at(taken: Sequence[float], part: float) -> float:
    return taken[min(len(taken) - 1, int(part * len(taken)))]


# Rows and queries.


def _pages() -> list[Content]:
    db = apsw.Connection(str(on_sqlite("django")), flags=apsw.SQLITE_OPEN_READONLY)
    pages: dict[int, tuple[str, list[Section]]] = {}
    for content, title, *section in db.execute(
        "SELECT c.id, c.title, s.position, s.parent_section_id % 1048576, s.level, s.heading, s.anchor, s.text"
        " FROM sections s JOIN contents c ON c.id = s.content_id ORDER BY s.id"
    ):
        pages.setdefault(int(content), (str(title), []))[1].append(Section(*section))  # type: ignore[arg-type]
    return [Content(hash=str(id), title=title, markdown="", sections=tuple(s)) for id, (title, s) in pages.items()]


def _queries(pages: Sequence[Content], number: int) -> list[str]:
    chance = random.Random(1)
    texts = [section.text for page in pages for section in page.sections if len(section.text) > 300]
    made = [label.query for label in labels("django")]
    while len(made) < 2 * number:
        found = [word for word in tokenize(chance.choice(texts)) if len(word) > 2]
        made.append(" ".join(chance.sample(found, min(len(found), chance.randint(1, 4)))))
    chance.shuffle(made)
    return made[:number]


async def _begin(db: Database, name: str = "bench") -> tuple[str, int]:
    async with db.transaction() as tx:
        id = new_id()
        await sources.insert(
            tx,
            id=id,
            name=name,
            version="",
            kind=SourceKind.WEB,
            root=f"https://{name}.test/",
            settings=SourceSettings(),
        )
        number = await sources.allocate_generation_number(tx, id)
        await generations.insert(tx, id, number, job=None)
    return id, number


async def _fill(
    db: Database, source: str, number: int, pages: Sequence[Content], sections: int, *, first: int = 0
) -> None:
    stored = copy = 0
    start = time.perf_counter()
    while stored < sections:
        copy += 1
        for at in range(0, len(pages), AT_ONCE):
            batch = {
                f"{first + copy}-{page.hash}": Content(
                    hash=f"{first + copy}-{page.hash}",
                    title=page.title,
                    markdown="x",
                    sections=tuple(one._replace(text=f"{one.text}\n\nCopy {first + copy}.") for one in page.sections),
                )
                for page in pages[at : at + AT_ONCE]
            }
            async with db.transaction() as tx:
                ids = await contents.get_or_insert(tx, batch)
                owners = {hash: new_id() for hash in batch}
                await documents.insert_document(tx, [(owner, source) for owner in owners.values()], generation=number)
                await documents.insert_versions(
                    tx, source, [_version(owners[hash], number, hash, ids[hash]) for hash in batch]
                )
            stored += sum(len(page.sections) for page in batch.values())
            if stored >= sections:
                break
    rate = stored / (time.perf_counter() - start)
    print(f"stored {stored:,} sections, {rate:,.0f} a second", file=sys.stderr, flush=True)


def _version(document: str, born: int, hash: str, content: int) -> NewVersion:
    return NewVersion(
        document_id=document,
        born=born,
        pending=False,
        read_again=False,
        url=f"https://bench.test/{hash}",
        content_id=content,
        content_type="text/html",
        validators=Validators(),
        raw_hash=hash,
        signature="1",
        depth=1,
        links=(),
        canonical=None,
    )


async def _end(db: Database, source: str, number: int) -> None:
    async with db.transaction() as tx:
        await sections.refresh_term_statistics(tx)
        made = await generations.get(tx, source, number)
        assert made is not None
        await generations.activate_generation(
            tx, made, documents=1, tally=made.tally, changed=True, whole=True, partial=None
        )
        await sources.set_active_generation(tx, source, number)


if __name__ == "__main__":
    main()
