"""A quick refresh visits pages that probably changed, and deletes nothing that it did not visit."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from kept.maintenance.gc import Retention, collect
from kept.model.document import Lifecycle
from kept.model.generation import Generation, Tally
from kept.model.job import CrawlMode
from kept.model.source import Scope, Source
from kept.service import ledger
from kept.store import documents, frontier, generations, jobs, sources
from kept.store.database import Database
from tests.contract.databases import on_both_databases
from tests.factories import ROOT, Page, Site, crawl, make_source, shown

NAMES = [f"{ROOT}{number}" for number in range(6)]
LATER = timedelta(days=60)


def site(**changed: str) -> dict[str, Page]:
    """Return a root that links to six pages, some of them with changed words."""
    pages = {name: Page(f"page {name}", tag=f"tag {name}") for name in NAMES}
    for number, words in changed.items():
        name = f"{ROOT}{number.removeprefix('p')}"
        pages[name] = Page(words, tag=f"tag {words}")
    return {ROOT: Page("the root", tuple(NAMES), tag="tag root")} | pages


async def kept(db: Database, pages: dict[str, Page] | None = None) -> Source:
    source = await make_source(db)
    await crawl(db, source, Site(pages or site()))
    return source


async def quickly(db: Database, source: Source, site: Site, now: datetime | None = None) -> Generation:
    job = await crawl(db, source, site, mode=CrawlMode.QUICK, now=now)
    assert job.status == "completed"
    async with db.snapshot() as snapshot:
        generation = await generations.get(snapshot, source.id, job.generation or 0)
    assert generation is not None
    return generation


@on_both_databases
async def test_it_visits_the_root_and_nothing_else_that_is_known(db: Database) -> None:
    source = await kept(db)
    before = await shown(db, source)
    looked = Site(site(p1="changed unnoticed"))
    generation = await quickly(db, source, looked)
    assert looked.visits == [ROOT]
    assert (generation.mode, generation.state, generation.tally) == ("quick", "active", Tally(unchanged=1))
    assert generation.documents == 7
    assert await shown(db, source) == before


@on_both_databases
async def test_it_follows_new_links_as_far_as_they_lead_to_what_is_new(db: Database) -> None:
    source = await kept(db)
    pages = site() | {ROOT: Page("the root", (*NAMES, f"{ROOT}new"))}
    pages |= {f"{ROOT}new": Page("new", (f"{ROOT}newer", NAMES[0])), f"{ROOT}newer": Page("newer", (ROOT,))}
    looked = Site(pages)
    generation = await quickly(db, source, looked)
    assert sorted(looked.visits) == [ROOT, f"{ROOT}new", f"{ROOT}newer"]
    assert (generation.documents, generation.tally.new) == (9, 2)
    assert {f"{ROOT}new", f"{ROOT}newer"} <= (await shown(db, source)).keys()


@on_both_databases
async def test_it_visits_what_the_sitemap_says_was_modified_since(db: Database) -> None:
    source = await kept(db)
    now = datetime.now(UTC)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    looked = Site(
        site(p0="said to be modified", p3="changed, but said to be old"),
        sitemap={
            NAMES[0]: now + timedelta(hours=1),
            NAMES[1]: midnight,  # a day: at some hour of it
            NAMES[2]: None,
            NAMES[3]: now - timedelta(days=3),
        },
    )
    generation = await quickly(db, source, looked)
    assert sorted(looked.visits) == [ROOT, NAMES[0], NAMES[1]]
    assert generation.tally == Tally(changed=1, unchanged=2)


@on_both_databases
async def test_a_sitemap_that_calls_everything_modified_is_not_believed_until_it_is_right_again(db: Database) -> None:
    pages = {f"{ROOT}{number}": Page(f"page {number}", tag=str(number)) for number in range(12)}
    leading = {ROOT: Page("the root", tuple(pages), tag="root")}
    source = await kept(db, pages | leading)
    crying = dict.fromkeys(pages, datetime.now(UTC) + timedelta(hours=1))
    once = Site(pages | leading, sitemap=crying)
    await quickly(db, source, once)
    assert len(once.visits) == 13, "it was not known yet"
    twice = Site(pages | leading, sitemap=crying)
    await quickly(db, source, twice)
    assert twice.visits == [ROOT]

    edited = pages | leading | {f"{ROOT}{number}": Page(f"edited {number}", tag="new") for number in range(7)}
    await crawl(db, source, Site(edited, sitemap=crying))
    again = Site(edited, sitemap={f"{ROOT}3": datetime.now(UTC) + timedelta(hours=2)})
    await quickly(db, source, again)
    assert sorted(again.visits) == [ROOT, f"{ROOT}3"], "more than half of its dates were right"


@on_both_databases
async def test_it_visits_pages_whose_history_says_that_they_are_due(db: Database) -> None:
    source = await kept(db)
    for number in range(3):
        await crawl(db, source, Site(site(p2=f"restless {number}")))
    soon = Site(site(p2="restless 2"))
    await quickly(db, source, soon)
    assert soon.visits == [ROOT]
    late = Site(site(p2="restless 3"))
    generation = await quickly(db, source, late, datetime.now(UTC) + LATER)
    assert sorted(late.visits) == [ROOT, NAMES[2]]
    assert generation.tally == Tally(changed=1, unchanged=1)


@on_both_databases
async def test_a_page_that_only_another_reader_read_otherwise_is_not_due(db: Database) -> None:
    source = await kept(db)
    pages = {url: Page(page.text, page.links) for url, page in site().items()}
    await crawl(db, source, Site(pages), signature="2", mode=CrawlMode.FULL)
    looked = Site(pages)
    await crawl(db, source, looked, mode=CrawlMode.QUICK, signature="2", now=datetime.now(UTC) + LATER)
    assert looked.visits == [ROOT]


@on_both_databases
async def test_it_tries_what_failed_again(db: Database) -> None:
    broken = site() | {NAMES[4]: Page(error="500 Internal Server Error")}
    source = await kept(db, broken)
    looked = Site(site())
    generation = await quickly(db, source, looked)
    assert sorted(looked.visits) == [ROOT, NAMES[4]]
    assert (generation.documents, generation.tally.new) == (7, 1)

    await quickly(db, source, Site(site() | {ROOT: Page(error="503 Service Unavailable")}))
    async with db.snapshot() as snapshot:
        [root] = await documents.list_exceptional(snapshot, source.id, None)
    assert (root.url, root.lifecycle) == (ROOT, Lifecycle.ERROR)
    await quickly(db, source, Site(site()))
    async with db.snapshot() as snapshot:
        assert await documents.list_exceptional(snapshot, source.id, None) == []


@on_both_databases
async def test_it_ends_no_document_and_calls_nothing_missing(db: Database) -> None:
    source = await kept(db)
    alone = {ROOT: Page("the root leads nowhere")}
    generation = await quickly(db, source, Site(alone))
    assert generation.documents == 7

    refused = Site(site() | {NAMES[0]: Page(refused="robots.txt forbids it")})
    refused.sitemap = {NAMES[0]: datetime.now(UTC) + timedelta(hours=1)}
    generation = await quickly(db, source, refused)
    assert NAMES[0] in refused.visits
    assert (generation.documents, generation.tally.skipped) == (7, 1)
    async with db.snapshot() as snapshot:
        assert await documents.list_exceptional(snapshot, source.id, None) == []


@on_both_databases
async def test_what_it_saw_gone_is_gone(db: Database) -> None:
    source = await kept(db)
    pages = site()
    del pages[NAMES[5]]
    generation = await quickly(db, source, Site(pages, sitemap={NAMES[5]: datetime.now(UTC) + timedelta(hours=1)}))
    assert (generation.documents, generation.tally.gone) == (6, 1)


@on_both_databases
async def test_a_root_that_redirects_leads_it_to_the_page_behind(db: Database) -> None:
    pages = site() | {ROOT: Page(redirect=f"{ROOT}home"), f"{ROOT}home": Page("home", tuple(NAMES))}
    source = await kept(db, pages)
    looked = Site(pages | {f"{ROOT}home": Page("home, changed", tuple(NAMES))})
    generation = await quickly(db, source, looked)
    assert looked.visits == [ROOT, f"{ROOT}home"]
    assert generation.tally == Tally(changed=1, skipped=1)


@on_both_databases
async def test_the_ledger_stays_that_of_the_last_full_crawl(db: Database) -> None:
    source = await kept(db, site() | {NAMES[3]: Page(refused="too large")})
    async with db.snapshot() as snapshot:
        before = await jobs.last_full_crawl(snapshot, source.id)
        verified = await generations.last_verified(snapshot, source.id)
    found = site() | {ROOT: Page("the root", (*NAMES, f"{ROOT}new")), f"{ROOT}new": Page("new")}
    await quickly(db, source, Site(found | {NAMES[3]: Page(refused="too large")}))
    await quickly(db, source, Site(found | {NAMES[3]: Page(refused="too large")}))
    await collect(db, Retention())
    async with db.snapshot() as snapshot:
        assert await jobs.last_full_crawl(snapshot, source.id) == before
        assert await generations.last_verified(snapshot, source.id) == verified, "it did not visit everything"
        assert before is not None
        assert len(await frontier.urls(snapshot, before.id)) == 7
    [account] = await ledger.explain_url(db, f"{ROOT}new", lambda source, url: None)
    assert account.outcome == "new", "what a quick crawl found is explained too"
    summary = await ledger.summarize_not_kept(db, "docs", examples=5)
    assert [(one.reason, one.examples) for one in summary.reasons] == [("too large", [NAMES[3]])]


@on_both_databases
async def test_a_first_crawl_and_one_of_an_origin_that_lists_everything_are_whole(db: Database) -> None:
    source = await make_source(db)
    first = await quickly(db, source, Site(site()))
    assert (first.mode, first.documents) == ("refresh", 7)
    folder = await make_source(db, "folder", root="https://folder.test/")
    pages = {f"https://folder.test/{name}": Page(name) for name in "abcdef"}
    await crawl(db, folder, Site(pages, lists_everything=True))
    del pages["https://folder.test/a"]
    again = await quickly(db, folder, Site(pages, lists_everything=True))
    assert (again.mode, again.documents, again.tally.gone) == ("refresh", 5, 1)


@on_both_databases
async def test_settings_that_changed_are_still_to_come_after_a_quick_crawl(db: Database) -> None:
    source = await kept(db)
    without = replace(source.settings, scope=Scope(exclude=("1",)))
    async with db.transaction() as tx:
        await sources.set_settings(tx, source.id, without)
    generation = await quickly(db, source, Site(site(), excluded=frozenset({NAMES[1]})))
    assert (generation.settings, generation.documents) == (source.settings, 7)
    await crawl(db, source, Site(site(), excluded=frozenset({NAMES[1]})))
    assert NAMES[1] not in await shown(db, source)


@on_both_databases
async def test_content_that_changed_under_the_same_validators_is_noted(db: Database) -> None:
    source = await kept(db)
    lying = site() | {NAMES[0]: Page("other words", tag=f"tag {NAMES[0]}")}
    await crawl(db, source, Site(lying))
    assert await validators_wrong(db, source) is False, "the server denied it, and was believed"
    await crawl(db, source, Site(lying), mode=CrawlMode.FULL)
    assert await validators_wrong(db, source) is True
    await crawl(db, source, Site(lying), mode=CrawlMode.FULL)
    assert await validators_wrong(db, source) is True, "nothing changed: nothing was learned"
    await crawl(db, source, Site(lying | {NAMES[1]: Page("honest", tag="another")}), mode=CrawlMode.FULL)
    assert await validators_wrong(db, source) is False


async def validators_wrong(db: Database, source: Source) -> bool:
    async with db.snapshot() as snapshot:
        found = await sources.get(snapshot, source.id)
    assert found is not None
    return found.validators_wrong_at is not None
