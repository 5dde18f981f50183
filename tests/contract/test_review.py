"""A held generation is reviewed as its base, plus its own versions, minus its losses."""

import asyncio

from kept.crawl.lifecycle import LifecycleRules
from kept.service import generations as past
from tests.factories import ROOT, Page, Site, crawl, database_at, make_source

WORDS = "with enough words behind it that nobody takes it for a tiny page at all"


def test_the_review_of_a_held_generation_shows_what_it_would_change(database_url: str) -> None:
    async def scenario() -> None:
        async with database_at(database_url) as db:
            source = await make_source(db)
            names = [f"{ROOT}p{number}" for number in range(10)]
            pages = {ROOT: Page(f"root {WORDS}", (*names, f"{ROOT}new", f"{ROOT}elsewhere"))}
            pages |= {name: Page(f"{name} {WORDS}") for name in names}
            await crawl(db, source, Site(pages))

            lost = dict.fromkeys(names[:6], Page(gone=True))
            changed = {names[6]: Page(f"other words {WORDS}"), f"{ROOT}new": Page(f"new {WORDS}")}
            moved = {names[7]: Page(gone=True), f"{ROOT}elsewhere": pages[names[7]]}
            held = await crawl(db, source, Site(pages | lost | changed | moved))
            assert held.held

            review = await past.diff_generations(db, "docs", 1, 2)
            assert review.removed == names[:6]
            assert (review.added, review.changed) == ([f"{ROOT}new"], [names[6]])
            assert [(move["from"], move["to"]) for move in review.moved] == [(names[7], f"{ROOT}elsewhere")]

            assert await past.activate_held(db, "docs", LifecycleRules()) == 2
            assert await past.diff_generations(db, "docs", 1, 2) == review
            _, [*_, active] = await past.list_generations(db, "docs")
            assert active.reason == "it was held, and activated after a review"  # not: what would be lost

    asyncio.run(scenario())
