"""Tools for sources: list_sources, find_version, what_changed, add_source, refresh_source, remove_source."""

from datetime import UTC, datetime
from typing import Annotated, Any

from mcp.server.mcpserver import Context
from mcp_types import CallToolResult
from pydantic import Field

from kept.errors import NotFound
from kept.model.duration import parse_since
from kept.model.generation import Generation
from kept.model.source import format_label
from kept.server.mcp import formatting
from kept.server.mcp.jobs import WaitArg, wait_for_crawl
from kept.server.mcp.registry import ADDITIVE, DESTRUCTIVE, READ_ONLY, ToolRegistry, tool_result
from kept.service import generations, search, serializers, sources, uploads
from kept.service.context import Services, share_snapshot
from kept.service.source_options import SourceOptions
from kept.service.source_request import SourceRequest

SourceArg = Annotated[str, Field(description="The source: its name, or name@version.")]
StringListArg = list[str] | None

MAX_CHANGES_SHOWN = 100  # of each kind


def register(registry: ToolRegistry) -> None:
    _register_read_tools(registry)
    _register_crawl_tools(registry)
    services = registry.services

    @registry.tool("Remove a source", DESTRUCTIVE)
    async def remove_source(source: SourceArg) -> Annotated[CallToolResult, formatting.RemoveSourceResult]:
        """Remove a source and all its documents. Ask the person first: it cannot be undone."""
        removed = await uploads.remove_source_and_upload(services, source, registry.uploads_folder)
        return tool_result({"source": removed.label, "removed": True}, text=f"{removed.label} is removed.")


def _register_read_tools(registry: ToolRegistry) -> None:
    services = registry.services

    @registry.tool("List what is kept", READ_ONLY)
    async def list_sources() -> Annotated[CallToolResult, formatting.ListSourcesResult]:
        """List the documentation that is kept: names, versions, how large and how fresh each is."""
        found = [serializers.source(view) for view in await sources.list_sources(services.db)]
        for source in found:
            del source["settings"]  # costs the agent tokens and is of no use to it
        if not found:
            return tool_result({"sources": []}, text="There are no sources yet. add_source adds one.")
        return tool_result({"sources": found}, untrusted=formatting.format_sources(found))

    @registry.tool("Find the version to use", READ_ONLY)
    async def find_version(
        source: Annotated[str, Field(description="The name of the source, without a version.")],
        target: Annotated[str, Field(description="The version in use, such as 5.2.1, 5 or 5.x.")],
    ) -> Annotated[CallToolResult, formatting.FindVersionResult]:
        """Find the kept version of a source that fits best to the version in use."""
        result = await _find_version(services, source, target)
        if result["best"] is None:
            advice = f"No version of {source} fits to {target}."
        else:
            advice = f"Use {format_label(source, result['best'])}."
        kept = ", ".join(version or "one without a label" for version in result["versions"])
        return tool_result(result, text=f"{advice} Versions that are kept: {kept}.")

    @registry.tool("See what changed", READ_ONLY)
    async def what_changed(
        source: SourceArg,
        since: Annotated[
            str | None, Field(description="A date (2026-11-01) or an age (7d). Default: the last change.")
        ] = None,
    ) -> Annotated[CallToolResult, formatting.WhatChangedResult]:
        """Say which pages of a source were added, removed, changed or moved."""
        result = await _what_changed(services, source, since)
        kinds = ("added", "removed", "changed", "moved")
        result |= {"counts": {kind: len(result[kind]) for kind in kinds}}
        result |= {kind: result[kind][:MAX_CHANGES_SHOWN] for kind in kinds}
        return tool_result(result, untrusted=formatting.format_changes(result))


def _register_crawl_tools(registry: ToolRegistry) -> None:
    services = registry.services

    @registry.tool("Keep documentation", ADDITIVE)
    async def add_source(
        root: Annotated[str, Field(description="Where it begins: https://docs.example.com/guide/")],
        context: Context[Any, Any],
        name: Annotated[str | None, Field(description="What to call it; else a name is made from the root.")] = None,
        version: Annotated[str | None, Field(description="Which version of it this is, such as 5.2.")] = None,
        max_pages: Annotated[int | None, Field(ge=1, description="Keep no more pages than these.")] = None,
        max_depth: Annotated[int | None, Field(ge=0, description="Follow no more links in a row.")] = None,
        no_traps: Annotated[
            bool | None, Field(description="Follow endless calendars and combinations of parameters too.")
        ] = None,
        scope: Annotated[
            StringListArg, Field(description="What belongs to it: folder, host, or beginnings of URLs.")
        ] = None,
        include: Annotated[StringListArg, Field(description="Only these paths (globs).")] = None,
        exclude: Annotated[StringListArg, Field(description="Not these paths (globs).")] = None,
        tag: Annotated[StringListArg, Field(description="Words to tell sources apart by.")] = None,
        schedule: Annotated[str | None, Field(description="Refresh it by itself: 6h, 1d, auto.")] = None,
        wait: WaitArg = 30,
    ) -> Annotated[CallToolResult, formatting.CrawlToolResult]:
        """Keep a documentation site: crawl it now, so that search_docs finds it. The same root again is a refresh."""
        options = SourceOptions(
            max_pages=max_pages,
            max_depth=max_depth,
            no_traps=no_traps,
            scope=scope,
            include=include,
            exclude=exclude,
            tag=tag,
            schedule=schedule,
        )
        request = SourceRequest(root=root, options=options, name=name, version=version)
        added = await sources.add_source(services, registry.principal_for(context), request)
        return await wait_for_crawl(services, added.source, added.job, wait, context)

    @registry.tool("Bring a source up to date", ADDITIVE)
    async def refresh_source(
        source: SourceArg, context: Context[Any, Any], wait: WaitArg = 30
    ) -> Annotated[CallToolResult, formatting.CrawlToolResult]:
        """Crawl a source again; only what changed is read."""
        known = (await sources.show_source(services.db, source)).source
        job = await sources.refresh_source(services, registry.principal_for(context), known.label)
        return await wait_for_crawl(services, known, job, wait, context)


async def _find_version(services: Services, name: str, target: str) -> dict[str, Any]:
    async with share_snapshot(services.db) as snapshot:
        kept = await search.list_versions(snapshot, name)
        try:
            best = (await search.find_version(snapshot, name, target)).version
        except NotFound:
            best = None
    return {"source": name, "target": target, "best": best, "versions": kept}


async def _what_changed(services: Services, label: str, since: str | None) -> dict[str, Any]:
    """Compare the active generation with the one that was active at a moment, by default with the one before."""
    async with share_snapshot(services.db) as snapshot:
        source, found = await generations.list_generations(snapshot, label)
        readable = sorted(
            (item for item in found if item.state.is_readable),
            key=lambda item: item.number,
        )
        if not readable:
            raise NotFound(f"{source.label} has no generation yet. 'kept jobs' shows how its crawl goes.")
        if since:
            first = _generation_at(readable, parse_since(since, datetime.now(UTC)))
        else:
            first = readable[max(0, len(readable) - 2)]
        diff = await generations.diff_generations(
            snapshot, source.label, first.number, readable[-1].number, services.lifecycle_rules
        )
    return serializers.diff(diff)


def _generation_at(readable: list[Generation], moment: datetime) -> Generation:
    """Return the generation that was active at a moment; the first one for a moment before it."""
    before = [item for item in readable if item.activated_at and item.activated_at <= moment]
    return (before or readable[:1])[-1]
