"""``search``."""

import typer

from kept.cli import options
from kept.cli.command import CliContext
from kept.cli.views import hits as show
from kept.model.search_request import SearchRequest
from kept.service import serializers
from kept.service.search import run_search


async def search(
    context: typer.Context,
    query: options.QueryArgument,
    source: options.SourceFilterOption = None,
    limit: options.HitLimitOption = 10,
    generation: options.AtGenerationOption = None,
    version: options.VersionFilterOption = None,
    path: options.PathFilterOption = "",
    kind: options.HitKindOption = "text",
    language: options.LanguageOption = "",
    around: options.ContextOption = None,
    budget: options.BudgetOption = None,
) -> None:
    """Find sections, best first.

    \b
    kept search connection pool
    kept search '"connection pool" -mysql' --source django@5.2
    kept search timeout --source django@5.2 --generation 3
    kept search useState --source react --version ^18 --kind code
    kept search git reset --hard             what is no option here is a word
    """
    cli: CliContext = context.obj
    request = SearchRequest(
        text=" ".join(query),
        labels=tuple(source or ()),
        limit=limit,
        generation=generation,
        version=version,
        path=path,
        kind=kind,
        language=language,
        context=around,
        budget=budget,
    )
    async with cli.open_runtime() as runtime:
        found = await run_search(runtime.services, request)
    if cli.as_json:
        cli.print_json(serializers.search(found))
    else:
        show.print_search(cli.out, found)
    if found.vectors_missing:
        cli.err.line(f"Sections without a vector so far: {found.vectors_missing:,}. Only their words find them.")
    if found.not_reranked:
        cli.err.line(f"{found.not_reranked} The hits are in the order they were found in.")


search.takes_any_word = True  # type: ignore[attr-defined]
