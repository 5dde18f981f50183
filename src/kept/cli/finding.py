"""Finding and reading: ``search``, ``read`` and ``history``."""

import typer

from kept import service
from kept.cli import options, show
from kept.cli.command import Call


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
        hits = await service.search(runtime.db, text, labels=source or (), limit=limit, generation=generation)
    if call.as_json:
        call.answer({"query": text, "hits": [hit.as_json() for hit in hits]})
    else:
        show.hits(call.out, hits, text)


async def read(
    context: typer.Context, what: options.What, generation: options.AsOf = None, section: options.Section = None
) -> None:
    """Print a document, or a section of it, as markdown.

    \b
    kept read docs/pool.md
    kept read docs/pool.md#timeouts
    kept read file:///srv/docs/pool.md --generation 3
    """
    call: Call = context.obj
    async with call.open() as runtime:
        page = await service.read(runtime.db, what, section=section, generation=generation)
    if call.as_json:
        from kept.cli import shapes

        call.answer(shapes.page(page))
        return
    if call.err.is_terminal:
        show.page_origin(call.err, page)
    call.out.text(page.markdown)


async def history(context: typer.Context, what: options.What) -> None:
    """Tell what became of a document: its versions and moves."""
    call: Call = context.obj
    async with call.open() as runtime:
        story = await service.history(runtime.db, what)
    if call.as_json:
        from kept.cli import shapes

        call.answer(shapes.history(story))
    else:
        show.history(call.out, story)
