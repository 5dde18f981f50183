"""A source's past: ``generations``, ``diff``, ``changes``, ``rollback``. What waits: ``activate``, ``discard``."""

from datetime import UTC, datetime

import typer

from kept.cli import options
from kept.cli.command import Call
from kept.cli.show import differences
from kept.cli.show import generations as show
from kept.model.duration import parse_since
from kept.service import changes as feed
from kept.service import comparing, shapes
from kept.service import generations as past


async def generations(context: typer.Context, name: options.Name) -> None:
    """List a source's generations.

    \b
    kept generations django@5.2
    """
    call: Call = context.obj
    async with call.open() as runtime:
        source, found = await past.list_generations(runtime.db, name)
    if call.as_json:
        call.answer(shapes.generations(source, found))
    else:
        show.generations(call.out, source, found)


async def diff(
    context: typer.Context,
    name: options.Name,
    a: options.FromGeneration,
    b: options.ToGeneration,
    document: options.OneDocument = None,
) -> None:
    """Show what differs between two generations: of a source, or of one document, line by line.

    \b
    kept diff django@5.2 3 4
    kept diff django@5.2 3 4 https://docs.djangoproject.com/en/5.2/intro/
    """
    call: Call = context.obj
    async with call.open() as runtime:
        if document is not None:
            found = await comparing.document_diff(runtime.db, document, a, b, label=name, rules=runtime.rules)
            if call.as_json:
                call.answer(shapes.document_diff(found))
            else:
                differences.document_diff(call.out, found)
            return
        difference = await past.diff(runtime.db, name, a, b, runtime.rules)
    if call.as_json:
        call.answer(shapes.diff(difference))
    else:
        differences.diff(call.out, difference)


async def changes(
    context: typer.Context,
    name: options.AnyName = None,
    since: options.Since = None,
    limit: options.MostChanges = 100,
    cursor: options.Cursor = None,
) -> None:
    """Tell what became of documents, the latest first: added, changed, moved, removed, restored.

    \b
    kept changes --since 2d
    kept changes django@5.2 --since 2026-11-01
    """
    call: Call = context.obj
    moment = parse_since(since, datetime.now(UTC)) if since else None
    async with call.open() as runtime:
        found = await feed.changes(runtime.db, name, since=moment, limit=limit, cursor=cursor)
    if call.as_json:
        call.answer(shapes.changes(found))
    else:
        differences.changes(call.out, found)


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
    """Make a held generation live: its losses are right.

    \b
    kept diff django@5.2 3 4             what it would lose
    kept activate django@5.2
    """
    call: Call = context.obj
    async with call.open() as runtime:
        number = await past.activate_held(runtime.db, name, runtime.rules)
    if call.as_json:
        call.answer({"source": name, "generation": number, "state": "active"})
    else:
        call.out.line(f"{name}: generation {number} is live.")


async def discard(context: typer.Context, name: options.Name) -> None:
    """Give a held generation up: what was live stays live.

    \b
    kept discard django@5.2
    """
    call: Call = context.obj
    async with call.open() as runtime:
        number = await past.discard_held(runtime.db, name)
    if call.as_json:
        call.answer({"source": name, "generation": number, "state": "abandoned"})
    else:
        call.out.line(f"{name}: generation {number} is discarded.")
