"""Queries and their expected hits, on both databases."""

import asyncio
import random
import sys
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote

import pytest

from kept.crawl.engine import CrawlRun
from kept.crawl.lifecycle import LifecycleRules
from kept.errors import InvalidInput, NotFound
from kept.extract import reader
from kept.extract.sections import Unreadable
from kept.jobs import queue
from kept.jobs.worker import claim_and_run
from kept.maintenance.index_rebuild import rebuild_index
from kept.model.document import ParsedPage
from kept.model.ids import new_id
from kept.model.index_fields import IndexFields
from kept.model.job import Lease
from kept.model.search_request import SearchRequest
from kept.model.source import Source, SourceKind, SourceSettings
from kept.service import search
from kept.store import sections, sources
from kept.store.database import Database
from tests.contract.databases import on_both_databases, run_sql
from tests.factories import Page, Site, database_at

MANUAL = {
    "tasks.md": """# Coroutines and tasks
Waiting for tasks.

## asyncio.wait_for(aw, timeout)
Wait for a coroutine to complete with a timeout. If a timeout occurs, it cancels the task.

```python
await asyncio.wait_for(eternity(), timeout=1.0)
```

## asyncio.gather(*aws)
Runs awaitables concurrently; unlike wait_for it has no timeout.
""",
    "merge.md": """# git-merge
Joins two histories.

## Options

**--no-ff**

Create a merge commit in all cases.

**--squash**

Produce the state as if a real merge happened, but with no commit.
""",
    "containers.md": """# Containers

## std::vector
A sequence container of elements that can change in size.

## ArrayList
A list that is backed by an array. Caching of elements is up to you.

```java
ArrayList<String> names = new ArrayList<>();
```

## HTMLParser
Reads markup.
""",
    "config.md": """# Configuration

## max_connections
The maximum number of concurrent connections. Default: 100.

## CREATE TABLE
Defines a new table. A table has columns.

## Backups
Everything is cached, and caches are kept. Crème brûlée is a dessert. Every nervous zebra waits for a table.
""",
    "releases/1.0.md": """# Release notes 1.0
max_connections max_connections is new, and so are std::vector, ArrayList and asyncio.wait_for. max_connections again.
""",
    "ja.md": """# 日本語

## 全文検索
データベースの全文検索は速い。

## 設定
接続の最大数。
""",
}

ANSWERS = {
    "asyncio.wait_for": "tasks.md#asynciowait_foraw-timeout",
    "wait_for": "tasks.md#asynciowait_foraw-timeout",
    "waitFor timeout": "tasks.md#asynciowait_foraw-timeout",
    "--no-ff": "merge.md#options",
    "squash": "merge.md#options",
    "std::vector": "containers.md#stdvector",
    "ArrayList": "containers.md#arraylist",
    "array list": "containers.md#arraylist",
    "html parser": "containers.md#htmlparser",
    "CREATE TABLE": "config.md#create-table",
    "create table": "config.md#create-table",
    "max_connections": "config.md#max_connections",
    "maximum connection": "config.md#max_connections",
    "max_conn*": "config.md#max_connections",
    "cache of elements": "containers.md#arraylist",
    "creme brulee": "config.md#backups",
    "CRÈME": "config.md#backups",
    "全文検索": "ja.md#全文検索",
    "検索": "ja.md#全文検索",
    "最": "ja.md#設定",
    '"nervous zebra"': "config.md#backups",
    "table -zebra -merge": "config.md#create-table",
    "release notes max_connections": "releases/1.0.md#release-notes-10",
    "how do I cancel a task after a timeout": "tasks.md#asynciowait_foraw-timeout",
    "waits for too many max connections": "config.md#max_connections",
}


