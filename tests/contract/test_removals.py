"""Every removal has its reason: in summary, ledger, history, change feed and events."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from kept.model.changes import RemovalReason
from kept.model.source import Limits, Scope, SourceSettings
from kept.service import changes, documents, events, generations, ledger
from kept.store import notifications, sources
from kept.store.database import Database
from tests.contract.databases import on_both_databases, run_sql
from tests.factories import ROOT, Page, Site, crawl, make_source, shown

BEGINNING = datetime(2026, 11, 1, tzinfo=UTC)
PATHS = [f"{ROOT}{number}" for number in range(7)]
TEXT = "a page about %s, long enough to be told from every other page of this site"
PAGES = {ROOT: Page("root", tuple(PATHS)), **{url: Page(TEXT % url) for url in PATHS}}
LEFT = PATHS[0]


def after(left: Page | None, linked: bool = True) -> Site:
    """Return the site with another answer at LEFT, or with no link to it."""
    root = PAGES[ROOT] if linked else Page("root", tuple(PATHS[1:]))
    return Site(PAGES | {ROOT: root} | ({LEFT: left} if left else {}))


@pytest.mark.parametrize(
    ("sites", "reason", "outcome"),
    [
        (
            [after(None, linked=False)] * 3,
            "nothing leads to it any more; missing since 2026-11-05, and the grace period is over",
            "gone",
        ),
        (
            [after(Page(refused="robots.txt"))] * 3,
            "robots.txt; missing since 2026-11-05, and the grace period is over",
            "gone",
        ),
        ([after(Page(gone=True))], "404 Not Found", "gone"),
        ([after(Page(redirect=PATHS[1]))], f"redirects to {PATHS[1]}", "gone"),
        ([after(Page(TEXT % PATHS[1], canonical=PATHS[1]))], f"a duplicate of {PATHS[1]}", "skipped"),
        ([Site(PAGES, excluded=frozenset([LEFT]))], "left out by the source's settings", "skipped"),
    ],
    ids=["grace", "skipped", "404", "merged", "duplicate", "settings"],
)
@on_both_databases
async def test_every_removal_has_its_reason_everywhere(
    db: Database, sites: Sequence[Site], reason: str, outcome: str
) -> None:
    source = await make_source(db)
    await crawl(db, source, Site(PAGES), now=BEGINNING)
    [document, _] = (await shown(db, source))[LEFT]
    async with db.transaction() as tx:
        excluded = tuple(url for site in sites for url in site.excluded)
        await sources.set_settings(tx, source.id, SourceSettings(scope=Scope(exclude=excluded)))
    for number, site in enumerate(sites, 1):
        assert LEFT in await shown(db, source)
        job = await crawl(db, source, site, now=BEGINNING + number * timedelta(days=4))
        [entry] = await ledger.explain_url(db, LEFT, lambda source, url: None)
        assert entry.reason, "a page that will be removed says why before, too"
    assert LEFT not in await shown(db, source)

    generation, removed = await generations.get_crawl_result(db, job)
    assert generation is not None
    assert removed == [RemovalReason(reason=reason, count=1)]
    assert (generation.tally.unchanged, getattr(generation.tally, outcome)) == (7, 1)
    [entry] = await ledger.explain_url(db, LEFT, lambda source, url: None)
    assert (entry.outcome, entry.reason) == (outcome, reason)
    history = await documents.read_history(db, document)
    assert (history.lifecycle, history.reason) == ("deleted", reason)
    assert history.versions[-1].end_reason == reason
    [change] = [one for one in (await changes.list_changes(db, "docs")).changes if one.change == "removed"]
    assert (change.url, change.reason) == (LEFT, reason)
    [event] = [
        one.data
        for one in await events.read_events(db, await events.cursor_for_job(db, job.id))
        if one.kind == "page" and one.data["url"] == LEFT
    ]
    assert (event["outcome"], event["reason"], event["deleted"]) == (outcome, reason, True)
    async with db.transaction() as tx:
        [*_, notification] = await notifications.list_due(tx, datetime.now(UTC) + timedelta(hours=1), limit=100)
    assert notification.payload["removed"] == [{"reason": reason, "count": 1}]


@on_both_databases
async def test_a_reader_of_events_that_has_seen_a_page_kept_sees_that_it_is_removed(db: Database) -> None:
    source = await make_source(db)
    await crawl(db, source, Site(PAGES), now=BEGINNING)
    for number in (1, 2):
        await crawl(db, source, after(None, linked=False), now=BEGINNING + number * timedelta(days=4))

    job = await crawl(db, source, after(None, linked=False), now=BEGINNING + timedelta(days=12))
    async with db.snapshot() as snapshot:
        [[visits]] = await run_sql(
            snapshot, f"SELECT max(batch) FROM frontier WHERE job_id = '{job.id}' AND url <> '{LEFT}'"
        )
    everything_visited = events.JobPosition(batch=visits, entry=2**62)
    cursor = events.EventCursor(since=job.created_at, jobs={job.id: everything_visited}, only_listed_jobs=True)
    told = [one.data for one in await events.read_events(db, cursor) if one.kind == "page"]
    assert [(one["url"], one["outcome"], one["deleted"]) for one in told] == [(LEFT, "gone", True)]


@on_both_databases
async def test_a_rollback_says_why_documents_are_not_there_any_more(db: Database) -> None:
    source = await make_source(db)
    await crawl(db, source, Site({ROOT: Page("root", (LEFT,))}))
    await crawl(db, source, Site({ROOT: Page("root", (LEFT,)), LEFT: Page(TEXT % LEFT)}))
    [document, _] = (await shown(db, source))[LEFT]
    await generations.roll_back(db, "docs", 1)
    history = await documents.read_history(db, document)
    assert history.versions[-1].end_reason == "rolled back to 1"
    [change] = [one for one in (await changes.list_changes(db, "docs")).changes if one.generation == 3]
    assert (change.change, change.reason) == ("removed", "rolled back to 1")


BEHIND = {
    "ring": Page(redirect=f"{ROOT}round"),  # ring and round: from one to the other, in a circle
    "chain": Page(redirect=f"{ROOT}hop"),  # by a hop to what fails
    "lost": Page(redirect=f"{ROOT}hidden"),  # to what may not be visited: a skipped page is no failure
    "moved": Page(redirect=f"{ROOT}moved-to"),  # to a new page, which links to nothing
}


@pytest.mark.parametrize("limits", [Limits(), Limits(max_pages=50)], ids=["unlimited", "in rounds"])
@on_both_databases
async def test_pages_behind_one_that_redirects_to_a_failure_are_still_reached(db: Database, limits: Limits) -> None:
    before = {ROOT: Page("root", tuple(f"{ROOT}{name}" for name in BEHIND))}
    for name in BEHIND:
        before[f"{ROOT}{name}"] = Page(TEXT % name, (f"{ROOT}{name}/behind",))
        before[f"{ROOT}{name}/behind"] = Page(TEXT % f"behind {name}")
    # What is behind the ring redirects itself, and new pages are behind that.
    before[f"{ROOT}ring/behind"] = Page(TEXT % "more", (f"{ROOT}deeper",))
    before[f"{ROOT}deeper"] = Page(TEXT % "deeper")
    after = before | {f"{ROOT}{name}": page for name, page in BEHIND.items()}
    after |= {
        f"{ROOT}round": Page(redirect=f"{ROOT}ring"),
        f"{ROOT}hop": Page(redirect=f"{ROOT}broken"),
        f"{ROOT}broken": Page(error="500 Internal Server Error"),
        f"{ROOT}hidden": Page(refused="robots.txt"),
        f"{ROOT}moved-to": Page(TEXT % "moved"),
        f"{ROOT}ring/behind": Page(redirect=f"{ROOT}broken"),
        f"{ROOT}deeper": Page(TEXT % "deeper", (f"{ROOT}news",)),
        f"{ROOT}news": Page(TEXT % "news"),
    }
    source = await make_source(db, settings=SourceSettings(limits=limits))
    await crawl(db, source, Site(before), now=BEGINNING)
    everything = await shown(db, source)
    job = await crawl(db, source, Site(after), now=BEGINNING + timedelta(days=4))
    assert not job.held
    states = {
        url.removeprefix(ROOT): (await documents.read_history(db, document)).lifecycle
        for url, (document, _) in (await shown(db, source)).items()
        if url != ROOT
    }
    assert states == {
        "ring": "error",
        "ring/behind": "error",
        "deeper": "active",
        "news": "active",
        "chain": "error",
        "chain/behind": "active",
        "lost": "missing",
        "lost/behind": "missing",
        "moved-to": "active",
        "moved/behind": "missing",
    }
    assert (await shown(db, source))[f"{ROOT}moved-to"][0] == everything[f"{ROOT}moved"][0]
