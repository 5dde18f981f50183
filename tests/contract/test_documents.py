"""Timelines, lists, outlines and the progress of a crawl are the same on both databases."""

import pytest

from kept.errors import InvalidInput, NotFound
from kept.service import documents, jobs, ledger
from kept.service import generations as past
from kept.store.database import Database
from tests.contract.databases import count_steps, insert_documents, on_both_databases, run_sql
from tests.factories import ROOT, Page, Site, crawl, make_source

WORDS = "with enough words behind it that nobody takes it for a tiny page at all"
NAMES = [f"{ROOT}p{number}" for number in range(6)]


def site(**changed: Page) -> dict[str, Page]:
    pages = {ROOT: Page(f"root {WORDS}", (*NAMES, f"{ROOT}away", f"{ROOT}extra"))}
    pages |= {name: Page(f"{name} {WORDS}") for name in NAMES}
    return pages | {f"{ROOT}{name}": page for name, page in changed.items()}


@on_both_databases
async def test_a_timeline_says_what_each_generation_did_a_rollback_too(db: Database) -> None:
    source = await make_source(db)
    await crawl(db, source, Site(site()))
    await crawl(db, source, Site(site(p0=Page(f"other {WORDS}"), p1=Page(gone=True), extra=Page(f"extra {WORDS}"))))
    moved = {"p1": Page(gone=True), "p2": Page(gone=True), "away": site()[NAMES[2]], "extra": Page(f"extra {WORDS}")}
    await crawl(db, source, Site(site(p0=Page(f"other {WORDS}"), **moved)))
    await past.roll_back(db, "docs", 1)
    _, steps = await past.timeline(db, "docs")
    did = {step.generation.number: (step.added, step.changed, step.moved, step.lost) for step in steps}
    assert did == {4: (1, 1, 1, 1), 3: (0, 0, 1, 0), 2: (1, 1, 0, 1), 1: (7, 0, 0, 0)}
    assert [step.generation.number for step in steps] == [4, 3, 2, 1], "the newest first"

    held = await crawl(db, source, Site(site() | dict.fromkeys(NAMES, Page(gone=True))))
    assert held.held
    _, (latest, before) = await past.timeline(db, "docs", limit=2)
    assert (latest.has_changes, latest.generation.state) == (False, "held"), "it has done nothing yet"
    assert before.generation.number == 4


@on_both_databases
async def test_documents_are_listed_by_url_in_pages_and_found_by_url_in_a_generation(db: Database) -> None:
    source = await make_source(db)
    empty = await make_source(db, "empty", root=f"{ROOT}empty")
    with pytest.raises(NotFound, match="its first crawl is not finished"):
        await documents.list_documents(db, empty.label)
    await crawl(db, source, Site(site()))
    await crawl(db, source, Site(site(p1=Page(gone=True))))
    page = await documents.list_documents(db, "docs", limit=4)
    first = page.documents
    rest = (await documents.list_documents(db, "docs", after=first[-1].url, limit=4)).documents
    assert (await documents.list_documents(db, "docs", cursor=page.next, limit=4)).documents == rest
    assert [one.url for one in first + rest] == [ROOT, NAMES[0], *NAMES[2:]]
    assert first[1].title == "p0", "a page without a title is called after its address"
    before = (await documents.list_documents(db, "docs", generation=1)).documents
    assert [one.url for one in before] == [ROOT, *NAMES]

    urls = [NAMES[1], NAMES[2], f"{ROOT}never"]
    then, now = (
        await documents.find_documents_at(db, "docs", 1, urls),
        await documents.find_documents_at(db, "docs", 2, urls),
    )
    assert (set(then), set(now)) == (set(urls[:2]), {NAMES[2]})
    assert now[NAMES[2]] == then[NAMES[2]] == next(one.document for one in before if one.url == NAMES[2])
    assert (await documents.get_outline(db, then[NAMES[1]], 1)).headings == [], "it has no headings"
    with pytest.raises(NotFound):
        await documents.get_outline(db, then[NAMES[1]], 2)


@on_both_databases
async def test_the_ledger_of_a_crawl_is_read_in_pages_and_by_outcome(db: Database) -> None:
    source = await make_source(db)
    job = await crawl(db, source, Site(site(p3=Page(error="500"), p4=Page(refused="too large"))))
    found = await ledger.list_entries(db, job.id, limit=3)
    found += await ledger.list_entries(db, job.id, after=found[-1].url)
    assert [one.url for one in found] == sorted({ROOT, f"{ROOT}away", f"{ROOT}extra", *NAMES})
    assert [one.url for one in await ledger.list_entries(db, job.id, outcome="failed")] == [NAMES[3]]
    [skipped] = await ledger.list_entries(db, job.id, outcome="skipped")
    assert (skipped.url, skipped.reason, skipped.source) == (NAMES[4], "too large", "docs")
    assert await ledger.list_entries(db, job.id, outcome="open") == []
    with pytest.raises(InvalidInput, match="There is no outcome 'lost'"):
        await ledger.list_entries(db, job.id, outcome="lost")

    course = await jobs.progress_over_time(db, job)
    assert course[-1][1] == len(found), "in the end all of them are done"
    assert course == sorted(course)
    assert course[0][0] >= 0


@on_both_databases
async def test_a_page_of_a_long_list_of_documents_costs_what_a_page_of_a_short_one_costs(db: Database) -> None:
    costs = []
    for name, number in (("short", 300), ("long", 6000)):
        source = await make_source(db, name, root=f"https://{name}.test/")
        await insert_documents(db, source, number)
        async with db.transaction() as tx:
            await run_sql(tx, "ANALYZE")
        async with db.snapshot() as snapshot:
            listed = {"source": source.id, "generation": 1, "after": f"{source.root}000100", "limit": 101}
            costs.append(await count_steps(snapshot, "documents_of_generation", **listed))
        assert len((await documents.list_documents(db, name, limit=number + 2)).documents) == number + 1
    short, long = costs
    assert long <= 1.5 * short, "the rest of the list is not sorted for every page"
