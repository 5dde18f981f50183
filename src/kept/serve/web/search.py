"""The first page: search, or, in an empty Kept, how to begin."""

from itertools import groupby
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from kept.serve.web.page import PageRoute, house_of, show, wants_part
from kept.service import finding
from kept.service.sources import SourceView, list_sources

router = APIRouter(route_class=PageRoute)
LIMIT = 20


@router.get("/")
async def search(
    request: Request,
    q: Annotated[str, Query(max_length=1000)] = "",
    source: Annotated[list[str] | None, Query()] = None,
    kind: finding.Kind = "text",
    more: bool = False,
) -> Response:
    house, chosen = house_of(request), source or []
    has_words = any(char.isalnum() for char in q)
    limit = LIMIT * 5 if more else LIMIT
    answer = await finding.find(house, q, labels=chosen, limit=limit + 1, kind=kind) if has_words else None
    hits = answer.hits if answer else []
    found: dict[str, Any] = {
        "q": q,
        "chosen": chosen,
        "kind": kind,
        "hits": hits[:limit],
        "more": len(hits) > limit and not more,
        "has_words": has_words,
        "meant": answer.did_you_mean if answer else None,
    }
    if wants_part(request):
        part = show("hits.html", request, part=True, **found)
        begun = "q=" in request.headers.get("HX-Current-URL", "")
        here = f"/?{request.url.query}" if q else "/"
        part.headers["HX-Replace-Url" if begun else "HX-Push-Url"] = here
        return part
    kept = await list_sources(house.db)
    if not kept:
        return show("first_run.html", request)
    return show("search.html", request, part=False, groups=_by_name(kept), kept=kept, **found)


def _by_name(kept: list[SourceView]) -> list[tuple[str, list[SourceView]]]:
    """The versions of a thing stand together."""
    ordered = sorted(kept, key=lambda view: (view.source.name, view.source.version))
    return [(name, list(views)) for name, views in groupby(ordered, key=lambda view: view.source.name)]
