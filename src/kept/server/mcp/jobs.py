"""Tools for crawls: list_jobs, get_job, cancel_job; waiting for one."""

import asyncio
import time
from typing import Annotated, Any

from mcp.server.mcpserver import Context
from mcp_types import CallToolResult
from pydantic import Field

from kept.model.job import CrawlJob
from kept.model.source import Source
from kept.server.mcp import formatting
from kept.server.mcp.registry import DESTRUCTIVE, READ_ONLY, ToolRegistry, tool_result
from kept.service import generations, jobs, serializers
from kept.service.context import Services

POLL_SECONDS = 0.25

WaitArg = Annotated[
    float, Field(ge=0, le=600, description="How many seconds to wait for the crawl to end; 0 returns at once.")
]
JobIdArg = Annotated[str, Field(description="The job's id, or the beginning of it.")]


def register(registry: ToolRegistry) -> None:
    db = registry.services.db

    @registry.tool("List crawls", READ_ONLY)
    async def list_jobs(
        status: Annotated[str | None, Field(description="Only this status: pending, processing, paused …")] = None,
        limit: Annotated[int, Field(ge=1, le=50)] = 10,
    ) -> Annotated[CallToolResult, formatting.ListJobsResult]:
        """List crawls, the newest first, with their progress."""
        found = [serializers.job(view) for view in await jobs.list_jobs(db, status=status, limit=limit)]
        text = "\n".join(map(formatting.format_job, found)) or "There are no such crawls. add_source starts one."
        return tool_result({"jobs": found}, text=text, untrusted=formatting.format_job_errors(found))

    @registry.tool("Show a crawl", READ_ONLY)
    async def get_job(job: JobIdArg) -> Annotated[CallToolResult, formatting.JobToolResult]:
        """Show the progress of a crawl, or how it ended."""
        result = serializers.job(await jobs.show_job(db, job))
        return tool_result(result, text=formatting.format_job(result), untrusted=result["error"] or "")

    @registry.tool("Cancel a crawl", DESTRUCTIVE)
    async def cancel_job(job: JobIdArg) -> Annotated[CallToolResult, formatting.JobToolResult]:
        """Cancel a crawl. The active generation stays active."""
        result = serializers.job(await jobs.cancel_job(db, job))
        return tool_result(result, text=formatting.format_job(result), untrusted=result["error"] or "")


async def wait_for_crawl(
    services: Services, source: Source, job: CrawlJob, timeout: float, context: "Context[Any, Any]"
) -> CallToolResult:
    """Wait for a crawl to end and report its progress meanwhile. Returns its state at the end or after the timeout."""
    started = time.monotonic()
    while job.status.is_queued_or_running and time.monotonic() - started < timeout:
        await asyncio.sleep(POLL_SECONDS)
        before, job = job, await jobs.get_job(services.db, job.id)
        if job.progress != before.progress or job.status != before.status:
            await _report_progress(source.label, job, context)
    generation, removed = await generations.get_crawl_result(services.db, job)
    result = serializers.crawl(source.label, job, generation, time.monotonic() - started, removed)
    reasons = [f"removed {one.count}: {one.reason}" for one in removed]
    untrusted = "\n".join(filter(None, [result["error"], *reasons]))  # both may quote what a site answered
    return tool_result(result, text=formatting.format_crawl(result), untrusted=untrusted)


async def _report_progress(label: str, job: CrawlJob, context: "Context[Any, Any]") -> None:
    progress = job.progress
    message = f"{label}: {progress.done} of {progress.discovered} pages"
    await context.report_progress(progress.done, progress.discovered or None, message)
