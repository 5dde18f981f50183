"""Reading: ``read`` and ``history``."""

import typer

from kept.cli import options
from kept.cli.command import Call
from kept.cli.show import pages as show
from kept.service import reading, shapes


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
        page = await reading.read(runtime.db, what, section=section, generation=generation, rules=runtime.rules)
    if call.as_json:
        call.answer(shapes.page(page))
        return
    if call.err.is_terminal:
        show.page_origin(call.err, page)
    call.out.text(page.markdown)


async def history(context: typer.Context, what: options.What) -> None:
    """Tell what became of a document: its versions and moves.

    \b
    kept history docs/pool.md
    kept history https://docs.example.com/guide/pool.html
    """
    call: Call = context.obj
    async with call.open() as runtime:
        story = await reading.history(runtime.db, what)
    if call.as_json:
        call.answer(shapes.history(story))
    else:
        show.history(call.out, story)