async def keep(db: Database, name: str, version: str, pages: dict[str, str]) -> Source:
    """Create a source with these Markdown pages."""
    root = f"https://{name}.test/{version or 'main'}/"
    async with db.transaction() as tx:
        source = await sources.by_label(tx, name, version)
        if source is None:
            await sources.insert(
                tx, id=new_id(), name=name, version=version, kind=SourceKind.WEB, root=root, settings=SourceSettings()
            )
            source = await sources.by_label(tx, name, version)
    assert source is not None
    site = Site({f"{root}{path}": Page(text, content_type="text/markdown") for path, text in pages.items()}, True, root)

    async def read(body: bytes, content_type: str, url: str) -> ParsedPage | Unreadable:
        return reader.parse_page(body, content_type=content_type, url=url)

    def make_run(lease: Lease, claimed: Source) -> CrawlRun:
        return CrawlRun(db, lease, claimed, site, read=read, signature="1", rules=LifecycleRules(), now=None)

    job = await queue.enqueue(db, source.id)
    done = await claim_and_run(db, job.id, make_run)
    assert done is not None
    assert done.status == "completed", done.error
    return source


def place(hit: search.Hit) -> str:
    return unquote(hit.url.partition("/main/")[2])


@on_both_databases
async def test_people_find_what_they_ask_for_in_the_words_they_use(db: Database) -> None:
    await keep(db, "manual", "", MANUAL)
    found = {
        query: [place(hit) for hit in await search.search_sections(db, SearchRequest(text=query))] for query in ANSWERS
    }
    assert {query: hits[:1] for query, hits in found.items()} == {query: [best] for query, best in ANSWERS.items()}
    assert "merge.md#options" not in found["table -zebra -merge"]
    assert found['"nervous zebra"'] == ["config.md#backups"]


@on_both_databases
async def test_code_examples_are_found_by_themselves_and_by_their_language(db: Database) -> None:
    await keep(db, "manual", "", MANUAL)
    code = await search.search_sections(db, SearchRequest(text="wait_for timeout", kind="code"))
    assert [place(hit) for hit in code] == ["tasks.md#asynciowait_foraw-timeout"]
    assert code[0].snippet == "await asyncio.**wait_for**(eternity(), **timeout**=1.0)"
    assert await search.search_sections(db, SearchRequest(text="backed", kind="code")) == []
    assert [place(hit) for hit in await search.search_sections(db, SearchRequest(text="new", language="Java"))] == [
        "containers.md#arraylist"
    ]
    assert await search.search_sections(db, SearchRequest(text="new", language="py")) == []
    with pytest.raises(InvalidInput, match="no kind 'picture'"):
        await search.search_sections(db, SearchRequest(text="new", kind="picture"))


@on_both_databases
async def test_a_path_narrows_to_what_lies_below_it(db: Database) -> None:
    many = {f"guide/part{number}.md": f"# Part {number}\nAbout connections, number {number}." for number in range(90)}
    await keep(db, "manual", "", many | {"ref/pool.md": f"# Pool\n{'Other words. ' * 80}\nconnections"})
    assert [place(hit) for hit in await search.search_sections(db, SearchRequest(text="connections", path="ref"))] == [
        "ref/pool.md#pool"
    ]
    assert [
        place(hit) for hit in await search.search_sections(db, SearchRequest(text="connections", path="ref/p*.md"))
    ] == ["ref/pool.md#pool"]
    assert len(await search.search_sections(db, SearchRequest(text="connections", path="/guide/", limit=100))) == 90
    assert await search.search_sections(db, SearchRequest(text="connections", path="ref/po")) == []
    assert await search.search_sections(db, SearchRequest(text="connections", path="%")) == []


@on_both_databases
async def test_a_small_source_is_searched_to_its_end_beside_a_large_one(db: Database) -> None:
    await keep(db, "large", "", {f"{n}.md": f"# Connections {n}\nConnections, connections." for n in range(150)})
    await keep(db, "small", "", {"a.md": f"# Notes\n{'Other words. ' * 80}\nOne word about connections."})
    assert [
        hit.source for hit in await search.search_sections(db, SearchRequest(text="connections", labels=("small",)))
    ] == ["small"]


