"""What is kept."""

from fastapi import APIRouter, Request, Response

from kept.model.nouns import dataclass
from kept.serve.web import charts
from kept.serve.web.page import PageRoute, house_of, show
from kept.service.generations import Step, timeline
from kept.service.sources import SourceView, list_sources

router = APIRouter(route_class=PageRoute)


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A source, and what became of it lately."""

    view: SourceView
    bars: list[charts.Bar]
    changed: Step | None  # when it last did


@router.get("/sources")
async def sources(request: Request) -> Response:
    db = house_of(request).db
    cards = []
    for view in await list_sources(db):
        _, steps = await timeline(db, view.source.label)
        changed = next((step for step in steps if step.differs), None)
        cards.append(Card(view=view, bars=charts.bars(steps), changed=changed))
    return show("sources.html", request, cards=cards)
