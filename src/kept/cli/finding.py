"""Finding: ``search``."""

import typer

from kept.cli import options, show
from kept.cli.command import Call
from kept.service import finding


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
        by = runtime.searches_by()
        hits = await finding.search(
            runtime.db,
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
            by=by,
        )
        meant = None if hits else await finding.did_you_mean(runtime.db, text, labels=source or (), version=version)
        missing = sum((await finding.vectors_missing(runtime.db, source or ())).values()) if by else 0
    if call.as_json:
        lacking = {"vectors_missing": missing} if by else {}
        call.answer({"query": text, "hits": [hit.as_json() for hit in hits], "did_you_mean": meant, **lacking})
    else:
        show.hits(call.out, hits, text, meant)
    if missing:
        call.err.line(f"Sections without a vector so far: {missing:,}. Only their words find them.")