@on_both_databases
async def test_a_version_is_the_one_that_people_expect(db: Database) -> None:
    for version, text in {
        "17.0": "Old hooks.",
        "18.2": "Hooks of 18.2.",
        "18.3": "Hooks, now.",
        "19.0-rc1": "Hooks!",
    }.items():
        await keep(db, "react", version, {"hooks.md": f"# Hooks\n{text}"})
    await keep(db, "vue", "", {"hooks.md": "# Hooks\nThere are none."})
    for target, expected in {
        "18": "18.3",
        "^18": "18.3",
        "~18.2": "18.2",
        "latest": "18.3",
        "17": "17.0",
        "19": "19.0-rc1",
    }.items():
        assert (await search.find_version(db, "react", target)).version == expected
        assert [
            hit.version
            for hit in await search.search_sections(db, SearchRequest(text="hooks", labels=("react",), version=target))
        ] == [expected]
    assert {hit.source for hit in await search.search_sections(db, SearchRequest(text="hooks", version="latest"))} == {
        "react",
        "vue",
    }
    assert {hit.source for hit in await search.search_sections(db, SearchRequest(text="hooks", version="18"))} == {
        "react"
    }
    with pytest.raises(NotFound, match=r"No version of react answers to '20'\. There is: 19\.0-rc1, 18\.3"):
        await search.find_version(db, "react", "20")
    with pytest.raises(NotFound, match="There is no source named 'reakt'"):
        await search.find_version(db, "reakt", "18")
    with pytest.raises(NotFound, match="No source has a version"):
        await search.search_sections(db, SearchRequest(text="hooks", version="99"))
    (hit,) = await search.search_sections(
        db, SearchRequest(text="hooks", labels=("react@18.3", "react@18.2", "react@17.0"))
    )
    assert (hit.version, [other["version"] for other in hit.also]) == ("18.3", ["18.2", "17.0"])


@on_both_databases
async def test_many_versions_of_a_page_leave_room_for_other_pages(db: Database) -> None:
    for version in range(1, 9):
        pages = {f"{at}.md": f"# Page {at}\nConnections of kind {at} in version {version}." for at in range(12)}
        await keep(db, "docs", f"{version}.0", pages)
    hits = await search.search_sections(db, SearchRequest(text="connections"))
    assert len({hit.title for hit in hits}) == 10
    assert {(hit.version, len(hit.also)) for hit in hits} == {("8.0", 7)}


@on_both_databases
async def test_an_earlier_generation_is_searched_as_it_was(db: Database) -> None:
    await keep(db, "manual", "", {"a.md": "# Pool\nThe word is walrus."})
    await keep(db, "manual", "", {"a.md": "# Pool\nThe word is badger."})
    assert [
        hit.generation
        for hit in await search.search_sections(db, SearchRequest(text="walrus", labels=("manual",), generation=1))
    ] == [1]
    assert await search.search_sections(db, SearchRequest(text="walrus")) == []


