"""For those who run the server: is it there, can it work, what does it do."""

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
    """The process answers."""
    return json_response({"status": "ok"})


@router.get("/readyz")
async def readyz(request: Request, services: ServicesDep) -> Response:
    """The database answers too."""
    try:
        async with asyncio.timeout(READY_TIMEOUT_SECONDS):
            await keys.list_keys(services.db)
    except TimeoutError:
        return problem_response(503, "The database does not answer.", {"Retry-After": "5"})
    if request.app.state.closing.is_set():
        return problem_response(503, "The server is about to stop.", {"Retry-After": "5"})
    return json_response({"status": "ready"})


@router.get("/metrics", responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}})
async def metrics(request: Request, services: ServicesDep) -> Response:
    """For Prometheus."""
    measures: Metrics = request.app.state.measures
    return await measures.render(services)
