"""The HTTP API, for programs: /api/v1, by noun.

models      what is said and answered, as OpenAPI tells it
sources     what is kept, and its past
jobs        crawls, how they stand, and what happens
documents   search, reading, history, why, try
outside     hooks and uploads
queue       the two addresses of the queue's own design
operating   health and measures
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
