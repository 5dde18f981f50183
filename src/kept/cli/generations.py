"""A source's past: ``generations``, ``diff``, ``rollback``. What waits for a person: ``activate``, ``discard``."""

import typer

from kept.cli import options, show
from kept.cli.command import Call
from kept.service import generations as past
from kept.service import shapes


async def generations(context: typer.Context, name: options.Name) -> None:
    """List a source's generations."""
    call: Call = context.obj
    async with call.open() as runtime:
        source, found = await past.list_generations(runtime.db, name)
    if call.as_json:
        call.answer(shapes.generations(source, found))
    else:
        show.generations(call.out, source, found)


async def diff(context: typer.Context, name: options.Name, a: options.FromGeneration, b: options.ToGeneration) -> None:
    """Show what differs between two generations.

    \b
    kept diff django@5.2 3 4
    """
    call: Call = context.obj
    async with call.open() as runtime:
        difference = await past.diff(runtime.db, name, a, b, runtime.rules)
    if call.as_json:
        call.answer(shapes.diff(difference))
    else:
        show.diff(call.out, difference)


async def rollback(context: typer.Context, name: options.Name, number: options.Generation) -> None:
    """Go back to what an earlier generation showed.

    It becomes a new generation, so this can be undone in the same way.

    \b
    kept rollback django@5.2 3
    """
    call: Call = context.obj
    async with call.open() as runtime:
        made = await past.roll_back(runtime.db, name, number)
    if call.as_json:
        call.answer({"source": name, "generation": made, "rolled_back_to": number})
    else:
        call.out.line(f"{name}: generation {made} is live: it shows what generation {number} showed.")


async def activate(context: typer.Context, name: options.Name) -> None:
    """Make a held generation live: its losses are right."""
    call: Call = context.obj
    async with call.open() as runtime:
        number = await past.activate_held(runtime.db, name, runtime.rules)
    if call.as_json:
        call.answer({"source": name, "generation": number, "state": "active"})
    else:
        call.out.line(f"{name}: generation {number} is live.")


async def discard(context: typer.Context, name: options.Name) -> None:
    """Give a held generation up: what was live stays live."""
    call: Call = context.obj
    async with call.open() as runtime:
        number = await past.discard_held(runtime.db, name)
    if call.as_json:
        call.answer({"source": name, "generation": number, "state": "abandoned"})
    else:
        call.out.line(f"{name}: generation {number} is discarded.")
