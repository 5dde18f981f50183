"""Health checks and metrics, for operators."""

import asyncio

from fastapi import APIRouter, Request, Response

from kept.server.metrics import Metrics
from kept.server.problems import problem_response
from kept.server.responses import ServicesDep, json_response
from kept.service import keys

router = APIRouter(tags=["operating"])

READY_TIMEOUT_SECONDS = 2


@router.get("/healthz")
async def healthz() -> Response:
    """Answer while the process runs."""
    return json_response({"status": "ok"})


@router.get("/readyz")
async def readyz(request: Request, services: ServicesDep) -> Response:
    """Answer 200 while the database answers too, else 503."""
    try:
        async with asyncio.timeout(READY_TIMEOUT_SECONDS):
            await keys.list_keys(services.db)
    except TimeoutError:
        return problem_response(503, "The database does not answer.", {"Retry-After": "5"})
    if request.app.state.shutting_down.is_set():
        return problem_response(503, "The server is shutting down.", {"Retry-After": "5"})
    return json_response({"status": "ready"})


@router.get("/metrics", responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}})
async def metrics(request: Request, services: ServicesDep) -> Response:
    """Return metrics in the format of Prometheus."""
    server_metrics: Metrics = request.app.state.metrics
    return await server_metrics.render(services)
