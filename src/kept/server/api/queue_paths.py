"""The two paths of the job queue's contract. They are mounted at the root and below /api, not below /api/v1."""

from fastapi import APIRouter, Response

from kept.server.api import models
from kept.server.api.idempotency import IdempotencyKeyHeader, build_idempotency_key
from kept.server.api.models import JobId, describe_response
from kept.server.responses import PrincipalDep, ServicesDep, json_response
from kept.service import jobs, serializers, sources
from kept.service.source_options import SourceOptions
from kept.service.source_request import SourceRequest

router = APIRouter(tags=["queue"])


@router.post(
    "/knowledge-items/crawl", status_code=202, responses=describe_response(models.QueuedModel, 202, "The job.")
)
async def crawl(
    body: models.KnowledgeItemModel, services: ServicesDep, principal: PrincipalDep, key: IdempotencyKeyHeader = None
) -> Response:
    """Add a site, or refresh it."""
    options = SourceOptions(max_depth=body.depth if body.max_depth is None else body.max_depth, tag=body.tags)
    request = SourceRequest(root=body.url, options=options, priority=body.priority)
    idempotency_key = build_idempotency_key(key, "POST /knowledge-items/crawl", body)
    job = (await sources.add_source(services, principal, request, idempotency_key)).job
    return json_response({"job_id": job.id, "progress_id": job.id}, 202)


@router.get("/crawl-progress/{id}", responses=describe_response(models.CrawlProgressModel))
async def crawl_progress(id: JobId, services: ServicesDep) -> Response:
    """Show the progress of a crawl."""
    job = serializers.job(await jobs.show_job(services.db, id))
    return json_response({"progress_id": job["id"], "progress_percentage": job["progress"]["percent"], **job})
