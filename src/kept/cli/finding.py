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
) -> None:
    """Find sections, best first.

    \b
    kept search connection pool
    kept search '"connection pool" -mysql' --source django@5.2
    kept search timeout --source django@5.2 --generation 3
    """
    call: Call = context.obj
    text = " ".join(query)
    async with call.open() as runtime:
        by = runtime.searches_by()
        hits = await finding.search(runtime.db, text, labels=source or (), limit=limit, generation=generation, by=by)
        missing = sum((await finding.vectors_missing(runtime.db, source or ())).values()) if by else 0
    if call.as_json:
        lacking = {"vectors_missing": missing} if by else {}
        call.answer({"query": text, "hits": [hit.as_json() for hit in hits], **lacking})
    else:
        show.hits(call.out, hits, text)
    if missing:
        call.err.line(f"Sections without a vector so far: {missing:,}. Only their words find them.")
