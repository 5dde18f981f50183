"""Tools for reading: search_docs, read_doc, fetch_url, why_missing."""

from typing import Annotated, Any

from mcp.server.mcpserver import Context
from mcp_types import CallToolResult
from pydantic import Field

from kept.errors import InvalidInput
from kept.model.search_request import ContextKind, HitKind, SearchRequest
from kept.server.mcp import formatting
from kept.server.mcp.registry import READ_ONLY, READ_ONLY_OPEN_WORLD, ToolRegistry, tool_result
from kept.server.mcp.untrusted import UNTRUSTED_NOTICE, truncate
from kept.service import documents, ledger, previews, search, serializers
from kept.service.source_options import SourceOptions

CHARACTERS_PER_TOKEN = 4  # about
SEARCH_BUDGET_TOKENS = 4_000  # of one answer, unless the agent sets a budget
MAX_READ_CHARACTERS = 32_000  # of one answer
MIN_HIT_CHARACTERS = 500
NO_HITS = "Nothing was found for: {}. Try fewer or other words; list_sources says what is kept."

QueryArg = Annotated[str, Field(description='Words to find; "a phrase" in quotes, -word to exclude it.')]
SourceFilterArg = Annotated[str | None, Field(description="Only this source: its name, or name@version.")]
VersionArg = Annotated[
    str | None, Field(description="Of the source, or of each, the version that fits: 18, ^18, ~18.2, latest.")
]
PathArg = Annotated[str, Field(description="Only pages below this path; * matches any part.")]
KindArg = Annotated[HitKind, Field(description="code: only in code examples.")]
LanguageArg = Annotated[str, Field(description="Only in code examples of this language.")]
ContextArg = Annotated[ContextKind | None, Field(description="The text to return around each hit.")]
BudgetArg = Annotated[
    int | None, Field(ge=100, le=50_000, description="Tokens: as many hits as fit, with their contexts.")
]
LimitArg = Annotated[int, Field(ge=1, le=50, description="How many hits at most.")]
StartArg = Annotated[int, Field(ge=0, description="Begin at this character: next_start of the answer before.")]


def register(registry: ToolRegistry) -> None:
    _register_search(registry)
    _register_read(registry)
    _register_why(registry)


def _register_search(registry: ToolRegistry) -> None:
    services = registry.services

    @registry.tool("Search the documentation", READ_ONLY)
    async def search_docs(
        query: QueryArg,
        source: SourceFilterArg = None,
        version: VersionArg = None,
        limit: LimitArg = 5,
        path: PathArg = "",
        kind: KindArg = "text",
        language: LanguageArg = "",
        context: ContextArg = None,
        budget: BudgetArg = None,
    ) -> Annotated[CallToolResult, formatting.SearchDocsResult]:
        """Find the sections of the kept documentation that answer a question, best first, with their text."""
        found = await search.run_search(
            services,
            SearchRequest(
                text=query,
                labels=(source,) if source else (),
                version=version,
                limit=limit,
                path=path,
                kind=kind,
                language=language,
                context=context,
                budget=SEARCH_BUDGET_TOKENS if context and budget is None else budget,
            ),
        )
        result = serializers.search(found)
        hits = _fit_to_budget((budget or SEARCH_BUDGET_TOKENS) * CHARACTERS_PER_TOKEN, result["hits"])
        spelling = f"Searched for: {found.did_you_mean}\n\n" if found.did_you_mean else ""
        if hits:
            return tool_result(result | {"hits": hits}, untrusted=spelling + formatting.format_hits(hits))
        return tool_result(result | {"notice": UNTRUSTED_NOTICE}, text=NO_HITS.format(found.query), untrusted=spelling)


def _register_read(registry: ToolRegistry) -> None:
    services = registry.services

    @registry.tool("Read a page", READ_ONLY)
    async def read_doc(
        url: Annotated[
            str | None, Field(description="The page's URL, as in a hit; its #anchor names a section.")
        ] = None,
        document: Annotated[str | None, Field(description="The document's id, instead of its URL.")] = None,
        section: Annotated[str | None, Field(description="Only this section: its anchor.")] = None,
        generation: Annotated[int | None, Field(ge=1, description="As an earlier generation had it.")] = None,
        start: StartArg = 0,
    ) -> Annotated[CallToolResult, formatting.ReadDocResult]:
        """Read a kept page, or one section of it, as Markdown. A long one comes in parts."""
        what = url or document
        if what is None or (url and document):
            raise InvalidInput("Name the page to read: either its url or the id of its document.")
        view = await documents.read_document(
            services.db, what, section=section, generation=generation, rules=services.lifecycle_rules
        )
        result = serializers.document(view)
        result |= _slice_markdown(result["markdown"], start)
        head = f"{result['title']}\nurl: {result['url']}\n{formatting.format_provenance(result)}"
        return tool_result(result, untrusted=f"{head}\n\n{result['markdown']}", hint=_continuation_hint(result))

    @registry.tool("Fetch a page that is not kept", READ_ONLY_OPEN_WORLD)
    async def fetch_url(
        url: Annotated[str, Field(description="The page's URL.")], context: Context[Any, Any], start: StartArg = 0
    ) -> Annotated[CallToolResult, formatting.FetchUrlResult]:
        """Fetch one page from the web, now, and read it as Markdown. Nothing is kept; add_source keeps."""
        principal = registry.principal_for(context)
        found = await previews.preview_page(services, principal, url, SourceOptions())
        preview = serializers.page_preview(found)
        result = preview | {"links": preview["links"][:50]} | _slice_markdown(preview["markdown"], start)
        head = f"{result['title'] or ''}\nurl: {result['url']}\nfetched just now"
        return tool_result(result, untrusted=f"{head}\n\n{result['markdown']}", hint=_continuation_hint(result))


def _register_why(registry: ToolRegistry) -> None:
    services = registry.services

    @registry.tool("Ask why a page is missing", READ_ONLY)
    async def why_missing(
        url: Annotated[str, Field(description="The page's URL.")],
    ) -> Annotated[CallToolResult, formatting.WhyMissingResult]:
        """Explain the outcome of a URL in the last crawl, and why it is missing."""
        result = serializers.ledger_entries(await ledger.explain_url(services.db, url, services.why_excluded))
        lines = [
            f"{entry['source']}: {entry['outcome'] or 'not visited yet'}"
            + (f": {entry['reason']}" if entry["reason"] else "")
            + (f" (found on {entry['discovered_from']})" if entry["discovered_from"] else "")
            for entry in (result, *result["others"])
        ]
        return tool_result(result, untrusted="\n".join((result["url"], *lines)))


def _fit_to_budget(budget: int, hits: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Truncate the texts of the hits so that they fit; the best hits get most. ``budget`` is in characters."""
    left, shown = budget, []
    for number, hit in enumerate(hits, 1):
        reserved = MIN_HIT_CHARACTERS * (len(hits) - number)
        text = truncate(hit["text"], max(MIN_HIT_CHARACTERS, left - reserved))
        left -= len(text)
        shown.append(hit | {"text": text, "truncated": len(text) < len(hit["text"].rstrip())})
    return shown


def _slice_markdown(markdown: str, start: int) -> dict[str, Any]:
    """Return the part that fits into one answer, and where the next one begins."""
    text = truncate(markdown[start:], MAX_READ_CHARACTERS)
    end = start + len(text)
    return {"markdown": text, "next_start": end if markdown[end:].strip() else None}


def _continuation_hint(result: dict[str, Any]) -> str:
    start = result["next_start"]
    return f"There is more: call again with start {start}, or for one section." if start else ""
