"""What is kept, and its past."""

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
    body: models.NewSource, services: ServicesDep, principal: PrincipalDep, key: IdempotencyKeyHeader = None
) -> Response:
    """Keeps a site: makes the source and asks for a crawl. The same root again is a refresh, answered with 200."""
    wanted = SourceRequest(
        root=body.root, options=body.to_options(), name=body.name, version=body.version, priority=body.priority
    )
    idempotency_key = build_idempotency_key(key, "POST /sources", body)
    return source_added_response(await sources.add_source(services, principal, wanted, idempotency_key))


@router.get("/sources", responses=describe_response(models.Sources))
async def list_sources(request: Request, services: ServicesDep) -> Response:
    """All sources, and how they are."""
    views = await sources.list_sources(services.db)
    return json_response({"sources": [serializers.source(view) for view in views]}, request=request)


@router.get("/sources/{name}", responses=describe_response(models.Source))
async def show_source(name: SourceLabel, request: Request, services: ServicesDep) -> Response:
    """One source, and what its history tells of it."""
    view = await sources.show_source(services.db, name, services.schedule_policy)
    return json_response(serializers.source(view) | serializers.source_insights(view), request=request)


@router.patch("/sources/{name}", responses=describe_response(models.Source))
async def change_source(
    name: SourceLabel, body: models.SourceIn, services: ServicesDep, principal: PrincipalDep
) -> Response:
    """Changes settings, from the next crawl on. An empty text clears one."""
    source = await sources.change_settings(services, principal, name, body.to_options(clear_null=True))
    return json_response(serializers.source(await sources.show_source(services.db, source.label)))


@router.delete("/sources/{name}", responses=describe_response(models.Removed))
async def remove_source(name: SourceLabel, request: Request, services: ServicesDep) -> Response:
    """Hides the source at once and frees its name. Files that were uploaded for it are deleted."""
    source = await uploads.remove_source_and_upload(services, name, request.app.state.settings.uploads_folder)
    return json_response({"source": source.label, "removed": True})


@router.get("/sources/{name}/generations", responses=describe_response(models.Generations))
async def list_generations(name: SourceLabel, request: Request, services: ServicesDep) -> Response:
    """The history of a source."""
    return json_response(
        serializers.generations(*await generations.list_generations(services.db, name)), request=request
    )


@router.get("/sources/{name}/changes", responses=describe_response(models.Changes))
async def list_changes(
    name: SourceLabel,
    request: Request,
    services: ServicesDep,
    since: Annotated[LongText | None, Query(examples=["2026-11-01", "2d"])] = None,
    cursor: models.PageCursor = None,
    limit: models.PageLimit = 100,
) -> Response:
    """What became of its documents, the latest first."""
    after = parse_since(since, datetime.now(UTC)) if since else None
    found = await changes.list_changes(services.db, name, since=after, limit=limit, cursor=cursor)
    return json_response(serializers.changes(found), request=request)


@router.get("/sources/{name}/diff", responses=describe_response(models.Difference))
async def diff(
    name: SourceLabel,
    request: Request,
    services: ServicesDep,
    a: Annotated[int, Query(alias="from", ge=1, le=2**31)],
    to: GenerationNumber,
) -> Response:
    """What was added, removed, changed and moved between two generations."""
    found = await generations.diff_generations(services.db, name, a, to, services.lifecycle_rules)
    return json_response(serializers.diff(found), request=request)


@router.get("/sources/{name}/documents", responses=describe_response(models.Documents))
async def list_documents(
    name: SourceLabel,
    request: Request,
    services: ServicesDep,
    generation: GenerationNumber | None = None,
    cursor: models.PageCursor = None,
    limit: models.PageLimit = 100,
) -> Response:
    """The documents of a source by URL. `next` leads to the next page, of the same generation."""
    standing = (await documents.content_token(services.db, [name])).encode()
    if same := not_modified_response(request, standing):
        return same
    found = await documents.list_documents(services.db, name, generation=generation, cursor=cursor, limit=limit)
    return json_response_with_etag(request, standing, serializers.documents(found))


@router.post("/sources/{name}/rollback", responses=describe_response(models.Decided))
async def roll_back(name: SourceLabel, body: models.BackTo, services: ServicesDep) -> Response:
    """A new generation that shows what an earlier one showed."""
    made = await generations.roll_back(services.db, name, body.generation)
    return json_response({"source": name, "generation": made, "rolled_back_to": body.generation})


@router.post("/sources/{name}/activate", responses=describe_response(models.Decided))
async def activate(name: SourceLabel, services: ServicesDep) -> Response:
    """Makes a held generation live."""
    number = await generations.activate_held(services.db, name, services.lifecycle_rules)
    return json_response({"source": name, "generation": number, "state": "active"})


@router.post("/sources/{name}/discard", responses=describe_response(models.Decided))
async def discard(name: SourceLabel, services: ServicesDep) -> Response:
    """Gives a held generation up."""
    number = await generations.discard_held(services.db, name)
    return json_response({"source": name, "generation": number, "state": "abandoned"})
