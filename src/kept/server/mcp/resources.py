"""Resources: a kept page as docs://{source}/{path}; the path is relative to the root of the source."""

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
from kept.service.context import share_snapshot

# Paths are only compared with URLs of kept pages, so any path is safe; one that begins with / is relative to the site.
_ANY_PATH = ResourceSecurity(exempt_params={"path"})


def register(registry: ToolRegistry) -> None:
    db = registry.services.db

    @registry.server.resource(
        "docs://{source}/{+path}",
        name="page",
        title="A kept page",
        description="A kept page: the name of its source, and its path relative to the root of the source.",
        mime_type="text/markdown",
        security=_ANY_PATH,
    )
    async def page(source: str, path: str) -> str:
        try:
            async with share_snapshot(db) as snapshot:
                owner = (await sources.show_source(snapshot, source)).source
                root = owner.root if owner.root.endswith("/") or owner.kind == "web" else f"{owner.root}/"
                document = serializers.document(await documents.read_document(snapshot, urljoin(root, path)))
            if (document["source"], document["version"]) != (owner.name, owner.version):
                raise NotFound(f"{owner.label} has no page {path}. 'kept search' finds what is kept.")
        except KeptError as error:
            raise ResourceNotFoundError(error_text(error)) from None
        head = f"{document['title']}\nurl: {document['url']}\n{formatting.format_provenance(document)}"
        return wrap_untrusted(f"{head}\n\n{document['markdown']}")

    async def complete(ref: Any, argument: CompletionArgument, context: Any) -> Completion | None:
        if argument.name != "source":
            return None
        labels = [view.source.label for view in await sources.list_sources(db)]
        return Completion(values=[label for label in labels if label.startswith(argument.value)][:100])

    completion: Any = registry.server.completion  # untyped in the SDK
    completion()(complete)
