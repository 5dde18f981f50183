"""What is kept: list_sources, find_version, what_changed; add_source, refresh_source, remove_source."""

from typing import Annotated, Any

from mcp.server.mcpserver import Context
from mcp_types import CallToolResult
from pydantic import Field

from kept.model.source import format_label
from kept.server.mcp import formatting, versions
from kept.server.mcp.jobs import WaitArg, wait_for_crawl
from kept.server.mcp.registry import ADDITIVE, DESTRUCTIVE, READ_ONLY, ToolRegistry, tool_result
from kept.server.mcp.untrusted import clean_text, wrap_untrusted
from kept.service import serializers, sources, uploads
from kept.service.source_options import SourceOptions
from kept.service.source_request import SourceRequest

SourceArg = Annotated[str, Field(description="The source: its name, or name@version.")]
StringListArg = list[str] | None

MAX_CHANGES_SHOWN = 100  # of each kind


def register(registry: ToolRegistry) -> None:
    _register_read_tools(registry)
    _register_crawl_tools(registry)
    house = registry.services

    @registry.tool("Remove a source", DESTRUCTIVE)
    async def remove_source(source: SourceArg) -> Annotated[CallToolResult, formatting.RemoveSourceResult]:
        """Remove a source and everything kept of it. Ask the person first: it cannot be undone."""
        removed = await uploads.remove_source_and_upload(house, source, registry.uploads_folder)
        return tool_result(f"{removed.label} is removed.", {"source": removed.label, "removed": True})


def _register_read_tools(registry: ToolRegistry) -> None:
    house = registry.services

    @registry.tool("List what is kept", READ_ONLY)
    async def list_sources() -> Annotated[CallToolResult, formatting.ListSourcesResult]:
        """List the documentation that is kept: names, versions, how large and how fresh each is."""
        found = [serializers.source(view) for view in await sources.list_sources(house.db)]
        for one in found:
            del one["settings"]  # an agent would pay for it and has no use for it
        return tool_result(clean_text(formatting.format_sources(found)), {"sources": found})

    @registry.tool("Find the version to use", READ_ONLY)
    async def find_version(
        source: Annotated[str, Field(description="The name of the source, without a version.")],
        target: Annotated[str, Field(description="The version that is wanted, such as 5.2.1, 5 or 5.x.")],
    ) -> Annotated[CallToolResult, formatting.FindVersionResult]:
        """Find the kept version of a source that fits best to the version somebody uses."""
        shape = await versions.find_version(house, source, target)
        if shape["best"] is None:
            told = f"No version of {source} fits to {target}."
        else:
            told = f"Use {format_label(source, shape['best'])}."
        kept = ", ".join(one or "one without a label" for one in shape["versions"])
        return tool_result(clean_text(f"{told} Versions that are kept: {kept}."), shape)

    @registry.tool("See what changed", READ_ONLY)
    async def what_changed(
        source: SourceArg,
        since: Annotated[
            str | None, Field(description="A moment (2026-11-01) or how long ago (7d). Else: the last change.")
        ] = None,
    ) -> Annotated[CallToolResult, formatting.WhatChangedResult]:
        """Say which pages of a source were added, removed, changed or moved."""
        shape = await versions.what_changed(house, source, since)
        kinds = ("added", "removed", "changed", "moved")
        shape |= {"counts": {kind: len(shape[kind]) for kind in kinds}}
        shape |= {kind: shape[kind][:MAX_CHANGES_SHOWN] for kind in kinds}
        return tool_result(wrap_untrusted(formatting.format_changes(shape)), shape)


def _register_crawl_tools(registry: ToolRegistry) -> None:
    house = registry.services

    @registry.tool("Keep documentation", ADDITIVE)
    async def add_source(
        root: Annotated[str, Field(description="Where it begins: https://docs.example.com/guide/")],
        context: Context[Any, Any],
        name: Annotated[str | None, Field(description="What to call it; else a name is made from the root.")] = None,
        version: Annotated[str | None, Field(description="Which version of it this is, such as 5.2.")] = None,
        max_pages: Annotated[int | None, Field(ge=1, description="Keep no more pages than these.")] = None,
        max_depth: Annotated[int | None, Field(ge=0, description="Follow no more links in a row.")] = None,
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
        given = SourceOptions(
            max_pages=max_pages,
            max_depth=max_depth,
            scope=scope,
            include=include,
            exclude=exclude,
            tag=tag,
            schedule=schedule,
        )
        asker = registry.principal_for(context)
        request = SourceRequest(root=root, options=given, name=name, version=version)
        added = await sources.add_source(house, asker, request)
        return await wait_for_crawl(house, added.source, added.job, wait, context)

    @registry.tool("Bring a source up to date", ADDITIVE)
    async def refresh_source(
        source: SourceArg, context: Context[Any, Any], wait: WaitArg = 30
    ) -> Annotated[CallToolResult, formatting.CrawlToolResult]:
        """Crawl a source again; only what changed is read."""
        known = (await sources.show_source(house.db, source)).source
        job = await sources.refresh_source(house, registry.principal_for(context), known.label)
        return await wait_for_crawl(house, known, job, wait, context)
