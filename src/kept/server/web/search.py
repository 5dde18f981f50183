"""The first page: search, or a welcome while there is no source."""

from itertools import groupby
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from kept.model.search_request import HitKind, SearchRequest
from kept.server.responses import get_services
from kept.server.web.page import PageRoute, render_page, wants_fragment
from kept.service import search as search_service
from kept.service.context import share_snapshot
from kept.service.sources import SourceView, list_sources

router = APIRouter(route_class=PageRoute)
PAGE_SIZE = 20


@router.get("/")
async def search(
    request: Request,
    q: Annotated[str, Query(max_length=1000)] = "",
    source: Annotated[list[str] | None, Query()] = None,
    kind: HitKind = "text",
    more: bool = False,
) -> Response:
    services, chosen = get_services(request), source or []
    has_words = bool(q.strip())
    limit = PAGE_SIZE * 5 if more else PAGE_SIZE
    search_request = SearchRequest(text=q, labels=tuple(chosen), limit=limit + 1, kind=kind)
    async with share_snapshot(services.db) as snapshot:
        result = await search_service.run_search(services, search_request, snapshot) if has_words else None
        views = [] if wants_fragment(request) else await list_sources(snapshot)
    hits = result.hits if result else []
    values: dict[str, Any] = {
        "q": q,
        "chosen": chosen,
        "kind": kind,
        "hits": hits[:limit],
        "has_more": len(hits) > limit and not more,
        "has_words": has_words,
        "did_you_mean": result.did_you_mean if result else None,
        "without": result.without if result else (),
    }
    if wants_fragment(request):
        fragment = render_page("hits.html", request, is_fragment=True, **values)
        has_query = "q=" in request.headers.get("HX-Current-URL", "")  # then typing on adds no entry to the history
        url = f"/?{request.url.query}" if q else "/"
        fragment.headers["HX-Replace-Url" if has_query else "HX-Push-Url"] = url
        return fragment
    if not views:
        return render_page("first_run.html", request)
    groups = _group_by_name(views)
    return render_page("search.html", request, is_fragment=False, groups=groups, source_count=len(views), **values)


def _group_by_name(views: list[SourceView]) -> list[tuple[str, list[SourceView]]]:
    """Group the versions of each source under its name."""
    ordered = sorted(views, key=lambda view: (view.source.name, view.source.version))
    return [(name, list(group)) for name, group in groupby(ordered, key=lambda view: view.source.name)]
