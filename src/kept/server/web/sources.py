"""What is kept."""

from dataclasses import dataclass

from fastapi import APIRouter, Request, Response

from kept.server.web import charts
from kept.server.web.page import PageRoute, get_services, render_page
from kept.service.generations import TimelineEntry, timeline
from kept.service.sources import SourceView, list_sources

router = APIRouter(route_class=PageRoute)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCard:
    """A source, and what became of it lately."""

    view: SourceView
    bars: list[charts.GenerationBar]
    last_change: TimelineEntry | None  # when it last did


@router.get("/sources")
async def show_sources(request: Request) -> Response:
    db = get_services(request).db
    cards = []
    for view in await list_sources(db):
        _, steps = await timeline(db, view.source.label)
        changed = next((step for step in steps if step.has_changes), None)
        cards.append(SourceCard(view=view, bars=charts.generation_bars(steps), last_change=changed))
    return render_page("sources.html", request, cards=cards)
