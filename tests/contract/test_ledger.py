"""The ledger explains every page that was not kept."""

import pytest

from kept.errors import NotFound
from kept.maintenance.gc import Retention, collect
from kept.model.generation import Tally
from kept.model.job import CrawlMode, JobStatus
from kept.model.source import Source
from kept.service import generations, ledger
from kept.store.database import Database
from tests.contract.databases import on_both_databases
from tests.factories import ROOT, Page, Site, crawl, make_source

PAGES = {
    ROOT: Page("root", (f"{ROOT}gone", f"{ROOT}big1", f"{ROOT}big2", f"{ROOT}old", f"{ROOT}down", f"{ROOT}page")),
    f"{ROOT}page": Page("a page"),
    f"{ROOT}big1": Page(refused="too large"),
    f"{ROOT}big2": Page(refused="too large"),
    f"{ROOT}old": Page(redirect=f"{ROOT}page"),
    f"{ROOT}down": Page(error="500 Internal Server Error"),
}


def nowhere(source: Source, url: str) -> str | None:
    return "outside the source's scope" if "outside" in url else None


@on_both_databases
async def test_the_ledger_has_the_outcome_of_each_url(db: Database) -> None:
    await crawl(db, await make_source(db), Site(PAGES))
    [kept] = await ledger.explain_url(db, f"{ROOT}page#part", nowhere)
    assert (kept.source, kept.outcome, kept.reason, kept.http_status) == ("docs", "new", None, 200)
    assert (kept.depth, kept.discovered_from, kept.attempts) == (1, ROOT, 1)
    [dead] = await ledger.explain_url(db, f"{ROOT}gone", nowhere)
    assert (dead.outcome, dead.reason, dead.http_status) == ("dead_link", "404 Not Found", 404)
    assert (dead.discovered_from, bool(dead.visited_at)) == (ROOT, True)


@on_both_databases
async def test_gone_is_what_was_kept_and_a_link_to_what_never_was_is_dead(db: Database) -> None:
    page, never = f"{ROOT}page", f"{ROOT}never"
    before = {ROOT: Page("root", (page, never)), page: Page("a page")}
    source = await make_source(db)
    first = await crawl(db, source, Site(before))
    assert first.progress.tally == Tally(new=2, dead_links=1)
    second = await crawl(db, source, Site(before | {page: Page(gone=True)}))
    assert second.progress.tally == Tally(unchanged=1, gone=1, dead_links=1)
    third = await crawl(db, source, Site(before | {page: Page(gone=True)}))
    assert third.progress.tally == Tally(unchanged=1, dead_links=2), "it is no longer kept"
    [dead] = (await ledger.summarize_not_kept(db, "docs", examples=5)).reasons
    assert (dead.outcome, dead.count, dead.linked_from) == ("dead_link", 2, {page: ROOT, never: ROOT})


@on_both_databases
async def test_a_repair_with_nothing_to_repair_makes_no_generation(db: Database) -> None:
    down, up = {ROOT: Page("root", (f"{ROOT}a",)), f"{ROOT}a": Page("a", error="500")}, Page("a is up again")
    source = await make_source(db)
    await crawl(db, source, Site(down))
    for site in (Site(down), Site(down | {f"{ROOT}a": up})):  # the first repair is in vain, the second is not
        repaired = await crawl(db, source, site, mode=CrawlMode.FAILED)
        assert repaired.generation is not None
    site = Site(down | {f"{ROOT}a": up})
    for _ in range(2):
        idle = await crawl(db, source, site, mode=CrawlMode.FAILED)
        assert (idle.status, idle.generation, idle.progress.tally) == (JobStatus.COMPLETED, None, Tally())
    _, found = await generations.list_generations(db, "docs")
    assert ([one.number for one in found], site.visits) == ([1, 2, 3], [])
    await collect(db, Retention())
    [entry] = await ledger.explain_url(db, f"{ROOT}a", nowhere)
    assert entry.outcome == "new", "the repair is still in the ledger"


@on_both_databases
async def test_every_url_that_was_not_kept_is_counted_under_its_reason(db: Database) -> None:
    source = await make_source(db)
    await crawl(db, source, Site(PAGES))
    found = await ledger.summarize_not_kept(db, "docs", examples=1)
    reasons = {(one.outcome, one.reason): (one.count, one.examples) for one in found.reasons}
    assert reasons == {
        ("skipped", "too large"): (2, [f"{ROOT}big1"]),
        ("dead_link", "404 Not Found"): (1, [f"{ROOT}gone"]),
        ("failed", "500 Internal Server Error"): (1, [f"{ROOT}down"]),
        ("skipped", "redirects to another page"): (1, [f"{ROOT}old"]),
    }
    assert found.reasons[0].count == 2, "the commonest first"

    await crawl(db, source, Site(PAGES | {f"{ROOT}down": Page("up again")}), mode=CrawlMode.FAILED)
    repaired = await ledger.summarize_not_kept(db, "docs", examples=5)
    assert "failed" not in {one.outcome for one in repaired.reasons}
    assert sum(one.count for one in repaired.reasons) == 4
    [account] = await ledger.explain_url(db, f"{ROOT}down", nowhere)
    assert account.outcome == "new"

    await crawl(db, source, Site({ROOT: Page("alone")}))
    with pytest.raises(NotFound, match="nothing that its last crawl read leads there"):
        await ledger.explain_url(db, f"{ROOT}big1", nowhere)


@on_both_databases
async def test_all_sources_that_know_a_url_are_listed_the_latest_first(db: Database) -> None:
    for name in ("one", "two"):
        await crawl(
            db,
            await make_source(db, name, root=f"{ROOT}{name}"),
            Site(PAGES | {f"{ROOT}{name}": PAGES[ROOT]}, root=f"{ROOT}{name}"),
        )
    assert [one.source for one in await ledger.explain_url(db, f"{ROOT}gone", nowhere)] == ["two", "one"]


@on_both_databases
async def test_a_url_that_no_crawl_has_met_is_explained(db: Database) -> None:
    with pytest.raises(NotFound, match=r"^https://docs\.test/x belongs to no source\."):
        await ledger.explain_url(db, f"{ROOT}x", nowhere)
    source = await make_source(db)
    with pytest.raises(NotFound, match="its first crawl is not finished"):
        await ledger.explain_url(db, f"{ROOT}x", nowhere)
    with pytest.raises(NotFound, match="docs has not been crawled yet"):
        await ledger.summarize_not_kept(db, "docs", examples=1)
    await crawl(db, source, Site(PAGES))
    with pytest.raises(NotFound, match="nothing that its last crawl read leads there"):
        await ledger.explain_url(db, f"{ROOT}x", nowhere)
    with pytest.raises(
        NotFound, match=r"^docs does not have https://docs\.test/outside: outside the source's scope\.$"
    ):
        await ledger.explain_url(db, f"{ROOT}outside", nowhere)
    with pytest.raises(NotFound, match="belongs to no source"):
        await ledger.explain_url(db, "https://elsewhere.test/outside", nowhere)
    with pytest.raises(NotFound, match="Did you mean 'docs'"):
        await ledger.summarize_not_kept(db, "dosc", examples=1)
