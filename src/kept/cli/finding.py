"""Finding: ``search``."""

import typer

from kept.cli import options
from kept.cli.command import Call
from kept.cli.show import hits as show
from kept.service import finding, shapes


async def search(
    context: typer.Context,
    query: options.Query,
    source: options.Sources = None,
    limit: options.Limit = 10,
    generation: options.AsOf = None,
    version: options.OfVersion = None,
    path: options.Below = "",
    kind: options.Kind = "text",
    language: options.Language = "",
    around: options.Around = None,
    budget: options.Budget = None,
) -> None:
    """Find sections, best first.

    \b
    kept search connection pool
    kept search '"connection pool" -mysql' --source django@5.2
    kept search timeout --source django@5.2 --generation 3
    kept search useState --source react --version ^18 --kind code
    """
    call: Call = context.obj
    text = " ".join(query)
    async with call.open() as runtime:
        found = await finding.find(
            runtime,
            text,
            labels=source or (),
            limit=limit,
            generation=generation,
            version=version,
            path=path,
            kind=kind,
            language=language,
            context=around,
            budget=budget,
        )
    if call.as_json:
        call.answer(shapes.search(found))
    else:
        show.hits(call.out, found.hits, text, found.did_you_mean)
    if found.vectors_missing:
        call.err.line(f"Sections without a vector so far: {found.vectors_missing:,}. Only their words find them.")
    if found.not_reranked:
        call.err.line(f"{found.not_reranked} The hits are in the order they were found in.")
