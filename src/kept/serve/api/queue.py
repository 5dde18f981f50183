"""The two addresses of the queue's own design."""

from fastapi import APIRouter, Response

from kept.serve.answers import TheAsker, TheHouse, answer
from kept.serve.api import models
from kept.serve.api.models import Id, told
from kept.serve.api.once import OnceKey, once
from kept.service import asking, crawls, shapes, wishing
from kept.service.given import Given

router = APIRouter(tags=["queue"])


@router.post("/knowledge-items/crawl", status_code=202, responses=told(models.Queued, 202, "The job."))
async def crawl(body: models.KnowledgeItem, house: TheHouse, asker: TheAsker, key: OnceKey = None) -> Response:
    """Keeps a site, or refreshes it."""
    given = Given(max_depth=body.max_depth, tag=body.tags)
    wish = wishing.understand(body.url, given, asker.caller)
    _, _, job = await asking.add(
        house, asker, wish, priority=body.priority, once=once(key, "POST /knowledge-items/crawl", body)
    )
    return answer({"job_id": job.id, "progress_id": job.id}, 202)


@router.get("/crawl-progress/{id}", responses=told(models.CrawlProgress))
async def crawl_progress(id: Id, house: TheHouse) -> Response:
    """How a crawl stands."""
    job = shapes.job(await crawls.show_job(house.db, id))
    return answer({"progress_id": job["id"], "progress_percentage": job["progress"]["percent"], **job})
