"""The two addresses of the queue's own design."""

from fastapi import APIRouter, Response

from kept.server.api import models
from kept.server.api.idempotency import IdempotencyKeyHeader, build_idempotency_key
from kept.server.api.models import JobId, describe_response
from kept.server.responses import PrincipalDep, ServicesDep, json_response
from kept.service import jobs, serializers, sources
from kept.service.source_options import SourceOptions
from kept.service.source_request import SourceRequest

router = APIRouter(tags=["queue"])


@router.post("/knowledge-items/crawl", status_code=202, responses=describe_response(models.Queued, 202, "The job."))
async def crawl(
    body: models.KnowledgeItem, services: ServicesDep, principal: PrincipalDep, key: IdempotencyKeyHeader = None
) -> Response:
    """Keeps a site, or refreshes it."""
    options = SourceOptions(max_depth=body.max_depth, tag=body.tags)
    wanted = SourceRequest(root=body.url, options=options, priority=body.priority)
    idempotency_key = build_idempotency_key(key, "POST /knowledge-items/crawl", body)
    job = (await sources.add_source(services, principal, wanted, idempotency_key)).job
    return json_response({"job_id": job.id, "progress_id": job.id}, 202)


@router.get("/crawl-progress/{id}", responses=describe_response(models.CrawlProgress))
async def crawl_progress(id: JobId, services: ServicesDep) -> Response:
    """How a crawl stands."""
    job = serializers.job(await jobs.show_job(services.db, id))
    return json_response({"progress_id": job["id"], "progress_percentage": job["progress"]["percent"], **job})
