"""The HTTP API for programs, below /api/v1.

models        request and response bodies
sources       sources, their generations and changes
jobs          crawls and their events
documents     search, documents, history, why, try
hooks         webhooks from other programs, and uploads
queue_paths   the two paths of the job queue's contract, outside /api/v1
health        health checks and metrics
idempotency   the Idempotency-Key header
openapi       the OpenAPI document
"""

from fastapi import APIRouter, FastAPI

from kept.server.api import documents, health, hooks, jobs, queue_paths, sources
from kept.server.api.openapi import install_openapi

API_PREFIX = "/api/v1"


def add_api(app: FastAPI) -> None:
    api = APIRouter(prefix=API_PREFIX)
    for part in (sources, jobs, documents, hooks):
        api.include_router(part.router)
    app.include_router(api)
    app.include_router(queue_paths.router)
    app.include_router(queue_paths.router, prefix="/api", include_in_schema=False)
    app.include_router(health.router)
    install_openapi(app)
