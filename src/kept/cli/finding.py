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
        hits = await finding.search(runtime.db, text, labels=source or (), limit=limit, generation=generation)
    if call.as_json:
        call.answer({"query": text, "hits": [hit.as_json() for hit in hits]})
    else:
        show.hits(call.out, hits, text)
