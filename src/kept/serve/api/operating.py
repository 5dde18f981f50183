"""For those who run the server: is it there, can it work, what does it do."""

import asyncio

from fastapi import APIRouter, Request, Response

from kept.serve.answers import TheHouse, answer
from kept.serve.measures import Measures
from kept.serve.problems import problem
from kept.service import keys

router = APIRouter(tags=["operating"])

READY_SECONDS = 2


@router.get("/healthz")
async def healthz() -> Response:
    """The process answers."""
    return answer({"status": "ok"})


@router.get("/readyz")
async def readyz(request: Request, house: TheHouse) -> Response:
    """The database answers too."""
    try:
        async with asyncio.timeout(READY_SECONDS):
            await keys.list_keys(house.db)
    except TimeoutError:
        return problem(503, "The database does not answer.", {"Retry-After": "5"})
    if request.app.state.closing.is_set():
        return problem(503, "The server is about to stop.", {"Retry-After": "5"})
    return answer({"status": "ready"})


@router.get("/metrics", responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}})
async def metrics(request: Request, house: TheHouse) -> Response:
    """For Prometheus."""
    measures: Measures = request.app.state.measures
    return await measures.show(house)