@on_both_databases
async def test_what_stands_around_a_hit_is_given_as_far_as_it_fits(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await keep(db, "manual", "", MANUAL)

    async def context(wanted: str, budget: int | None = None) -> str:
        hits = await search.search_sections(
            db, SearchRequest(text="max_connections", path="config.md", limit=1, context=wanted, budget=budget)
        )
        return hits[0].context or ""

    assert (await context("parent")).startswith("# Configuration\n\n## max\\_connections") or (
        await context("parent")
    ).startswith("# Configuration\n\n## max_connections")
    assert "CREATE TABLE" not in await context("parent")
    assert "CREATE TABLE" in await context("siblings")
    assert "nervous zebra" in await context("document")
    assert "nervous zebra" not in await context("document", budget=60)
    few = await search.search_sections(db, SearchRequest(text="table wait_for connections", budget=60))
    assert 0 < sum(len(hit.text) for hit in few) <= 240
    assert len(few) < len(await search.search_sections(db, SearchRequest(text="table wait_for connections")))
    (cut,) = await search.search_sections(db, SearchRequest(text="max_connections", budget=5, limit=3))
    assert cut.text.endswith("…")
    assert len(cut.text) <= 20
    with pytest.raises(InvalidInput, match="no context 'all'"):
        await context("all")
    monkeypatch.setattr(search, "DEFAULT_TOKEN_BUDGET", 60)
    assert "nervous zebra" not in await context("document"), "there is a default budget"


@on_both_databases
async def test_a_query_without_hits_is_spelled_anew(db: Database) -> None:
    await keep(db, "manual", "", MANUAL)
    for typed, meant in {
        "conections": "connections",
        "zebar": "zebra",
        "asynchio": "asyncio",
        "brulée": None,
        "qqqq": None,
    }.items():
        assert await search.suggest_spelling(db, typed) == meant, typed
    assert await search.suggest_spelling(db, "coroutnie vectro") == "coroutine vector"


NAUGHTY = [
    "\0", "\x1b[31m", "' OR 1=1 --", '"', '""', "()", "AND", "OR NOT", "NEAR(a b)", "a AND", "a:b", "names : x",
    "^a",
    "*", "-", "--", "- -", "a*b*", "-a", "🙂", "🙂 👩‍👩‍👧", "\ud800", "%s %d", "<->", "a <-> b", "!a", "a & !", ":*",
    "'a':A",
    "\\", "x" * 100_000, "a " * 50_000, '"a' * 999, "（）", "ﷺ", "ﬁ", "İ", "ß", "\u202e", "1e999", "0x1F",
    "10.10.10.10",
    "a.b.c.d",
    "http://a.b/c?d=e#f", "C++", "C#", ".NET", "$_", "@x", "~", "zq", "{a b}", "a + b", "全", "ー", "한",
    "é" * 300,
]  # fmt: skip


@on_both_databases
async def test_whatever_is_typed_is_answered_or_refused_in_plain_words(db: Database) -> None:
    await keep(db, "manual", "", MANUAL)
    await ask_anything(db, random.Random(7), 500)


async def ask_anything(db: Database, chance: random.Random, times: int) -> None:
    words = ["connections", "wait_for", "table", "全文", "--no-ff"]
    for number in range(times):
        typed = NAUGHTY[number] if number < len(NAUGHTY) else _anything(chance, words)
        try:
            hits = await search.search_sections(db, SearchRequest(text=typed, limit=5))
            if not hits:
                await search.suggest_spelling(db, typed)
        except InvalidInput as error:
            refused = str(error)
            assert "The query is empty" in refused, typed[:50]
        else:
            assert len(hits) <= 5


def _anything(chance: random.Random, words: list[str]) -> str:
    parts = [
        chance.choice(
            [
                chance.choice(NAUGHTY)[:50],
                chance.choice(words),
                "".join(
                    chr(chance.choice([chance.randrange(1, 0x250), chance.randrange(0x3000, 0xD7FF)])) for _ in range(4)
                ),
                chance.choice(['"', "-", "*", "(", ")", "AND", "|", "&", "<->", ":", "\\"]),
            ]
        )
        for _ in range(chance.randrange(1, 7))
    ]
    return chance.choice(["", " "]).join(parts)


if __name__ == "__main__":  # the long form: python -m tests.contract.test_search DATABASE-URL TIMES

    async def main(url: str, times: int) -> None:
        async with database_at(url) as db:
            await keep(db, "manual", "", MANUAL)
            await ask_anything(db, random.Random(), times)

    asyncio.run(main(sys.argv[1], int(sys.argv[2])))


@on_both_databases
async def test_an_unknown_word_does_not_empty_the_search(db: Database) -> None:
    pools = {
        f"{page}.md": "\n".join(f"## Pool {page}.{n}\nA pool of {n} connections." for n in range(400))
        for page in range(3)
    }
    await keep(db, "manual", "", MANUAL | pools)
    for text in ("pool zzz", "zzz pool", "zzz pool qqqq", '"zzz qqqq" pool', "zzz* pool"):
        hits = await search.search_sections(db, SearchRequest(text=text, limit=20))
        assert len(hits) == 20, text
        assert all("pool" in hit.text for hit in hits), text


FLAGS = {
    "commit.md": """# git-commit
Records changes. See git-add(1).

**-a**

**--all**

Stage every file that was modified. `-m` is for the message.

## Amending
Commit again with a better message.
""",
    "add.md": """# git-add
Adds a file to the next commit.

**-A**

All of them.
""",
    "json.md": """# Operators

## Extracting
| Operator | Description |
| --- | --- |
| `->>` | extracts a field as text |

## Comparing
Two values are equal where `a == b`. In C++ too.

## Building
Compile with SQLITE_DEBUG to find mistakes; a library is opened with `-readonly`. `$HOME` is where it lies.
""",
}


@on_both_databases
async def test_flags_operators_and_names_are_found_as_they_are_written(db: Database) -> None:
    await keep(db, "manual", "", FLAGS)
    wanted = {
        "git commit -a": "commit.md#git-commit",
        "git -A": "add.md#git-add",
        "->>": "json.md#extracting",
        "==": "json.md#comparing",
        "c++": "json.md#comparing",
        "-DSQLITE_DEBUG": "json.md#building",
        "library -readonly": "json.md#building",
        "$HOME": "json.md#building",
        "compile -mistakes": "",
        "%s": "",
        "source:manual compare": "json.md#comparing",
        "source:nowhere comparing": "json.md#comparing",
    }
    found = {
        query: next((place(hit) for hit in await search.search_sections(db, SearchRequest(text=query))), "")
        for query in wanted
    }
    assert found == wanted


@on_both_databases
async def test_an_unknown_word_is_corrected_at_once_and_a_quoted_one_is_not(db: Database) -> None:
    await keep(db, "manual", "", MANUAL | FLAGS)
    services: Any = SimpleNamespace(db=db, vector_search=lambda: None, reranking=lambda: None)
    spelled = {"gti-commit": "git-commit", "Tabel columms": "table columns", "max_conections": "max_connections"}
    for typed, meant in spelled.items():
        found = await search.run_search(services, SearchRequest(text=typed))
        assert found.did_you_mean == meant
        assert found.hits == await search.search_sections(db, SearchRequest(text=meant))
    quoted = await search.run_search(services, SearchRequest(text='"tabel"'))
    assert (quoted.hits, quoted.did_you_mean) == ([], None)
    excluding = await search.run_search(services, SearchRequest(text="table -zebra"))
    assert excluding.without == ("zebra",)


@on_both_databases
async def test_what_an_older_version_indexed_is_found_by_words_until_it_is_rebuilt(db: Database) -> None:
    await keep(db, "manual", "", FLAGS)
    everything = SearchRequest(text="->>")
    expected = [place(hit) for hit in await search.search_sections(db, everything)]
    async with db.transaction() as tx:
        for id in (1, 2, 3):  # as if without tokens
            stored = await sections.of_content(tx, id)
            plain = [(one.id, IndexFields(one.heading, one.headings, one.text.replace("-", " "), "")) for one in stored]
            await sections.replace_index(tx, plain)
        await run_sql(tx, "INSERT INTO index_rebuild VALUES (0, 3)")
    assert await search.search_sections(db, everything) == []
    assert (await search.search_sections(db, SearchRequest(text="extracts a field")))[0].url.endswith("#extracting")
    assert (await rebuild_index(db)).contents == 3
    assert [place(hit) for hit in await search.search_sections(db, everything)] == expected
    assert await search.index_progress(db) is None
    assert (await rebuild_index(db)).contents == 0


@on_both_databases
async def test_what_only_points_to_pages_never_comes_before_them(db: Database) -> None:
    index = "# Index\n" + "\n".join(f"- [zebra {at}](zebra.md)" for at in range(20))
    await keep(db, "manual", "", {"bookindex.md": index, "animals.md": "# Animals\nThere is a zebra among them."})
    hits = await search.search_sections(db, SearchRequest(text="zebra"))
    assert [place(hit).partition("#")[0] for hit in hits] == ["animals.md", "bookindex.md"]


@on_both_databases
async def test_a_source_that_the_query_names_comes_first(db: Database) -> None:
    await keep(
        db, "sheep", "", {"append.md": "# append\nAppend to a list of sheep. Append, append.", "cows.md": "# Cows\nNo."}
    )
    await keep(db, "goatherd", "", {"lists.md": "# Lists\nYou can append a goat to a list here."})
    for typed in ("goatherd append", "append goatherd", "goat append list", "append list goatherds"):
        hits = await search.search_sections(db, SearchRequest(text=typed))
        assert hits[0].source == "goatherd", typed
    assert (await search.search_sections(db, SearchRequest(text="append")))[0].source == "sheep"
