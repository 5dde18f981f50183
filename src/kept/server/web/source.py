"""One source: its past, what waits for a decision, its documents, its settings."""

import re
from dataclasses import dataclass, field

from fastapi import APIRouter, Request, Response

from kept.model.generation import GenerationState
from kept.model.job import CrawlMode
from kept.server.responses import get_principal
from kept.server.web import charts
from kept.server.web.forms import parse_source_options
from kept.server.web.page import AfterUrl, GenerationParam, PageRoute, get_services, redirect_to, render_page
from kept.server.web.tree import build_tree
from kept.service import documents, generations, ledger, uploads
from kept.service import sources as kept
from kept.service.context import Services
from kept.service.generations import GenerationDiff
from kept.service.sources import SourceView

router = APIRouter(route_class=PageRoute)
TREE_PAGE_SIZE = 2000  # documents that a page of the tree shows
MAX_URLS_SHOWN = 200  # URLs of each kind that a difference shows


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldReview:
    """What activating a held generation would do, and why."""

    difference: GenerationDiff
    reasons: dict[str, str] = field(default_factory=dict)  # a URL that would be lost -> why


@router.get("/sources/{label}")
async def show_source(request: Request, label: str) -> Response:
    house = get_services(request)
    view = await kept.show_source(house.db, label, house.schedule_policy)
    _, steps = await generations.timeline(house.db, label)
    return render_page(
        "source.html",
        request,
        view=view,
        steps=steps,
        chart=charts.generation_bars(steps, latest=30),
        review=await _held_review(house, view),
    )


@router.get("/sources/{label}/changes")
async def show_changes(request: Request, label: str, a: GenerationParam, b: GenerationParam) -> Response:
    """What differs between two generations, with the documents behind it."""
    house = get_services(request)
    found = await generations.diff_generations(house.db, label, a, b, house.lifecycle_rules)
    before = await documents.find_documents_at(house.db, label, a, found.removed[:MAX_URLS_SHOWN])
    after = await documents.find_documents_at(
        house.db, label, b, [*found.added[:MAX_URLS_SHOWN], *found.changed[:MAX_URLS_SHOWN]]
    )
    return render_page(
        "changes.html", request, label=label, found=found, before=before, after=after, limit=MAX_URLS_SHOWN
    )


@router.get("/sources/{label}/tree")
async def show_tree(request: Request, label: str, after: AfterUrl = "") -> Response:
    db = get_services(request).db
    view = await kept.show_source(db, label)
    shown, more = [], None
    if view.generation:
        page = await documents.list_documents(db, label, after=after, limit=TREE_PAGE_SIZE)
        shown, more = page.documents, page.documents[-1].url if page.next else None
    return render_page("tree.html", request, label=label, top=build_tree(shown, view.source.root), more=more)


@router.post("/sources/{label}/refresh")
async def refresh(request: Request, label: str) -> Response:
    form = await request.form()
    mode = CrawlMode.FULL if form.get("mode") == "full" else CrawlMode.REFRESH
    job = await kept.refresh_source(get_services(request), get_principal(request), label, mode=mode)
    return redirect_to(f"/jobs/{job.id}")


@router.post("/sources/{label}/rollback")
async def roll_back(request: Request, label: str) -> Response:
    number = str((await request.form()).get("generation", ""))
    await generations.roll_back(get_services(request).db, label, int(number) if re.fullmatch(r"\d{1,9}", number) else 0)
    return redirect_to(_source_url(label))


@router.post("/sources/{label}/activate")
async def activate(request: Request, label: str) -> Response:
    house = get_services(request)
    await generations.activate_held(house.db, label, house.lifecycle_rules)
    return redirect_to(_source_url(label))


@router.post("/sources/{label}/discard")
async def discard(request: Request, label: str) -> Response:
    await generations.discard_held(get_services(request).db, label)
    return redirect_to(_source_url(label))


@router.post("/sources/{label}/settings")
async def update_settings(request: Request, label: str) -> Response:
    said = parse_source_options(await request.form(), clear_empty=True)
    await kept.change_settings(get_services(request), get_principal(request), label, said)
    return redirect_to(f"{_source_url(label)}#settings")


@router.post("/sources/{label}/remove")
async def remove_source(request: Request, label: str) -> Response:
    await uploads.remove_source_and_upload(get_services(request), label, request.app.state.settings.uploads_folder)
    return redirect_to("/sources")


async def _held_review(services: Services, view: SourceView) -> HeldReview | None:
    held = view.upcoming
    if held is None or held.state is not GenerationState.HELD or held.base is None:
        return None
    difference = await generations.diff_generations(
        services.db, view.source.label, held.base, held.number, services.lifecycle_rules
    )
    told = await ledger.summarize_not_kept(services.db, view.source.label, examples=MAX_URLS_SHOWN)
    why = {url: f"{one.outcome}: {one.reason}" for one in told.reasons for url in one.examples}
    return HeldReview(difference=difference, reasons=why)


def _source_url(label: str) -> str:
    return f"/sources/{label}"
