"""What is kept: ``list``, ``show`` and ``remove``."""

import typer

from kept.cli import options
from kept.cli.command import Call
from kept.cli.show import sources as showing
from kept.service import shapes
from kept.service import sources as service


async def list_(context: typer.Context) -> None:
    """List what is kept, and how fresh it is.

    \b
    kept list
    kept list --json
    """
    call: Call = context.obj
    async with call.open() as runtime:
        views = await service.list_sources(runtime.db)
    if call.as_json:
        call.answer({"sources": [shapes.source(view) for view in views]})
    else:
        showing.sources(call.out, views)


async def show(context: typer.Context, name: options.Name) -> None:
    """Show one source: its state, its settings, its last crawl.

    \b
    kept show django@5.2
    """
    call: Call = context.obj
    async with call.open() as runtime:
        view = await service.show_source(runtime.db, name, runtime.rhythm)
    if call.as_json:
        call.answer(shapes.source(view) | shapes.learned(view))
    else:
        showing.source(call.out, view)


async def remove(context: typer.Context, name: options.Name) -> None:
    """Remove a source. The files it was made from stay.

    \b
    kept remove django@4.2
    """
    call: Call = context.obj
    async with call.open() as runtime:
        source = await service.remove_source(runtime.db, name, runtime.secrets)
    if call.as_json:
        call.answer({"source": source.label, "removed": True})
    else:
        call.out.line(f"{source.label} is removed.")
