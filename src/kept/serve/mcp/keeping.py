"""What is kept: list_sources, find_version, what_changed; add_source, refresh_source, remove_source."""

from typing import Annotated, Any

from mcp.server.mcpserver import Context
from mcp_types import CallToolResult
from pydantic import Field

from kept.model.source import label_of
from kept.serve.mcp import answers, versions
from kept.serve.mcp.crawling import Wait, follow
from kept.serve.mcp.door import ADDING, GIVING_UP, READING, Door, answer
from kept.serve.mcp.envelope import clean, enclosed
from kept.service import asking, shapes, sources, wishing
from kept.service.given import Given

Named = Annotated[str, Field(description="The source: its name, or name@version.")]
Texts = list[str] | None

CHANGES_SHOWN = 100  # of each kind


def offer(door: Door) -> None:
    _offer_reading(door)
    _offer_adding(door)
    house = door.house

    @door.tool("Remove a source", GIVING_UP)
    async def remove_source(source: Named) -> Annotated[CallToolResult, answers.Removed]:
        """Remove a source and everything kept of it. Ask the person first: it cannot be undone."""
        removed = await asking.remove(house, source, door.uploads)
        return answer(f"{removed.label} is removed.", {"source": removed.label, "removed": True})


def _offer_reading(door: Door) -> None:
    house = door.house

    @door.tool("List what is kept", READING)
    async def list_sources() -> Annotated[CallToolResult, answers.Sources]:
        """List the documentation that is kept: names, versions, how large and how fresh each is."""
        found = [shapes.source(view) for view in await sources.list_sources(house.db)]
        for one in found:
            del one["settings"]  # an agent would pay for it and has no use for it
        return answer(clean(answers.sources(found)), {"sources": found})

    @door.tool("Find the version to use", READING)
    async def find_version(
        source: Annotated[str, Field(description="The name of the source, without a version.")],
        target: Annotated[str, Field(description="The version that is wanted, such as 5.2.1, 5 or 5.x.")],
    ) -> Annotated[CallToolResult, answers.BestVersion]:
        """Find the kept version of a source that fits best to the version somebody uses."""
        shape = await versions.find_version(house, source, target)
        if shape["best"] is None:
            told = f"No version of {source} fits to {target}."
        else:
            told = f"Use {label_of(source, shape['best'])}."
        kept = ", ".join(one or "one without a label" for one in shape["versions"])
        return answer(clean(f"{told} Versions that are kept: {kept}."), shape)

    @door.tool("See what changed", READING)
    async def what_changed(
        source: Named,
        since: Annotated[
            str | None, Field(description="A moment (2026-11-01) or how long ago (7d). Else: the last change.")
        ] = None,
    ) -> Annotated[CallToolResult, answers.Changes]:
        """Say which pages of a source were added, removed, changed or moved."""
        shape = await versions.what_changed(house, source, since)
        kinds = ("added", "removed", "changed", "moved")
        shape |= {"counts": {kind: len(shape[kind]) for kind in kinds}}
        shape |= {kind: shape[kind][:CHANGES_SHOWN] for kind in kinds}
        return answer(enclosed(answers.changes(shape)), shape)


def _offer_adding(door: Door) -> None:
    house = door.house

    @door.tool("Keep documentation", ADDING)
    async def add_source(
        root: Annotated[str, Field(description="Where it begins: https://docs.example.com/guide/")],
        context: Context[Any, Any],
        name: Annotated[str | None, Field(description="What to call it; else a name is made from the root.")] = None,
        version: Annotated[str | None, Field(description="Which version of it this is, such as 5.2.")] = None,
        max_pages: Annotated[int | None, Field(ge=1, description="Keep no more pages than these.")] = None,
        max_depth: Annotated[int | None, Field(ge=0, description="Follow no more links in a row.")] = None,
        scope: Annotated[Texts, Field(description="What belongs to it: folder, host, or beginnings of URLs.")] = None,
        include: Annotated[Texts, Field(description="Only these paths (globs).")] = None,
        exclude: Annotated[Texts, Field(description="Not these paths (globs).")] = None,
        tag: Annotated[Texts, Field(description="Words to tell sources apart by.")] = None,
        schedule: Annotated[str | None, Field(description="Refresh it by itself: 6h, 1d, auto.")] = None,
        wait: Wait = 30,
    ) -> Annotated[CallToolResult, answers.Crawl]:
        """Keep a documentation site: crawl it now, so that search_docs finds it. The same root again is a refresh."""
        given = Given(
            max_pages=max_pages,
            max_depth=max_depth,
            scope=scope,
            include=include,
            exclude=exclude,
            tag=tag,
            schedule=schedule,
        )
        asker = door.asker(context)
        wish = wishing.understand(root, given, asker.caller)
        house.check(wish.kind, wish.root, wish.settings)
        await house.look_at_root(wish.kind, wish.root, wish.settings)
        made, _, job = await asking.add(house, asker, wish, name=name, version=version)
        return await follow(house, made, job, wait, context)

    @door.tool("Bring a source up to date", ADDING)
    async def refresh_source(
        source: Named, context: Context[Any, Any], wait: Wait = 30
    ) -> Annotated[CallToolResult, answers.Crawl]:
        """Crawl a source again; only what changed is read."""
        known = (await sources.show_source(house.db, source)).source
        job = await asking.crawl(house, door.asker(context), known.label)
        return await follow(house, known, job, wait, context)
