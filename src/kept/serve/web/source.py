"""One source: its past, what waits for a decision, its documents, its settings."""

import re
from dataclasses import field

from fastapi import APIRouter, Request, Response

from kept.model.generation import GenerationState
from kept.model.job import CrawlMode
from kept.model.nouns import dataclass
from kept.serve.answers import asker_of
from kept.serve.web import charts
from kept.serve.web.forms import given
from kept.serve.web.page import After, Number, PageRoute, go_to, house_of, show
from kept.serve.web.tree import tree_of
from kept.service import asking, browsing, generations, ledger
from kept.service import sources as kept
from kept.service.generations import Difference
from kept.service.house import House
from kept.service.sources import SourceView

router = APIRouter(route_class=PageRoute)
TREE = 2000  # documents that a page of the tree shows
SHOWN = 200  # URLs of each kind that a difference shows


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """What activating a held generation would do, and why."""

    difference: Difference
    why: dict[str, str] = field(default_factory=dict)  # a URL that would be lost -> why


@router.get("/sources/{label}")
async def source(request: Request, label: str) -> Response:
    house = house_of(request)
    view = await kept.show_source(house.db, label, house.rhythm)
    _, steps = await generations.timeline(house.db, label)
    return show(
        "source.html",
        request,
        view=view,
        steps=steps,
        chart=charts.bars(steps, latest=30),
        review=await _review(house, view),
    )


@router.get("/sources/{label}/changes")
async def changes(request: Request, label: str, a: Number, b: Number) -> Response:
    """What differs between two generations, with the documents behind it."""
    house = house_of(request)
    found = await generations.diff(house.db, label, a, b, house.rules)
    before = await browsing.documents_at(house.db, label, a, found.removed[:SHOWN])
    after = await browsing.documents_at(house.db, label, b, [*found.added[:SHOWN], *found.changed[:SHOWN]])
    return show("changes.html", request, label=label, found=found, before=before, after=after, limit=SHOWN)


@router.get("/sources/{label}/tree")
async def tree(request: Request, label: str, after: After = "") -> Response:
    db = house_of(request).db
    view = await kept.show_source(db, label)
    documents = await browsing.list_documents(db, label, after=after, limit=TREE + 1)
    more = documents[TREE - 1].url if len(documents) > TREE else None
    return show("tree.html", request, label=label, top=tree_of(documents[:TREE], view.source.root), more=more)


@router.post("/sources/{label}/refresh")
async def refresh(request: Request, label: str) -> Response:
    form = await request.form()
    mode = CrawlMode.FULL if form.get("mode") == "full" else CrawlMode.REFRESH
    job = await asking.crawl(house_of(request), asker_of(request), label, mode=mode)
    return go_to(f"/jobs/{job.id}")


@router.post("/sources/{label}/rollback")
async def roll_back(request: Request, label: str) -> Response:
    number = str((await request.form()).get("generation", ""))
    await generations.roll_back(house_of(request).db, label, int(number) if re.fullmatch(r"\d{1,9}", number) else 0)
    return go_to(_address(label))


@router.post("/sources/{label}/activate")
async def activate(request: Request, label: str) -> Response:
    house = house_of(request)
    await generations.activate_held(house.db, label, house.rules)
    return go_to(_address(label))


@router.post("/sources/{label}/discard")
async def discard(request: Request, label: str) -> Response:
    await generations.discard_held(house_of(request).db, label)
    return go_to(_address(label))


@router.post("/sources/{label}/settings")
async def settings(request: Request, label: str) -> Response:
    said = given(await request.form(), clearing=True)
    await asking.change(house_of(request), asker_of(request), label, said)
    return go_to(f"{_address(label)}#settings")


@router.post("/sources/{label}/remove")
async def remove(request: Request, label: str) -> Response:
    await asking.remove(house_of(request), label, request.app.state.settings.uploads_folder)
    return go_to("/sources")


async def _review(house: House, view: SourceView) -> Review | None:
    held = view.upcoming
    if held is None or held.state is not GenerationState.HELD or held.base is None:
        return None
    difference = await generations.diff(house.db, view.source.label, held.base, held.number, house.rules)
    told = await ledger.not_kept(house.db, view.source.label, examples=SHOWN)
    why = {url: f"{one.outcome}: {one.reason}" for one in told.reasons for url in one.examples}
    return Review(difference=difference, why=why)


def _address(label: str) -> str:
    return f"/sources/{label}"
