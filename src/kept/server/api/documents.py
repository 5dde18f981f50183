"""Finding and reading: search, documents, their history, why one is not there, how one would be kept."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from kept import __version__
from kept.server.api import models
from kept.server.api.models import DocumentId, GenerationNumber, LongText, describe_response
from kept.server.responses import (
    PrincipalDep,
    ServicesDep,
    json_response,
    json_response_with_etag,
    not_modified_response,
)
from kept.service import document_diff, documents, ledger, serializers
from kept.service import search as search_service
from kept.service.context import Services
from kept.service.source_request import SourceRequest, resolve_request

router = APIRouter(tags=["documents"])

SectionAnchor = Annotated[LongText | None, Query(description="The anchor of a section.")]


@router.get("/search", responses=describe_response(models.Hits))
async def search(
    request: Request,
    services: ServicesDep,
    q: Annotated[LongText, Query(min_length=1, examples=["connection pool"])],
    source: Annotated[list[models.ShortText] | None, Query(max_length=50)] = None,
    limit: models.PageLimit = 10,
    generation: GenerationNumber | None = None,
    version: Annotated[models.ShortText | None, Query(description="18, ^18, ~18.2, latest")] = None,
    path: Annotated[models.ShortText, Query(description="Only pages below it; * stands for a part of it.")] = "",
    kind: search_service.HitKind = "text",
    language: Annotated[models.ShortText, Query(description="Only in code of this language.")] = "",
    context: Annotated[search_service.ContextKind | None, Query(description="What stands around each hit.")] = None,
    budget: Annotated[int | None, Query(ge=1, le=1_000_000, description="Tokens for texts and contexts.")] = None,
) -> Response:
    """The best sections, across all sources or those named. Nothing found: perhaps another spelling."""
    standing = await _search_etag_input(services, None if version else source)
    if standing and (same := not_modified_response(request, standing)):
        return same
    found = await search_service.run_search(
        services,
        q,
        labels=source or (),
        limit=limit,
        generation=generation,
        version=version,
        path=path,
        kind=kind,
        language=language,
        context=context,
        budget=budget,
    )
    shape = serializers.search(found)
    return json_response_with_etag(request, standing, shape) if standing else json_response(shape, request=request)


async def _search_etag_input(services: Services, labels: list[str] | None) -> bytes | None:
    """What a search by words stands on: it need not be done again to see that it would find the same.

    None for a search by meaning, which finds more whenever a section has got its vector, and for one whose hits are
    ordered by somebody who may be away.
    """
    if services.vector_search() or services.reranking():
        return None
    return f"{__version__} {await documents.content_token(services.db, labels)}".encode()


@router.get("/documents", responses=describe_response(models.DocumentText))
async def read_url(
    request: Request,
    services: ServicesDep,
    url: Annotated[LongText, Query(min_length=1)],
    section: SectionAnchor = None,
    generation: GenerationNumber | None = None,
) -> Response:
    """A document by its URL."""
    return json_response(
        serializers.document(
            await documents.read_document(
                services.db, url, section=section, generation=generation, rules=services.lifecycle_rules
            )
        ),
        request=request,
    )


@router.get("/documents/{id}", responses=describe_response(models.DocumentText))
async def read(
    id: DocumentId,
    request: Request,
    services: ServicesDep,
    section: SectionAnchor = None,
    generation: GenerationNumber | None = None,
) -> Response:
    """A document, or a section of it, as Markdown."""
    return json_response(
        serializers.document(
            await documents.read_document(
                services.db, id, section=section, generation=generation, rules=services.lifecycle_rules
            )
        ),
        request=request,
    )


@router.get("/documents/{id}/history", responses=describe_response(models.History))
async def history(id: DocumentId, request: Request, services: ServicesDep) -> Response:
    """What became of a document: its versions and moves."""
    return json_response(serializers.history(await documents.read_history(services.db, id)), request=request)


@router.get("/documents/{id}/diff", responses=describe_response(models.TextDifference))
async def diff(
    id: DocumentId,
    request: Request,
    services: ServicesDep,
    a: Annotated[int, Query(alias="from", ge=1, le=2_000_000_000)],
    to: GenerationNumber,
) -> Response:
    """What differs between a document in two generations: both texts, and the lines that differ."""
    found = await document_diff.diff_document(services.db, id, a, to, rules=services.lifecycle_rules)
    return json_response(serializers.document_diff(found), request=request)


@router.get("/why", responses=describe_response(models.Why))
async def why(request: Request, services: ServicesDep, url: Annotated[LongText, Query(min_length=1)]) -> Response:
    """What the last crawl made of a URL, and why."""
    return json_response(
        serializers.ledger_entries(await ledger.explain_url(services.db, url, services.why_excluded)), request=request
    )


@router.post("/try", responses=describe_response(models.Look))
async def try_page(body: models.Page, services: ServicesDep, principal: PrincipalDep) -> Response:
    """One page as it would be kept. Nothing is kept."""
    page = resolve_request(SourceRequest(root=body.url, options=body.to_options()), principal.permissions)
    return json_response(serializers.page_preview(await services.preview_page(page.kind, page.root, page.settings)))
