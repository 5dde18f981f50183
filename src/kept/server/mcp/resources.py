"""Resources: a kept page as docs://{source}/{path}, its path being what follows the root of its source."""

from typing import Any
from urllib.parse import urljoin

from mcp.server.mcpserver.exceptions import ResourceNotFoundError
from mcp.server.mcpserver.resources import ResourceSecurity
from mcp_types import Completion, CompletionArgument

from kept.errors import KeptError, NotFound
from kept.server.mcp import formatting
from kept.server.mcp.registry import ToolRegistry, error_text
from kept.server.mcp.untrusted import wrap_untrusted
from kept.service import documents, serializers, sources

# A path is compared with the URLs of kept pages and opens nothing: one that begins with / is of the whole site.
_ANY_PATH = ResourceSecurity(exempt_params={"path"})


def register(registry: ToolRegistry) -> None:
    db = registry.services.db

    @registry.server.resource(
        "docs://{source}/{+path}",
        name="page",
        title="A kept page",
        description="A page as it is kept: the name of its source, and what follows the root in its URL.",
        mime_type="text/markdown",
        security=_ANY_PATH,
    )
    async def page(source: str, path: str) -> str:
        try:
            kept = (await sources.show_source(db, source)).source
            root = kept.root if kept.root.endswith("/") or kept.kind == "web" else f"{kept.root}/"
            found = serializers.document(await documents.read_document(db, urljoin(root, path)))
            if (found["source"], found["version"]) != (kept.name, kept.version):
                raise NotFound(f"{kept.label} has no page {path}. 'kept search' finds what is kept.")
        except KeptError as error:
            raise ResourceNotFoundError(error_text(error)) from None
        head = f"{found['title']}\nurl: {found['url']}\n{formatting.format_provenance(found)}"
        return wrap_untrusted(f"{head}\n\n{found['markdown']}")

    async def complete(ref: Any, argument: CompletionArgument, context: Any) -> Completion | None:
        if argument.name != "source":
            return None
        labels = [view.source.label for view in await sources.list_sources(db)]
        return Completion(values=[label for label in labels if label.startswith(argument.value)][:100])

    offered: Any = registry.server.completion  # the SDK gives it no type
    offered()(complete)
