"""The change feed, and one document in two generations."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from kept.errors import InvalidInput, NotFound
from kept.maintenance.gc import Retention, collect
from kept.runtime.runtime import open_runtime
from kept.service import changes as feed
from kept.service import document_diff, documents
from kept.service import generations as past
from kept.service.changes import ChangeFeedPage, ChangeKind
from kept.service.document_diff import diff_hunks
from kept.settings import load
from kept.store.database import Database
from tests.contract.databases import count_steps, insert_documents, on_both_databases, run_sql
from tests.factories import ROOT, Page, Site, crawl, database_at, make_source

WORDS = "with enough words behind it that nobody takes it for a tiny page at all"


def site(pages: Mapping[str, str], **redirects: str) -> Site:
    """Return a site whose root links to these pages."""
    made = {ROOT: Page(f"root {WORDS}", tuple(ROOT + name for name in (*pages, *redirects)))}
    made |= {ROOT + name: Page(redirect=ROOT + to) for name, to in redirects.items()}
    return Site(made | {ROOT + name: Page(f"{text} {WORDS}") for name, text in pages.items()})


def summarize(found: ChangeFeedPage) -> list[tuple[str, int, ChangeKind, str, str | None, bool]]:
    return [
        (
            one.source,
            one.generation,
            one.change,
            urlsplit(one.url).path[1:],
            one.from_url and urlsplit(one.from_url).path[1:],
            one.edited,
        )
        for one in found.changes
    ]


@on_both_databases
async def test_the_feed_tells_what_became_of_each_document_the_latest_first_and_pages(db: Database) -> None:
    source = await make_source(db)
    await crawl(db, source, site({"a": "a", "b": "b", "c": "c", "d": "d", "e": "e"}))
    await crawl(db, source, site({"a": "a", "b": "b", "c": "c", "d": "d", "e": "e"}))
    await crawl(db, source, site({"a": "edited", "c": "c", "d": "d", "f": "e"}, e="f"))
    await crawl(db, source, site({"a": "edited", "b": "b again", "c": "c", "g": "g", "h": "d"}, f="g"))
    await crawl(db, source, site({"a": "edited", "b": "b again", "c": "c", "g": "g", "h": "d"}), signature="2")
    await past.roll_back(db, "docs", 3)
    expected = [
        ("docs", 6, "removed", "b", None, False),
        ("docs", 6, "moved", "d", "h", False),
        ("docs", 6, "moved", "f", "g", True),
        ("docs", 4, "restored", "b", None, True),
        ("docs", 4, "moved", "g", "f", True),
        ("docs", 4, "moved", "h", "d", False),
        ("docs", 3, "changed", "a", None, True),
        ("docs", 3, "removed", "b", None, False),
        ("docs", 3, "moved", "f", "e", False),
        *(("docs", 1, "added", name, None, False) for name in ("", "a", "b", "c", "d", "e")),
    ]
    whole = await feed.list_changes(db)
    assert summarize(whole) == expected
    assert whole.next is None
    assert await feed.list_changes(db, "docs") == whole

    by_document = {one.url: one.document for one in whole.changes if one.generation == 1}
    for one in whole.changes:
        if one.from_url in by_document:
            assert one.document == by_document[one.from_url], "a move is no reason for another id"

    other = await make_source(db, "other", root="https://other.test/")
    elsewhere = {"https://other.test/": Page(f"root {WORDS}"), "https://other.test/x": Page(f"x {WORDS}")}
    await crawl(db, other, Site(elsewhere, root="https://other.test/"))
    every = await feed.list_changes(db)
    assert summarize(every) == [("other", 1, "added", "", None, False), *expected]
    for label, all_of_it in ((None, every), ("docs", whole)):
        for size in (1, 2, 5):
            pages, cursor = [], None
            while True:
                page = await feed.list_changes(db, label, limit=size, cursor=cursor)
                pages += page.changes
                if page.next is None:
                    break
                assert len(page.changes) == size
                cursor = page.next
            assert pages == all_of_it.changes
    third = next(one.at for one in whole.changes if one.generation == 3)
    assert {one.generation for one in (await feed.list_changes(db, "docs", since=third)).changes} == {4, 6}
    assert (await feed.list_changes(db, since=datetime.now(UTC) + timedelta(hours=1))).changes == []


@on_both_databases
async def test_another_reader_is_no_news_and_what_is_forgotten_is_not_told_wrongly(db: Database) -> None:
    source = await make_source(db)
    await crawl(db, source, site({"a": "a", "b": "b"}))
    await crawl(db, source, site({"a": "a two", "b": "b"}))
    async with db.transaction() as tx:  # as another reader would have read the same bytes
        await run_sql(tx, "UPDATE versions SET content_id = (SELECT min(content_id) FROM versions) WHERE died IS NULL")
    await crawl(db, source, site({"a": "a two", "b": "b"}), signature="2")
    async with db.snapshot() as snapshot:
        assert (3,) in await run_sql(snapshot, "SELECT born FROM versions WHERE read_again"), "they were read again"
        notices = await run_sql(snapshot, "SELECT payload FROM notifications")
    assert {one.generation for one in (await feed.list_changes(db)).changes} == {1, 2}
    assert len(notices) == 2, "there is no notification either"
    assert [(await past.diff_generations(db, "docs", *pair)).changed for pair in ((2, 3), (3, 2))] == [[], []]
    assert (await past.diff_generations(db, "docs", 1, 3)).changed == [f"{ROOT}a"], "it was changed in between"
    _, (latest, *_) = await past.timeline(db, "docs")
    assert (latest.generation.number, latest.has_changes) == (3, False)

    await crawl(db, source, site({"a": "a two", "b": "b", "c": "c"}), signature="2")
    await collect(db, Retention(generations=2, younger_than=timedelta()))
    assert summarize(await feed.list_changes(db)) == [("docs", 4, "added", "c", None, False)]


def test_as_much_of_the_past_is_kept_as_the_settings_say(database_url: str, tmp_path: Path) -> None:
    async def left(**history: str) -> list[int]:
        environment = {f"KEPT_HISTORY__{name.upper()}": value for name, value in history.items()}
        async with open_runtime(load(environment=environment, folder=tmp_path, database=database_url)) as runtime:
            await collect(runtime.db, runtime.services.retention)
            return [one.number for one in (await past.list_generations(runtime.db, "docs"))[1]]

    async def scenario() -> None:
        async with database_at(database_url) as db:
            source = await make_source(db)
            for number in range(5):
                await crawl(db, source, site({"a": f"edition {number}"}))
        assert await left() == [1, 2, 3, 4, 5]
        assert await left(generations="2", days="1") == [1, 2, 3, 4, 5], "whichever keeps more"
        assert await left(generations="2", days="0") == [4, 5]
        async with database_at(database_url) as db:
            assert "edition 3" in (await documents.read_document(db, ROOT + "a", generation=4)).markdown
            assert len((await documents.read_history(db, ROOT + "a")).versions) == 2

    asyncio.run(scenario())


@on_both_databases
async def test_a_document_is_compared_by_url_or_id_across_moves_and_in_what_is_held(db: Database) -> None:
    source = await make_source(db)
    names = {f"p{number}": f"p{number}" for number in range(10)}
    await crawl(db, source, site(names | {"old": "one"}))
    await crawl(db, source, site(names | {"new": "two"}, old="new"))
    found = await document_diff.diff_document(db, ROOT + "new", 1, 2, label="docs")
    assert (found.change, found.before and found.before.url, found.after and found.after.url) == (
        "moved",
        ROOT + "old",
        ROOT + "new",
    )
    assert [hunk.lines for hunk in found.hunks] == [[f"-one {WORDS}", f"+two {WORDS}"]]
    assert await document_diff.diff_document(db, found.document, 1, 2) == found
    back = await document_diff.diff_document(db, ROOT + "old", 2, 1)
    assert (back.change, back.hunks[0].lines) == ("moved", [f"-two {WORDS}", f"+one {WORDS}"])

    held = await crawl(db, source, site({"p0": "edited", "new": "two", "fresh": "fresh"}))
    assert held.held
    assert (await document_diff.diff_document(db, ROOT + "p0", 2, 3)).hunks[0].lines == [
        f"-p0 {WORDS}",
        f"+edited {WORDS}",
    ]
    assert (await document_diff.diff_document(db, ROOT + "p1", 2, 3)).change == "removed"
    assert (await document_diff.diff_document(db, ROOT + "new", 2, 3)).change is None
    assert (await document_diff.diff_document(db, ROOT + "fresh", 2, 3)).change == "added"
    assert (await documents.read_document(db, ROOT + "p0", generation=3)).markdown == f"edited {WORDS}"
    with pytest.raises(NotFound):
        await document_diff.diff_document(db, ROOT + "p0", 1, 9)
    with pytest.raises(NotFound):
        await document_diff.diff_document(db, ROOT + "nowhere", 1, 2)


@on_both_databases
async def test_nonsense_is_no_cursor(db: Database) -> None:
    for cursor in ("nonsense", "W10=", "é", "WzEsMiwzLDQsNV0="):
        with pytest.raises(InvalidInput):
            await feed.list_changes(db, cursor=cursor)
    with pytest.raises(InvalidInput):
        await feed.list_changes(db, limit=0)


def test_hunks_are_those_of_a_unified_diff() -> None:
    old = [f"line {number}" for number in range(1, 1001)]
    new = [*old[:500], "another", *old[501:990], *old[991:]]
    first, second = diff_hunks(old, new)
    assert first.header == "@@ -498,7 +498,7 @@"
    assert first.lines[2:6] == [" line 500", "-line 501", "+another", " line 502"]
    assert (second.header, second.lines[3]) == ("@@ -988,7 +988,6 @@", "-line 991")
    assert [hunk.header for hunk in diff_hunks([], ["one"])] == ["@@ -0,0 +1,1 @@"]
    assert list(diff_hunks(old, old)) == []
    many = [f"old {number % 100}" for number in range(30_000)]
    (whole,) = diff_hunks(["head", *many, "tail"], ["head", "new", "tail"])
    assert (whole.header, len(whole.lines)) == ("@@ -2,30000 +2,1 @@", 30_001), "so much is not compared line by line"


@on_both_databases
async def test_what_a_generation_changed_is_counted_in_time_that_grows_with_the_changes(db: Database) -> None:
    number = 2000
    columns = "source_id, document_id, url, content_id, content_type, raw_hash, signature, depth, links, fetched_at"
    source = await make_source(db)
    await insert_documents(db, source, number)
    async with db.transaction() as tx:
        await run_sql(tx, "ANALYZE")  # its statistics know of one generation only
    async with db.transaction() as tx:
        await run_sql(tx, "UPDATE versions SET died = 2")
        await run_sql(
            tx,
            f"INSERT INTO versions (born, {columns}) SELECT 2, {columns} FROM versions",
        )
        this = {"source": source.id}
        work = {
            "count_changes": await count_steps(tx, "count_changes", **this, number=2),
            "changes_by_generation": await count_steps(tx, "changes_by_generation", **this, since=1),
            "removal_reasons": await count_steps(tx, "removal_reasons", **this, generation=2, limit=10),
            "set_rollback_reason": await count_steps(tx, "set_rollback_reason", **this, number=2, reason="x"),
        }
    assert max(work.values()) < 20 * number, work
