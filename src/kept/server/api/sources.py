"""Sources, their generations and changes."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from kept.model.duration import parse_since
from kept.server.api import models
from kept.server.api.idempotency import IdempotencyKeyHeader, build_idempotency_key
from kept.server.api.models import GenerationNumber, LongText, SourceLabel, describe_response
from kept.server.responses import (
    PrincipalDep,
    ServicesDep,
    json_response,
    json_response_with_etag,
    not_modified_response,
    source_added_response,
)
from kept.service import changes, documents, generations, serializers, sources, uploads
from kept.service.source_request import SourceRequest

router = APIRouter(tags=["sources"])


@router.post("/sources", status_code=201, responses=models.ADD_SOURCE_RESPONSES)
async def add_source(
    body: models.NewSourceModel, services: ServicesDep, principal: PrincipalDep, key: IdempotencyKeyHeader = None
) -> Response:
    """Add a source and request its first crawl. A root that is known already is refreshed and answered with 200."""
    request = SourceRequest(
        root=body.root, options=body.to_options(), name=body.name, version=body.version, priority=body.priority
    )
    idempotency_key = build_idempotency_key(key, "POST /sources", body)
    return source_added_response(await sources.add_source(services, principal, request, idempotency_key))


@router.get("/sources", responses=describe_response(models.SourcesModel))
async def list_sources(request: Request, services: ServicesDep) -> Response:
    """List all sources."""
    views = await sources.list_sources(services.db)
    return json_response({"sources": [serializers.source(view) for view in views]}, request=request)


@router.get("/sources/{name}", responses=describe_response(models.SourceModel))
async def show_source(name: SourceLabel, request: Request, services: ServicesDep) -> Response:
    """Show a source, with what its history says: how often it changes, and how often to refresh it."""
    view = await sources.show_source(services.db, name, services.schedule_policy)
    return json_response(serializers.source(view) | serializers.source_insights(view), request=request)


@router.patch("/sources/{name}", responses=describe_response(models.SourceModel))
async def change_source(
    name: SourceLabel, body: models.SourceInModel, services: ServicesDep, principal: PrincipalDep
) -> Response:
    """Change settings, from the next crawl on. An empty text or null clears a setting."""
    source = await sources.change_settings(services, principal, name, body.to_options(clear_null=True))
    return json_response(serializers.source(await sources.show_source(services.db, source.label)))


@router.delete("/sources/{name}", responses=describe_response(models.RemovedModel))
async def remove_source(name: SourceLabel, request: Request, services: ServicesDep) -> Response:
    """Remove a source and free its name. Files that were uploaded for it are deleted."""
    source = await uploads.remove_source_and_upload(services, name, request.app.state.settings.uploads_folder)
    return json_response({"source": source.label, "removed": True})


@router.get("/sources/{name}/generations", responses=describe_response(models.GenerationsModel))
async def list_generations(name: SourceLabel, request: Request, services: ServicesDep) -> Response:
    """List the generations of a source."""
    return json_response(
        serializers.generations(*await generations.list_generations(services.db, name)), request=request
    )


@router.get("/sources/{name}/changes", responses=describe_response(models.ChangesModel))
async def list_changes(
    name: SourceLabel,
    request: Request,
    services: ServicesDep,
    since: Annotated[LongText | None, Query(examples=["2026-11-01", "2d"])] = None,
    cursor: models.PageCursor = None,
    limit: models.PageLimit = 100,
) -> Response:
    """List the changes of its documents, the newest first."""
    after = parse_since(since, datetime.now(UTC)) if since else None
    found = await changes.list_changes(services.db, name, since=after, limit=limit, cursor=cursor)
    return json_response(serializers.changes(found), request=request)


@router.get("/sources/{name}/diff", responses=describe_response(models.DifferenceModel))
async def diff(
    name: SourceLabel,
    request: Request,
    services: ServicesDep,
    a: Annotated[int, Query(alias="from", ge=1, le=2**31)],
    to: GenerationNumber,
) -> Response:
    """Compare two generations: the documents that were added, removed, changed and moved."""
    found = await generations.diff_generations(services.db, name, a, to, services.lifecycle_rules)
    return json_response(serializers.diff(found), request=request)


@router.get("/sources/{name}/documents", responses=describe_response(models.DocumentsModel))
async def list_documents(
    name: SourceLabel,
    request: Request,
    services: ServicesDep,
    generation: GenerationNumber | None = None,
    cursor: models.PageCursor = None,
    limit: models.PageLimit = 100,
) -> Response:
    """List the documents of a source by URL. `next` is the cursor of the next page, of the same generation."""
    etag_input = (await documents.content_token(services.db, [name])).encode()
    if unchanged := not_modified_response(request, etag_input):
        return unchanged
    found = await documents.list_documents(services.db, name, generation=generation, cursor=cursor, limit=limit)
    return json_response_with_etag(request, etag_input, serializers.documents(found))


@router.post("/sources/{name}/rollback", responses=describe_response(models.DecidedModel))
async def roll_back(name: SourceLabel, body: models.BackToModel, services: ServicesDep) -> Response:
    """Activate a new generation with the documents of an earlier one."""
    number = await generations.roll_back(services.db, name, body.generation)
    return json_response({"source": name, "generation": number, "rolled_back_to": body.generation})


@router.post("/sources/{name}/activate", responses=describe_response(models.DecidedModel))
async def activate(name: SourceLabel, services: ServicesDep) -> Response:
    """Activate the held generation."""
    number = await generations.activate_held(services.db, name, services.lifecycle_rules)
    return json_response({"source": name, "generation": number, "state": "active"})


@router.post("/sources/{name}/discard", responses=describe_response(models.DecidedModel))
async def discard(name: SourceLabel, services: ServicesDep) -> Response:
    """Discard the held generation."""
    number = await generations.discard_held(services.db, name)
    return json_response({"source": name, "generation": number, "state": "abandoned"})
