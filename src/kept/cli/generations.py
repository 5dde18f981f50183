"""``generations``, ``diff``, ``changes``, ``rollback``, ``activate`` and ``discard``."""

from datetime import UTC, datetime

import typer

from kept.cli import options
from kept.cli.command import CliContext
from kept.cli.views import diffs
from kept.cli.views import generations as show
from kept.model.duration import parse_since
from kept.service import changes as feed
from kept.service import document_diff, serializers
from kept.service import generations as past


async def generations(context: typer.Context, name: options.SourceArgument) -> None:
    """List a source's generations.

    \b
    kept generations django@5.2
    """
    cli: CliContext = context.obj
    async with cli.open_runtime() as runtime:
        source, found = await past.list_generations(runtime.db, name)
    if cli.as_json:
        cli.print_json(serializers.generations(source, found))
    else:
        show.print_generations(cli.out, source, found)


async def diff(
    context: typer.Context,
    name: options.SourceArgument,
    a: options.FromGenerationArgument,
    b: options.ToGenerationArgument,
    document: options.OptionalDocumentArgument = None,
) -> None:
    """Show what differs between two generations: of a source, or of one document, line by line.

    \b
    kept diff django@5.2 3 4
    kept diff django@5.2 3 4 https://docs.djangoproject.com/en/5.2/intro/
    """
    cli: CliContext = context.obj
    async with cli.open_runtime() as runtime:
        if document is not None:
            found = await document_diff.diff_document(
                runtime.db, document, a, b, label=name, rules=runtime.services.lifecycle_rules
            )
            if cli.as_json:
                cli.print_json(serializers.document_diff(found))
            else:
                diffs.print_document_diff(cli.out, found)
            return
        difference = await past.diff_generations(runtime.db, name, a, b, runtime.services.lifecycle_rules)
    if cli.as_json:
        cli.print_json(serializers.diff(difference))
    else:
        diffs.print_diff(cli.out, difference)


async def changes(
    context: typer.Context,
    name: options.OptionalSourceArgument = None,
    since: options.SinceOption = None,
    limit: options.ChangeLimitOption = 100,
    cursor: options.CursorOption = None,
) -> None:
    """Tell what became of documents, the latest first: added, changed, moved, removed, restored.

    \b
    kept changes --since 2d
    kept changes django@5.2 --since 2026-11-01
    """
    cli: CliContext = context.obj
    moment = parse_since(since, datetime.now(UTC)) if since else None
    async with cli.open_runtime() as runtime:
        found = await feed.list_changes(runtime.db, name, since=moment, limit=limit, cursor=cursor)
    if cli.as_json:
        cli.print_json(serializers.changes(found))
    else:
        diffs.print_changes(cli.out, found)


async def rollback(
    context: typer.Context, name: options.SourceArgument, number: options.GenerationNumberArgument
) -> None:
    """Go back to what an earlier generation showed.

    It becomes a new generation, so this can be undone in the same way.

    \b
    kept rollback django@5.2 3
    """
    cli: CliContext = context.obj
    async with cli.open_runtime() as runtime:
        made = await past.roll_back(runtime.db, name, number)
    if cli.as_json:
        cli.print_json({"source": name, "generation": made, "rolled_back_to": number})
    else:
        cli.out.line(f"{name}: generation {made} is active: it shows what generation {number} showed.")


async def activate(context: typer.Context, name: options.SourceArgument) -> None:
    """Activate a held generation: its losses are intended.

    \b
    kept diff django@5.2 3 4             what it would lose
    kept activate django@5.2
    """
    cli: CliContext = context.obj
    async with cli.open_runtime() as runtime:
        number = await past.activate_held(runtime.db, name, runtime.services.lifecycle_rules)
    if cli.as_json:
        cli.print_json({"source": name, "generation": number, "state": "active"})
    else:
        cli.out.line(f"{name}: generation {number} is active.")


async def discard(context: typer.Context, name: options.SourceArgument) -> None:
    """Give a held generation up: what was active stays active.

    \b
    kept discard django@5.2
    """
    cli: CliContext = context.obj
    async with cli.open_runtime() as runtime:
        number = await past.discard_held(runtime.db, name)
    if cli.as_json:
        cli.print_json({"source": name, "generation": number, "state": "abandoned"})
    else:
        cli.out.line(f"{name}: generation {number} is discarded.")
