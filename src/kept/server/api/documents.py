"""Search, documents and their history, why a page is missing, and how one would be read."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from kept import __version__
from kept.model.search_request import ContextKind, HitKind, SearchRequest
from kept.server.api import models
from kept.server.api.models import DocumentId, GenerationNumber, LongText, describe_response
from kept.server.responses import (
    PrincipalDep,
    ServicesDep,
    json_response,
    json_response_with_etag,
    not_modified_response,
)
from kept.service import document_diff, documents, ledger, previews, serializers
from kept.service import search as search_service
from kept.service.context import Services

router = APIRouter(tags=["documents"])

SectionAnchor = Annotated[LongText | None, Query(description="The anchor of a section.")]


@router.get("/search", responses=describe_response(models.HitsModel))
async def search(
    request: Request,
    services: ServicesDep,
    q: Annotated[LongText, Query(min_length=1, examples=["connection pool"])],
    source: Annotated[list[models.ShortText] | None, Query(max_length=50)] = None,
    limit: models.PageLimit = 10,
    generation: GenerationNumber | None = None,
    version: Annotated[models.ShortText | None, Query(description="18, ^18, ~18.2, latest")] = None,
    path: Annotated[models.ShortText, Query(description="Only pages below this path; * matches any part.")] = "",
    kind: HitKind = "text",
    language: Annotated[models.ShortText, Query(description="Only code examples in this language.")] = "",
    context: Annotated[ContextKind | None, Query(description="The text to return around each hit.")] = None,
    budget: Annotated[
        int | None, Query(ge=1, le=1_000_000, description="The tokens that texts and contexts may take.")
    ] = None,
) -> Response:
    """Search all sources, or those named. Returns sections, best first; without any, perhaps another spelling."""
    etag_input = await _search_etag_input(services, None if version else source)
    if etag_input and (unchanged := not_modified_response(request, etag_input)):
        return unchanged
    found = await search_service.run_search(
        services,
        SearchRequest(
            text=q,
            labels=tuple(source or ()),
            limit=limit,
            generation=generation,
            version=version,
            path=path,
            kind=kind,
            language=language,
            context=context,
            budget=budget,
        ),
    )
    answer = serializers.search(found)
    if etag_input is None:
        return json_response(answer, request=request)
    return json_response_with_etag(request, etag_input, answer)


async def _search_etag_input(services: Services, labels: list[str] | None) -> bytes | None:
    """Return what a lexical search depends on: while it is the same, so is the answer, without searching again.

    None for a semantic search, which finds more whenever a section gets its vector, and with a reranker, which may be
    unavailable.
    """
    if services.vector_search() or services.reranking():
        return None
    token = await documents.content_token(services.db, labels)
    return f"{__version__} {token} {await search_service.index_progress(services.db)}".encode()


@router.get("/documents", responses=describe_response(models.DocumentTextModel))
async def read_url(
    request: Request,
    services: ServicesDep,
    url: Annotated[LongText, Query(min_length=1)],
    section: SectionAnchor = None,
    generation: GenerationNumber | None = None,
) -> Response:
    """Read a document by its URL."""
    return await _document_response(request, services, url, section, generation)


@router.get("/documents/{id}", responses=describe_response(models.DocumentTextModel))
async def read(
    id: DocumentId,
    request: Request,
    services: ServicesDep,
    section: SectionAnchor = None,
    generation: GenerationNumber | None = None,
) -> Response:
    """Read a document, or a section of it, as Markdown."""
    return await _document_response(request, services, id, section, generation)


@router.get("/documents/{id}/history", responses=describe_response(models.HistoryModel))
async def history(id: DocumentId, request: Request, services: ServicesDep) -> Response:
    """List the versions and moves of a document."""
    return json_response(serializers.history(await documents.read_history(services.db, id)), request=request)


@router.get("/documents/{id}/diff", responses=describe_response(models.TextDifferenceModel))
async def diff(
    id: DocumentId,
    request: Request,
    services: ServicesDep,
    a: Annotated[int, Query(alias="from", ge=1, le=2_000_000_000)],
    to: GenerationNumber,
) -> Response:
    """Compare a document in two generations: both texts, and the lines that differ."""
    found = await document_diff.diff_document(services.db, id, a, to, rules=services.lifecycle_rules)
    return json_response(serializers.document_diff(found), request=request)


@router.get("/why", responses=describe_response(models.WhyModel))
async def why(request: Request, services: ServicesDep, url: Annotated[LongText, Query(min_length=1)]) -> Response:
    """Explain the outcome of a URL in the last crawl."""
    return json_response(
        serializers.ledger_entries(await ledger.explain_url(services.db, url, services.why_excluded)), request=request
    )


@router.post("/try", responses=describe_response(models.LookModel))
async def try_page(body: models.PageModel, services: ServicesDep, principal: PrincipalDep) -> Response:
    """Fetch one page and show how it would be read. Nothing is stored."""
    found = await previews.preview_page(services, principal, body.url, body.to_options())
    return json_response(serializers.page_preview(found))


async def _document_response(
    request: Request, services: Services, document: str, section: str | None, generation: int | None
) -> Response:
    found = await documents.read_document(
        services.db, document, section=section, generation=generation, rules=services.lifecycle_rules
    )
    return json_response(serializers.document(found), request=request)
