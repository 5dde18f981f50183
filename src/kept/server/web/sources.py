"""The list of sources, and the page of one: its timeline, a held generation, its documents, its settings."""

import re
from dataclasses import dataclass, field

from fastapi import APIRouter, Request, Response

from kept.model.generation import GenerationState
from kept.model.job import CrawlMode
from kept.server.responses import get_principal, get_services
from kept.server.web import charts
from kept.server.web.add import parse_source_options
from kept.server.web.page import AfterUrl, GenerationParam, PageRoute, redirect_to, render_page
from kept.server.web.tree import build_tree
from kept.service import documents, generations, ledger, uploads
from kept.service import sources as sources_service
from kept.service.context import Services, SharedSnapshot, share_snapshot
from kept.service.generations import GenerationDiff, TimelineEntry
from kept.service.sources import SourceView

router = APIRouter(route_class=PageRoute)
TREE_PAGE_SIZE = 2000  # documents
MAX_URLS_SHOWN = 200  # of each kind of change


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCard:
    """A source as the list shows it."""

    view: SourceView
    bars: list[charts.GenerationBar]
    last_change: TimelineEntry | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldReview:
    """The changes that activating a held generation would make, and why."""

    diff: GenerationDiff
    reasons: dict[str, str] = field(default_factory=dict)  # URL that would be lost -> reason


@router.get("/sources")
async def show_sources(request: Request) -> Response:
    cards = []
    async with share_snapshot(get_services(request).db) as snapshot:
        for view in await sources_service.list_sources(snapshot):
            _, entries = await generations.timeline(snapshot, view.source.label)
            last_change = next((entry for entry in entries if entry.has_changes), None)
            cards.append(SourceCard(view=view, bars=charts.generation_bars(entries), last_change=last_change))
    return render_page("sources.html", request, cards=cards)


@router.get("/sources/{label}")
async def show_source(request: Request, label: str) -> Response:
    services = get_services(request)
    async with share_snapshot(services.db) as snapshot:
        view = await sources_service.show_source(snapshot, label, services.schedule_policy)
        _, entries = await generations.timeline(snapshot, label)
        review = await _held_review(services, snapshot, view)
    chart = charts.generation_bars(entries, latest=30)
    return render_page("source.html", request, view=view, timeline=entries, chart=chart, review=review)


@router.get("/sources/{label}/changes")
async def show_changes(request: Request, label: str, a: GenerationParam, b: GenerationParam) -> Response:
    """Show the documents that differ between two generations."""
    services = get_services(request)
    async with share_snapshot(services.db) as snapshot:
        diff = await generations.diff_generations(snapshot, label, a, b, services.lifecycle_rules)
        before = await documents.find_documents_at(snapshot, label, a, diff.removed[:MAX_URLS_SHOWN])
        shown = [*diff.added[:MAX_URLS_SHOWN], *diff.changed[:MAX_URLS_SHOWN]]
        after = await documents.find_documents_at(snapshot, label, b, shown)
    return render_page(
        "changes.html", request, label=label, diff=diff, before=before, after=after, limit=MAX_URLS_SHOWN
    )


@router.get("/sources/{label}/tree")
async def show_tree(request: Request, label: str, after: AfterUrl = "") -> Response:
    async with share_snapshot(get_services(request).db) as snapshot:
        view = await sources_service.show_source(snapshot, label)
        shown, next_after = [], None
        if view.generation:
            page = await documents.list_documents(snapshot, label, after=after, limit=TREE_PAGE_SIZE)
            shown, next_after = page.documents, page.documents[-1].url if page.next else None
    tree = build_tree(shown, view.source.root)
    return render_page("tree.html", request, label=label, tree=tree, next_after=next_after)


@router.post("/sources/{label}/refresh")
async def refresh(request: Request, label: str) -> Response:
    form = await request.form()
    mode = CrawlMode.FULL if form.get("mode") == "full" else CrawlMode.REFRESH
    job = await sources_service.refresh_source(get_services(request), get_principal(request), label, mode=mode)
    return redirect_to(f"/jobs/{job.id}")


@router.post("/sources/{label}/rollback")
async def roll_back(request: Request, label: str) -> Response:
    number = str((await request.form()).get("generation", ""))
    await generations.roll_back(get_services(request).db, label, int(number) if re.fullmatch(r"\d{1,9}", number) else 0)
    return redirect_to(_source_url(label))


@router.post("/sources/{label}/activate")
async def activate(request: Request, label: str) -> Response:
    services = get_services(request)
    await generations.activate_held(services.db, label, services.lifecycle_rules)
    return redirect_to(_source_url(label))


@router.post("/sources/{label}/discard")
async def discard(request: Request, label: str) -> Response:
    await generations.discard_held(get_services(request).db, label)
    return redirect_to(_source_url(label))


@router.post("/sources/{label}/settings")
async def update_settings(request: Request, label: str) -> Response:
    options = parse_source_options(await request.form(), clear_empty=True)
    await sources_service.change_settings(get_services(request), get_principal(request), label, options)
    return redirect_to(f"{_source_url(label)}#settings")


@router.post("/sources/{label}/remove")
async def remove_source(request: Request, label: str) -> Response:
    await uploads.remove_source_and_upload(get_services(request), label, request.app.state.settings.uploads_folder)
    return redirect_to("/sources")


async def _held_review(services: Services, snapshot: SharedSnapshot, view: SourceView) -> HeldReview | None:
    held, label = view.upcoming, view.source.label
    if held is None or held.state is not GenerationState.HELD or held.base is None:
        return None
    diff = await generations.diff_generations(snapshot, label, held.base, held.number, services.lifecycle_rules)
    not_kept = await ledger.summarize_not_kept(snapshot, label, examples=MAX_URLS_SHOWN)
    reasons = {url: f"{group.outcome}: {group.reason}" for group in not_kept.reasons for url in group.examples}
    return HeldReview(diff=diff, reasons=reasons)


def _source_url(label: str) -> str:
    return f"/sources/{label}"
