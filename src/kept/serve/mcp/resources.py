"""Resources: a kept page as docs://{source}/{path}, its path being what follows the root of its source."""

from typing import Any
from urllib.parse import urljoin

from mcp.server.mcpserver.exceptions import ResourceNotFoundError
from mcp.server.mcpserver.resources import ResourceSecurity
from mcp_types import Completion, CompletionArgument

from kept.errors import KeptError, NoSuchThing
from kept.serve.mcp import answers
from kept.serve.mcp.door import Door, sentence
from kept.serve.mcp.envelope import enclosed
from kept.service import reading, shapes, sources

# A path is compared with the URLs of kept pages and opens nothing: one that begins with / is of the whole site.
_COMPARED = ResourceSecurity(exempt_params={"path"})


def offer(door: Door) -> None:
    db = door.house.db

    @door.server.resource(
        "docs://{source}/{+path}",
        name="page",
        title="A kept page",
        description="A page as it is kept: the name of its source, and what follows the root in its URL.",
        mime_type="text/markdown",
        security=_COMPARED,
    )
    async def page(source: str, path: str) -> str:
        try:
            kept = (await sources.show_source(db, source)).source
            root = kept.root if kept.root.endswith("/") or kept.kind == "web" else f"{kept.root}/"
            found = shapes.page(await reading.read(db, urljoin(root, path)))
            if (found["source"], found["version"]) != (kept.name, kept.version):
                raise NoSuchThing(f"{kept.label} has no page {path}. 'kept search' finds what is kept.")
        except KeptError as error:
            raise ResourceNotFoundError(sentence(error)) from None
        head = f"{found['title']}\nurl: {found['url']}\n{answers.provenance(found)}"
        return enclosed(f"{head}\n\n{found['markdown']}")

    async def complete(ref: Any, argument: CompletionArgument, context: Any) -> Completion | None:
        if argument.name != "source":
            return None
        labels = [view.source.label for view in await sources.list_sources(db)]
        return Completion(values=[label for label in labels if label.startswith(argument.value)][:100])

    offered: Any = door.server.completion  # the SDK gives it no type
    offered()(complete)
