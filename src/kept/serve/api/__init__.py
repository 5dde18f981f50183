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

from kept.serve.api import documents, jobs, operating, outside, queue, sources
from kept.serve.api.openapi import describe

BASE = "/api/v1"


def add_api(app: FastAPI) -> None:
    api = APIRouter(prefix=BASE)
    for part in (sources, jobs, documents, outside):
        api.include_router(part.router)
    app.include_router(api)
    app.include_router(queue.router)
    app.include_router(queue.router, prefix="/api", include_in_schema=False)
    app.include_router(operating.router)
    describe(app)
