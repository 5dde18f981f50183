"""The first page: search, or, in an empty Kept, how to begin."""

from itertools import groupby
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from kept.server.web.page import PageRoute, get_services, render_page, wants_fragment
from kept.service import search as search_service
from kept.service.sources import SourceView, list_sources

router = APIRouter(route_class=PageRoute)
PAGE_SIZE = 20


@router.get("/")
async def search(
    request: Request,
    q: Annotated[str, Query(max_length=1000)] = "",
    source: Annotated[list[str] | None, Query()] = None,
    kind: search_service.HitKind = "text",
    more: bool = False,
) -> Response:
    house, chosen = get_services(request), source or []
    has_words = any(char.isalnum() for char in q)
    limit = PAGE_SIZE * 5 if more else PAGE_SIZE
    answer = await search_service.run_search(house, q, labels=chosen, limit=limit + 1, kind=kind) if has_words else None
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
    if wants_fragment(request):
        part = render_page("hits.html", request, part=True, **found)
        begun = "q=" in request.headers.get("HX-Current-URL", "")
        here = f"/?{request.url.query}" if q else "/"
        part.headers["HX-Replace-Url" if begun else "HX-Push-Url"] = here
        return part
    kept = await list_sources(house.db)
    if not kept:
        return render_page("first_run.html", request)
    return render_page("search.html", request, part=False, groups=_group_by_name(kept), kept=kept, **found)


def _group_by_name(kept: list[SourceView]) -> list[tuple[str, list[SourceView]]]:
    """The versions of a thing stand together."""
    ordered = sorted(kept, key=lambda view: (view.source.name, view.source.version))
    return [(name, list(views)) for name, views in groupby(ordered, key=lambda view: view.source.name)]
