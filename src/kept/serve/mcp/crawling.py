"""Crawls: list_jobs, get_job, cancel_job; following one."""

import asyncio
import time
from typing import Annotated, Any

from mcp.server.mcpserver import Context
from mcp_types import CallToolResult
from pydantic import Field

from kept.model.job import CrawlJob, JobStatus
from kept.model.source import Source
from kept.serve.mcp import answers
from kept.serve.mcp.door import GIVING_UP, READING, Door, answer
from kept.serve.mcp.envelope import clean
from kept.service import crawls, generations, shapes
from kept.service.house import House

LOOK_SECONDS = 0.25

Wait = Annotated[
    float, Field(ge=0, le=600, description="How many seconds to wait for the crawl to end; 0 only asks for it.")
]
JobId = Annotated[str, Field(description="The job's id, or how it begins.")]


def offer(door: Door) -> None:
    db = door.house.db

    @door.tool("List crawls", READING)
    async def list_jobs(
        status: Annotated[str | None, Field(description="Only these: pending, processing, paused …")] = None,
        limit: Annotated[int, Field(ge=1, le=50)] = 10,
    ) -> Annotated[CallToolResult, answers.Jobs]:
        """List crawls, the latest first, with how far each is."""
        found = [shapes.job(view) for view in await crawls.list_jobs(db, status=status, limit=limit)]
        text = "\n".join(map(answers.job, found)) or "There are no such crawls. add_source makes one."
        return answer(clean(text), {"jobs": found})

    @door.tool("Show a crawl", READING)
    async def get_job(job: JobId) -> Annotated[CallToolResult, answers.Job]:
        """Show how far a crawl is, or how it ended."""
        shape = shapes.job(await crawls.show_job(db, job))
        return answer(clean(answers.job(shape)), shape)

    @door.tool("Cancel a crawl", GIVING_UP)
    async def cancel_job(job: JobId) -> Annotated[CallToolResult, answers.Job]:
        """Give a crawl up. What was live before stays live."""
        shape = shapes.job(await crawls.cancel_job(db, job))
        return answer(clean(answers.job(shape)), shape)


async def follow(
    house: House, source: Source, job: CrawlJob, wait: float, context: "Context[Any, Any]"
) -> CallToolResult:
    """Follows a crawl for so long, telling how it goes. How it stands then."""
    began = time.monotonic()
    while job.status in (JobStatus.PENDING, JobStatus.PROCESSING) and time.monotonic() - began < wait:
        await asyncio.sleep(LOOK_SECONDS)
        before, job = job, await crawls.get_job(house.db, job.id)
        if job.progress != before.progress or job.status != before.status:
            await _tell(source.label, job, context)
    _, made = await generations.list_generations(house.db, source.label)
    ended = job.status is JobStatus.COMPLETED
    generation = next((one for one in made if ended and one.number == job.generation), None)
    shape = shapes.crawl(source.label, job, generation, time.monotonic() - began)
    return answer(clean(answers.crawl(shape)), shape)


async def _tell(label: str, job: CrawlJob, context: "Context[Any, Any]") -> None:
    progress = job.progress
    told = f"{label}: {progress.done} of {progress.discovered} pages"
    await context.report_progress(progress.done, progress.discovered or None, told)
