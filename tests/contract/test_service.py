"""The service functions, on both databases."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st

from kept.crawl.lifecycle import LifecycleRules
from kept.errors import InvalidInput, NeedsDecision, NotFound
from kept.extract.sections import SectionNode, SectionRules, Unreadable, build_content, build_section_tree
from kept.jobs import queue
from kept.maintenance import scheduler
from kept.maintenance.gc import Retention, collect
from kept.maintenance.next_run import SchedulePolicy
from kept.model.document import Lifecycle, ParsedPage
from kept.model.generation import GenerationState, Tally
from kept.model.ids import new_id
from kept.model.job import CrawlMode, JobStatus
from kept.model.search_request import SearchRequest
from kept.model.source import SourceKind, SourceSettings
from kept.model.tokens import FullTextQuery, Term
from kept.model.url import file_url
from kept.service import documents, jobs, search, sources
from kept.service import generations as past
from kept.store import sources as store_sources
from kept.store.database import Database, open_database
from kept.store.sections import search_sections_fts
from tests import factories
from tests.contract.databases import count_rows, on_both_databases, run_sql
from tests.factories import ROOT, Page, Site, crawl, database_at, make_source, shown

FILLER = " It says enough about connections, pools and timeouts to be told from every other page of this site."


def site(pages: dict[str, str], *, root: str = ROOT, **others: Page) -> Site:
    """Return a site whose root links to every page: path -> text. Keyword arguments are other kinds of pages."""
    made = {root + path: Page(text=text + FILLER) for path, text in pages.items()}
    made |= {root + path: page for path, page in others.items()}
    return Site({root: Page(text="The root." + FILLER, links=tuple(made)), **made}, root=root)


@contextmanager
def says(error: type[Exception], *words: str) -> Iterator[None]:
    with pytest.raises(error) as raised:
        yield
    for word in words:
        assert word in str(raised.value)


# Sources -------------------------------------------------------------------------------------------------------


async def add(db: Database, *, root: str = ROOT, name: str = "docs", version: str = "") -> tuple[str, bool]:
    source, new = await sources.get_or_create_source(
        db, root=root, kind=SourceKind.WEB, name=name, version=version, settings=SourceSettings()
    )
    return source.id, new


@on_both_databases
async def test_adding_the_same_root_twice_is_the_same_source(db: Database) -> None:
    first, new = await add(db)
    assert new
    assert await add(db) == (first, False)
    assert await add(db, name="another-name") == (first, False)
    assert [view.source.label for view in await sources.list_sources(db)] == ["docs"]


@on_both_databases
async def test_the_same_root_under_another_version_is_another_source(db: Database) -> None:
    first, _ = await add(db, version="4")
    second, new = await add(db, version="5")
    assert new
    assert first != second
    assert [view.source.label for view in await sources.list_sources(db)] == ["docs@4", "docs@5"]


@on_both_databases
async def test_a_name_that_keeps_another_root_is_refused_and_nothing_changes(db: Database) -> None:
    await add(db)
    with says(InvalidInput, "'docs'", ROOT, "--name"):
        await add(db, root="https://other.test/")
    assert [view.source.root for view in await sources.list_sources(db)] == [ROOT]


@pytest.mark.parametrize("name", ["", " ", "a@b", "a\0b", "a\nb", "\ud800"])
@on_both_databases
async def test_a_name_that_nobody_could_type_is_refused(db: Database, name: str) -> None:
    with says(InvalidInput, "name"):
        await add(db, name=name)
    assert await sources.list_sources(db) == []


@on_both_databases
async def test_a_source_that_was_never_crawled_has_nothing_to_show(db: Database) -> None:
    await add(db)
    view = await sources.show_source(db, "docs")
    assert (view.documents, view.sections, view.generation, view.last_job, view.verified_at) == (0, 0, None, None, None)
    with says(NotFound, "docs", "first crawl"):
        await past.diff_generations(db, "docs", 1, 2)
    assert await search.search_sections(db, SearchRequest(text="anything")) == []


@on_both_databases
async def test_list_and_show_count_what_the_active_generation_shows(db: Database) -> None:
    source = await make_source(db)
    await make_source(db, "empty", root="https://empty.test/")
    await crawl(db, source, site({"a": "One.", "b": "Two.", "c": "Three."}))
    job = await crawl(db, source, site({"a": "One.", "b": "Two, changed."}, c=Page(gone=True)))

    view = await sources.show_source(db, "docs")
    assert (view.documents, view.sections) == (3, 3)
    assert view.generation is not None
    assert (view.generation.number, view.generation.state) == (2, GenerationState.ACTIVE)
    assert view.generation.tally == Tally(changed=1, unchanged=2, gone=1)
    assert view.last_job == job
    assert view.upcoming is None
    assert view.verified_at == view.generation.created_at
    assert [(one.source.label, one.documents) for one in await sources.list_sources(db)] == [("docs", 3), ("empty", 0)]


@on_both_databases
async def test_an_unknown_name_is_answered_with_the_one_that_was_perhaps_meant(db: Database) -> None:
    await add(db, name="django")
    await add(db, name="react", version="18", root="https://react.test/")
    with says(NotFound, "'djano'", "Did you mean 'django'?"):
        await sources.show_source(db, "djano")
    with says(NotFound, "Did you mean 'react@18'?"):
        await sources.show_source(db, "react@19")
    with says(NotFound, "'kept list'"):
        await sources.show_source(db, "something else entirely")


@on_both_databases
async def test_a_name_alone_is_the_source_without_a_version_or_the_only_or_newest_one(db: Database) -> None:
    await add(db, name="react", version="18", root="https://react.test/")
    assert (await sources.show_source(db, "react")).source.label == "react@18"
    for version in ("9", "19.1", "20rc1"):
        await add(db, name="react", version=version, root=f"https://react.test/{version}/")
    assert (await sources.show_source(db, "react")).source.label == "react@19.1", "by value, without pre-releases"
    with says(InvalidInput, "'react' could be react@9, react@18, react@19.1, react@20rc1: say which."):
        await sources.remove_source(db, "react")
    await add(db, name="react", root="https://react.test/next/")
    assert (await sources.show_source(db, "react")).source.label == "react"
    assert (await sources.remove_source(db, "react")).version == ""


@on_both_databases
async def test_a_job_is_found_by_the_end_of_its_id(db: Database) -> None:
    job = await crawl(db, await make_source(db), site({"a": "One."}))
    assert job.id.endswith(job.short_id)
    assert (await jobs.show_job(db, job.short_id)).job == (await jobs.show_job(db, job.id[:13])).job
    with says(NotFound, "There is no job ffffffff."):
        await jobs.show_job(db, "ffffffff")


@on_both_databases
async def test_whether_anything_obeys_schedules_is_known_once_a_scheduler_has_run(db: Database) -> None:
    assert not await sources.is_schedule_obeyed(db)
    await scheduler.enqueue_due_crawls(db, SchedulePolicy())
    assert await sources.is_schedule_obeyed(db)


@on_both_databases
async def test_every_verb_that_takes_a_name_says_so_when_there_is_none(db: Database) -> None:
    verbs = [
        lambda label: sources.show_source(db, label),
        lambda label: sources.remove_source(db, label),
        lambda label: jobs.request_crawl(db, label),
        lambda label: past.list_generations(db, label),
        lambda label: past.diff_generations(db, label, 1, 2),
        lambda label: past.roll_back(db, label, 1),
        lambda label: past.activate_held(db, label, LifecycleRules()),
        lambda label: past.discard_held(db, label),
        lambda label: search.search_sections(db, SearchRequest(text="word", labels=(label,))),
    ]
    for verb in verbs:
        for label in ("nobody", "", "@", "a\0b", "\ud800", "x" * 100_000):
            with says(NotFound, "There is no source"):
                await verb(label)


@on_both_databases
async def test_a_removed_source_is_hidden_at_once_and_its_name_is_free(db: Database) -> None:
    source = await make_source(db)
    await crawl(db, source, site({"a": "One."}))
    page = await documents.read_document(db, ROOT + "a")
    await sources.remove_source(db, "docs")

    assert await sources.list_sources(db) == []
    assert await search.search_sections(db, SearchRequest(text="connections")) == []
    for gone in (ROOT + "a", page.document):
        with says(NotFound):
            await documents.read_document(db, gone)
        with says(NotFound):
            await documents.read_history(db, gone)
    with says(NotFound):
        await sources.show_source(db, "docs")
    again, new = await add(db)
    assert new
    assert again != source.id


@on_both_databases
async def test_garbage_collection_takes_every_row_of_a_removed_source(db: Database) -> None:
    source = await make_source(db)
    await crawl(db, source, site({"a": "One.", "b": "Two."}))
    await crawl(db, source, site({"a": "One, changed.", "b": "Two."}))
    await queue.enqueue(db, source.id)
    await sources.remove_source(db, "docs")
    await collect(db, Retention())
    assert {table for table, rows in (await count_rows(db)).items() if rows} == set()
    async with db.snapshot() as snapshot:
        found = await search_sections_fts(snapshot, FullTextQuery(terms=[Term(("connections",))]), [], limit=9)
    assert not found.scores


@on_both_databases
async def test_garbage_collection_leaves_a_content_that_another_source_shares(db: Database) -> None:
    for name, root in (("docs", ROOT), ("copy", "https://copy.test/")):
        source = await make_source(db, name, root=root)
        await crawl(db, source, site({"a": "One.", name: f"Only in {name}."}, root=root))
    await sources.remove_source(db, "docs")
    await collect(db, Retention())
    assert sorted(hit.url for hit in await search.search_sections(db, SearchRequest(text="connections"))) == [
        "https://copy.test/",
        "https://copy.test/a",
        "https://copy.test/copy",
    ]
    rows = await count_rows(db)
    assert (rows["sources"], rows["documents"], rows["contents"], rows["sections"]) == (1, 3, 3, 3)


@on_both_databases
async def test_removing_a_source_cancels_its_crawl(db: Database) -> None:
    source = await make_source(db)
    job = await jobs.request_crawl(db, "docs")
    await sources.remove_source(db, "docs")
    assert (await jobs.get_job(db, job.id)).status is JobStatus.CANCELLED
    assert source.active_generation is None


# Crawls --------------------------------------------------------------------------------------------------------


@on_both_databases
async def test_asking_again_while_a_crawl_waits_joins_it_and_the_wider_mode_wins(db: Database) -> None:
    await make_source(db)
    first = await jobs.request_crawl(db, "docs", mode=CrawlMode.REFRESH, priority=5)
    again = await jobs.request_crawl(db, "docs", mode=CrawlMode.FULL, priority=1)
    assert again.id == first.id
    assert (again.mode, again.priority) == (CrawlMode.FULL, 5)
    assert (await jobs.get_job(db, first.id.upper())).id == first.id


@on_both_databases
async def test_a_job_that_is_not_there_is_no_such_thing(db: Database) -> None:
    for id in (new_id(), "", "7", "not an id", "a\0b", "\ud800"):
        with says(NotFound, "There is no job"):
            await jobs.get_job(db, id)


# Generations ---------------------------------------------------------------------------------------------------


@on_both_databases
async def test_diff_tells_added_removed_changed_and_moved(db: Database) -> None:
    source = await make_source(db)
    await crawl(db, source, site({"stays": "Stays.", "changes": "Before.", "goes": "Goes.", "moves": "Moves."}))
    moved = (await shown(db, source))[ROOT + "moves"][0]
    after = site(
        {"stays": "Stays.", "changes": "After.", "comes": "Comes.", "moved": "Moves."},
        moves=Page(redirect=ROOT + "moved"),
    )
    await crawl(db, source, after)

    forth = await past.diff_generations(db, "docs", 1, 2)
    assert (forth.added, forth.removed) == ([ROOT + "comes"], [ROOT + "goes"])
    assert forth.changed == [ROOT + "changes"]
    assert forth.moved == [{"from": ROOT + "moves", "to": ROOT + "moved", "document": moved}]
    back = await past.diff_generations(db, "docs", 2, 1)
    assert (back.added, back.removed) == (forth.removed, forth.added)
    assert back.moved == [{"from": ROOT + "moved", "to": ROOT + "moves", "document": moved}]
    same = await past.diff_generations(db, "docs", 2, 2)
    assert (same.added, same.removed, same.changed, same.moved) == ([], [], [], [])


@on_both_databases
async def test_a_generation_that_is_not_there_cannot_be_asked_for(db: Database) -> None:
    source = await make_source(db)
    await crawl(db, source, site({"a": "One."}))
    for number in (-1, 0, 2, 2**63, 10**30):
        with says(NotFound, "generation"):
            await past.diff_generations(db, "docs", 1, number)
        with says(NotFound, "generation"):
            await search.search_sections(db, SearchRequest(text="one", labels=("docs",), generation=number))
        with says(NotFound, "generation"):
            await documents.read_document(db, ROOT + "a", generation=number)
        with says(NotFound, "generation"):
            await past.roll_back(db, "docs", number)
    _, generations = await past.list_generations(db, "docs")
    assert [one.number for one in generations] == [1]


@on_both_databases
async def test_a_rollback_shows_exactly_what_was_shown_and_can_itself_be_undone(db: Database) -> None:
    source = await make_source(db)
    await crawl(db, source, site({"a": "One.", "b": "Two.", "c": "Three.", "d": "Four."}))
    before = await shown(db, source)
    await crawl(db, source, site({"a": "One, changed.", "b": "Two.", "e": "Five.", "f": "Four."}, c=Page(gone=True)))
    after = await shown(db, source)

    assert await past.roll_back(db, "docs", 1) == 3
    assert await shown(db, source) == before
    assert (await documents.read_document(db, ROOT + "a")).markdown.startswith("One. ")
    assert (await documents.read_document(db, ROOT + "c")).lifecycle is Lifecycle.ACTIVE
    with says(NotFound):
        await documents.read_document(db, ROOT + "e", generation=3)

    assert await past.roll_back(db, "docs", 2) == 4
    assert await shown(db, source) == after
    assert await shown(db, source, 3) == before
    found, generations = await past.list_generations(db, "docs")
    assert found.active_generation == 4
    assert [(one.number, one.state) for one in generations] == [
        (1, GenerationState.RETIRED),
        (2, GenerationState.RETIRED),
        (3, GenerationState.RETIRED),
        (4, GenerationState.ACTIVE),
    ]
    assert [one.documents for one in generations] == [len(before), len(after), len(before), len(after)]
    for a, b in ((1, 3), (2, 4)):
        same = await past.diff_generations(db, "docs", a, b)
        assert (same.added, same.removed, same.changed, same.moved) == ([], [], [], [])


@on_both_databases
async def test_a_crawl_after_a_rollback_finds_what_is_there_now(db: Database) -> None:
    source = await make_source(db)
    await crawl(db, source, site({"a": "One.", "b": "Two."}))
    now = site({"a": "One, changed.", "c": "Three."}, b=Page(gone=True))
    await crawl(db, source, now)
    expected = await shown(db, source)
    await past.roll_back(db, "docs", 1)
    await crawl(db, source, now)
    assert await shown(db, source) == expected


@on_both_databases
async def test_a_rollback_is_refused_while_a_crawl_is_live(db: Database) -> None:
    source = await make_source(db)
    await crawl(db, source, site({"a": "One."}))
    job = await jobs.request_crawl(db, "docs")
    with says(NeedsDecision, job.id):
        await past.roll_back(db, "docs", 1)
    await queue.cancel(db, job.id)
    assert await past.roll_back(db, "docs", 1) == 2


@on_both_databases
async def test_a_rollback_pauses_the_schedule_until_somebody_asks_for_a_crawl(db: Database) -> None:
    source = await make_source(db)
    await crawl(db, source, site({"a": "One."}))
    await past.roll_back(db, "docs", 1)

    async def paused() -> bool:
        async with db.snapshot() as snapshot:
            return (await run_sql(snapshot, "SELECT schedule_paused_at IS NOT NULL FROM sources"))[0][0]

    assert await paused()
    await jobs.request_crawl(db, "docs")
    assert not await paused()


TEN = {f"p{n}": f"Page {n}." for n in range(10)}
HALF = {f"p{n}": f"Page {n}." for n in range(4)} | {"q8": "Page 8.", "q9": "Page 9."}


async def hold(db: Database) -> None:
    """Create a source whose second crawl is held: it lost four pages of eleven and found two elsewhere."""
    source = await make_source(db)
    await crawl(db, source, site(TEN))
    lost = {f"p{n}": Page(gone=True) for n in range(4, 10)}
    job = await crawl(db, source, site(HALF, **lost), rules=LifecycleRules(brake_documents=3))
    assert job.held
    view = await sources.show_source(db, "docs")
    assert view.upcoming is not None
    assert (view.upcoming.state, view.upcoming.reason) == (GenerationState.HELD, "4 of 11 documents would be lost")


@on_both_databases
async def test_a_held_generation_is_seen_by_nobody_until_a_person_activates_it(db: Database) -> None:
    await hold(db)
    assert (await sources.show_source(db, "docs")).documents == 11
    assert (await documents.read_document(db, ROOT + "p4")).generation == 1
    with says(NotFound, "no generation 2 to show"):
        await search.search_sections(db, SearchRequest(text="words", labels=("docs",), generation=2))
    with says(NotFound, "no document"):
        await documents.read_document(db, ROOT + "q8")
    with says(NotFound, "does not show"):
        await documents.read_document(db, ROOT + "p4", generation=2)
    assert (await documents.read_document(db, ROOT + "q8", generation=2)).generation == 2, "who has to decide may look"
    assert (await documents.read_document(db, ROOT + "p8", generation=2)).url == ROOT + "q8", "it would move there"
    held = (await sources.show_source(db, "docs")).upcoming
    assert held is not None

    assert await past.activate_held(db, "docs", LifecycleRules()) == 2
    view = await sources.show_source(db, "docs")
    assert view.upcoming is None
    assert view.generation is not None
    assert view.documents == held.documents == 7
    assert view.generation.tally == held.tally == Tally(unchanged=5, moved=2, gone=4)
    assert {move["to"] for move in (await past.diff_generations(db, "docs", 1, 2)).moved} == {ROOT + "q8", ROOT + "q9"}
    with says(NotFound, "nothing to decide"):
        await past.activate_held(db, "docs", LifecycleRules())


@on_both_databases
async def test_a_held_generation_that_is_discarded_leaves_no_trace(db: Database) -> None:
    await hold(db)
    before = (await sources.show_source(db, "docs")).generation
    assert await past.discard_held(db, "docs") == 2
    view = await sources.show_source(db, "docs")
    assert (view.generation, view.upcoming, view.documents) == (before, None, 11)
    rows = await count_rows(db)
    assert (rows["documents"], rows["versions"]) == (11, 11)
    with says(NotFound, "nothing to decide"):
        await past.discard_held(db, "docs")
    with says(NotFound):
        await past.roll_back(db, "docs", 2)


@on_both_databases
async def test_a_rollback_gives_up_what_is_held(db: Database) -> None:
    await hold(db)
    assert await past.roll_back(db, "docs", 1) == 3
    with says(NotFound, "nothing to decide"):
        await past.activate_held(db, "docs", LifecycleRules())
    assert (await sources.show_source(db, "docs")).documents == 11


@on_both_databases
async def test_a_rollback_to_nowhere_gives_up_nothing(db: Database) -> None:
    await hold(db)
    for number in (2, 7):
        with says(NotFound, f"no generation {number}"):
            await past.roll_back(db, "docs", number)
    assert await past.activate_held(db, "docs", LifecycleRules()) == 2


# Reading -------------------------------------------------------------------------------------------------------


async def read_headings(body: bytes, content_type: str, url: str) -> ParsedPage | Unreadable:
    """Read a page in which '#' begins a heading; anchors are the words in lower case."""
    text = body.decode()
    nodes = []
    before, *chapters = text.split("\n#")
    for chapter in chapters:
        marks, _, rest = chapter.partition(" ")
        heading = rest.partition("\n")[0]
        level = len(marks) + 1
        nodes.append(SectionNode(heading=heading, level=level, anchor=heading.lower(), content=f"{'#' * level} {rest}"))
    return ParsedPage(content=build_content("Manual", text, build_section_tree(nodes, before), SectionRules()))


MANUAL = "Before.\n\n# Install\nBy hand.\n\n## Linux\nWith apt.\n\n## Windows\nWith luck.\n\n# Use\nCarefully."


@on_both_databases
async def test_a_document_is_read_by_url_by_id_by_path_and_by_section(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(factories, "read_scripted", read_headings)
    monkeypatch.chdir(tmp_path)
    url = file_url(tmp_path / "the manual.md")
    source = await make_source(db, root=file_url(tmp_path), kind=SourceKind.FOLDER)
    await crawl(db, source, Site({url: Page(text=MANUAL)}, lists_everything=True))

    page = await documents.read_document(db, url)
    assert (page.url, page.title, page.markdown, page.source, page.generation) == (url, "Manual", MANUAL, "docs", 1)
    for name in (
        page.document,
        page.document.upper(),
        str(tmp_path / "the manual.md"),
        "the manual.md",
        "./x/../the manual.md",
    ):
        assert await documents.read_document(db, name) == page
    assert (await documents.read_document(db, url, section="linux")).markdown == "## Linux\nWith apt."
    for whole in (
        await documents.read_document(db, url, section="install"),
        await documents.read_document(db, url + "#install"),
    ):
        assert whole.markdown == "# Install\nBy hand.\n\n## Linux\nWith apt.\n\n## Windows\nWith luck."
    with says(NotFound, "no section 'macos'", "install, linux, windows, use"):
        await documents.read_document(db, url, section="macos")


@on_both_databases
async def test_a_signature_is_read_with_what_it_shares_with_the_next(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(factories, "read_scripted", read_headings)
    source = await make_source(db)
    await crawl(db, source, Site({ROOT: Page(text="\n# `up()`\n\n# `rise()`\nHigher.\n\n# `down()`\nLower.")}))
    assert (await documents.read_document(db, ROOT, section="`up()`")).markdown == "# `up()`\n\n# `rise()`\nHigher."
    assert (await documents.read_document(db, ROOT, section="`rise()`")).markdown == "# `rise()`\nHigher."


UNKNOWN = [
    ROOT + "b", "https://elsewhere.test/", new_id(), "nowhere.md", "", "ftp://docs.test/a", "://", "#a", "a\0b",
    "\ud800", "https://docs.test/\0a", "https://docs.test/\ud800", "http://[", "x" * 100_000,
]  # fmt: skip


@on_both_databases
async def test_what_is_not_kept_cannot_be_read(db: Database) -> None:
    source = await make_source(db)
    await crawl(db, source, site({"a": "One."}))
    for name in UNKNOWN:
        with says(NotFound, "There is no document"):
            await documents.read_document(db, name)
        with says(NotFound, "There is no document"):
            await documents.read_history(db, name)


@on_both_databases
async def test_an_older_generation_is_read_by_its_number(db: Database) -> None:
    source = await make_source(db)
    await crawl(db, source, site({"a": "One.", "b": "Two."}))
    await crawl(db, source, site({"a": "One, changed."}, b=Page(gone=True)))
    assert (await documents.read_document(db, ROOT + "a")).markdown.startswith("One, changed.")
    assert (await documents.read_document(db, ROOT + "a", generation=1)).markdown.startswith("One. ")
    assert (await documents.read_document(db, ROOT + "b", generation=1)).markdown.startswith("Two. ")
    with says(NotFound, "Generation 2", "kept history"):
        await documents.read_document(db, ROOT + "b")


@on_both_databases
async def test_an_older_generation_is_read_by_the_url_a_page_had_then(db: Database) -> None:
    source = await make_source(db)
    await crawl(db, source, site({"a": "One."}))
    first = await documents.read_document(db, ROOT + "a")
    await crawl(db, source, site({"b": "One."}, a=Page(redirect=ROOT + "b")))
    await crawl(db, source, site({"b": "One.", "a": "Another page lives here now."}))
    assert (await documents.read_document(db, ROOT + "b")).document == first.document
    assert (await documents.read_document(db, ROOT + "a")).document != first.document
    then = await documents.read_document(db, ROOT + "a", generation=1)
    assert (then.document, then.markdown) == (first.document, first.markdown)
    assert (await documents.read_document(db, ROOT + "b", generation=1)).url == ROOT + "a"


@on_both_databases
async def test_history_tells_versions_and_moves_oldest_first(db: Database) -> None:
    source = await make_source(db)
    await crawl(db, source, site({"a": "One."}))
    await crawl(db, source, site({"a": "One, changed."}))
    await crawl(db, source, site({"b": "One, changed."}, a=Page(redirect=ROOT + "b")))
    await crawl(db, source, site({"b": "One, changed."}, a=Page(redirect=ROOT + "b")))
    history = await documents.read_history(db, ROOT + "b")
    assert [(one.born, one.died, one.url) for one in history.versions] == [
        (1, 2, ROOT + "a"),
        (2, 3, ROOT + "a"),
        (3, None, ROOT + "b"),
    ]
    assert history.lifecycle is Lifecycle.ACTIVE
    assert history.versions[1].content_hash == history.versions[2].content_hash != history.versions[0].content_hash
    assert all(one.activated_at for one in history.versions)
    assert (await documents.read_history(db, ROOT + "a")).document == (
        await documents.read_history(db, history.document)
    ).document


@on_both_databases
async def test_a_deleted_document_is_still_told_by_its_history(db: Database) -> None:
    source = await make_source(db)
    await crawl(db, source, site({"a": "One.", "b": "Two."}))
    await crawl(db, source, site({"a": "One."}, b=Page(gone=True)))
    history = await documents.read_history(db, ROOT + "b")
    assert history.lifecycle is Lifecycle.DELETED
    assert [(one.born, one.died) for one in history.versions] == [(1, 2)]


# Searching -----------------------------------------------------------------------------------------------------


@on_both_databases
async def test_a_search_looks_in_every_source_or_in_those_that_are_named(db: Database) -> None:
    for name in ("one", "two", "three"):
        source = await make_source(db, name, root=f"https://{name}.test/")
        await crawl(db, source, site({"a": f"The pelican of {name}."}, root=source.root))
    assert {hit.source for hit in await search.search_sections(db, SearchRequest(text="pelican"))} == {
        "one",
        "two",
        "three",
    }
    assert {
        hit.source for hit in await search.search_sections(db, SearchRequest(text="pelican", labels=("one", "three")))
    } == {
        "one",
        "three",
    }
    assert len(await search.search_sections(db, SearchRequest(text="pelican", limit=2))) == 2
    with says(InvalidInput, "--limit"):
        await search.search_sections(db, SearchRequest(text="pelican", limit=0))
    with says(NotFound, "Did you mean 'three'?"):
        await search.search_sections(db, SearchRequest(text="pelican", labels=("one", "thre")))


@on_both_databases
async def test_a_hit_says_what_it_stands_on(db: Database) -> None:
    source = await make_source(db)
    await crawl(db, source, site({"a": "The pelican."}))
    [hit] = await search.search_sections(db, SearchRequest(text="pelican"))
    page = await documents.read_document(db, hit.document)
    assert (hit.source, hit.version, hit.generation, hit.url) == ("docs", "", 1, ROOT + "a")
    assert (hit.title, hit.partial, hit.text) == ("a", False, page.markdown)
    assert (hit.fetched_at, hit.verified_at) == (page.fetched_at, page.verified_at)
    assert "**pelican**" in hit.snippet
    assert hit.score > 0


@on_both_databases
async def test_an_older_generation_is_searched_by_its_number(db: Database) -> None:
    source = await make_source(db)
    await make_source(db, "other", root="https://other.test/")
    await crawl(db, source, site({"a": "The pelican."}))
    await crawl(db, source, site({"a": "The heron."}))
    assert await search.search_sections(db, SearchRequest(text="pelican")) == []
    [hit] = await search.search_sections(db, SearchRequest(text="pelican", labels=("docs",), generation=1))
    assert (hit.generation, hit.url) == (1, ROOT + "a")
    assert await search.search_sections(db, SearchRequest(text="heron", labels=("docs",), generation=1)) == []
    for labels in ([], ["docs", "other"]):
        with says(InvalidInput, "--source"):
            await search.search_sections(db, SearchRequest(text="pelican", labels=tuple(labels), generation=1))


@on_both_databases
async def test_words_must_all_be_there_phrases_stay_together_and_unwanted_words_keep_a_page_out(db: Database) -> None:
    source = await make_source(db)
    pages = {"a": "The grey pelican eats fish.", "b": "The pelican is not grey.", "c": "A grey heron."}
    await crawl(db, source, site(pages))

    async def found(query: str) -> list[str]:
        return [hit.url.removeprefix(ROOT) for hit in await search.search_sections(db, SearchRequest(text=query))]

    assert set((await found("grey pelican"))[:2]) == {"a", "b"}
    assert await found('"grey pelican"') == ["a"]
    assert sorted(await found("grey -pelican")) == ["c"]
    assert sorted(await found("grey -fish -heron")) == ["b"]


NASTY = [
    "", " ", "\0", "a\0b", "-", "--", "-a", "- a", '"', '""', '"a', 'a"b"c', "'", "''", "it's", "\\", "a\\'b", "*",
    "a*", "^a", "a:b", "title:a", "{title}:a", "NEAR(a b)", "a NEAR b", "a AND", "OR", "NOT a", "a NOT", "( a", "a)",
    "!a", "a & | ! b", "a <-> b", "a:*", "a:A", "<1>", "%", "%s", "%(query)s", "%%", ":query", "$1", "?", ";",
    "a; DROP TABLE sources; --", "🦤", "🦤 🦩", "👩\u200d👩\u200d👧", "日本語", "あ" * 1000, "é" * 1000, "e\u0301",
    "\ud800", "\u202e", "\ufeff", "²", "Ⅷ", "\U00010780", "𝕒", "ß", "İ", "the", "a " * 500, "-a " * 500 + "b",
    "x" * 100_000, "a b " * 25_000, '"' * 100_000, "( " * 50_000, "\n", "\r\n", "\x1b[0m",
]  # fmt: skip


def test_no_query_raises_anything_but_wrong_call(database_url: str) -> None:
    with asyncio.Runner() as runner:

        async def open_with_pages() -> Database:
            db = await open_database(database_url)
            await crawl(db, await make_source(db), site({"a": "a b it's 🦤 the", "b": "日本語 " + "あ" * 1000}))
            return db

        async def find(text: str) -> None:
            with suppress(InvalidInput):
                await search.search_sections(db, SearchRequest(text=text))

        db = runner.run(open_with_pages())
        try:
            for text in NASTY:
                runner.run(find(text))
            anything = st.text() | st.text("\"'\\-()*:&|!<> aéあ🦤\0", max_size=30)
            hypothesis.settings(max_examples=150)(hypothesis.given(anything)(lambda text: runner.run(find(text))))()
        finally:
            runner.run(db.close())


def test_a_reader_of_another_process_sees_what_was_added(database_url: str) -> None:
    async def scenario() -> None:
        async with database_at(database_url) as here, database_at(database_url) as there:
            source = await make_source(here)
            await crawl(here, source, site({"a": "The pelican."}))
            assert [hit.url for hit in await search.search_sections(there, SearchRequest(text="pelican"))] == [
                ROOT + "a"
            ]

    asyncio.run(scenario())


@on_both_databases
async def test_garbage_collection_keeps_what_a_retained_generation_shows(db: Database) -> None:
    source = await make_source(db)
    for word in ("pelican", "heron", "stork", "crane"):
        await crawl(db, source, site({"a": f"The {word}."}))
    async with db.transaction() as tx:  # time passes
        await run_sql(tx, "UPDATE generations SET activated_at = '2020-01-01T00:00:00.000000+00:00'")
    await collect(db, Retention(generations=2, younger_than=timedelta(days=1)))
    _, generations = await past.list_generations(db, "docs")
    assert [one.number for one in generations] == [3, 4]
    assert [
        hit.url for hit in await search.search_sections(db, SearchRequest(text="stork", labels=("docs",), generation=3))
    ] == [ROOT + "a"]
    with says(NotFound):
        await search.search_sections(db, SearchRequest(text="heron", labels=("docs",), generation=2))
    assert (await count_rows(db))["contents"] == 3


@on_both_databases
async def test_a_renamed_source_keeps_its_ids_its_history_its_settings_and_its_schedule(db: Database) -> None:
    at, page = datetime(2026, 12, 1, tzinfo=UTC), f"{ROOT}page"
    settings = SourceSettings(schedule="1d", tags=("ours",))
    source = await make_source(db, "old", version="5", settings=settings)
    await make_source(db, "other", version="5", root="https://other.test/")
    for words in ("one", "two"):
        await crawl(db, source, Site({ROOT: Page("root", (page,)), page: Page(words)}))
    async with db.transaction() as tx:
        await store_sources.set_next_run(tx, source.id, at)
    before = await shown(db, source)
    token = await documents.content_token(db)
    for taken in ("other", "other@5", "no such/name", ""):
        with pytest.raises(InvalidInput):
            await sources.rename_source(db, "old@5", taken)
    assert (await sources.rename_source(db, "old@5", "new")).label == "new@5"
    assert (await sources.rename_source(db, "new@5", "django@5.2")).label == "django@5.2"
    with pytest.raises(NotFound):
        await sources.show_source(db, "old@5")
    view = await sources.show_source(db, "django@5.2")
    assert (view.source.id, view.source.settings, view.source.next_run_at) == (source.id, settings, at)
    assert await shown(db, view.source) == before
    assert await documents.content_token(db) != token, "answers that were cached name the old one"
    history = await documents.read_history(db, before[page][0])
    assert [version.born for version in history.versions] == [1, 2]
    assert {job.source for job in await jobs.list_jobs(db)} == {"django@5.2"}
    again = await crawl(db, view.source, Site({ROOT: Page("root", (page,)), page: Page("three")}))
    assert again.generation == 3
