"""``list``, ``show``, ``rename`` and ``remove``."""

import typer

from kept.cli import options
from kept.cli.command import CliContext
from kept.cli.views import sources as showing
from kept.service import serializers
from kept.service import sources as service
from kept.service.formatting import pluralize


async def list_(context: typer.Context) -> None:
    """List what is kept, and how fresh it is.

    \b
    kept list
    kept list --json
    """
    cli: CliContext = context.obj
    async with cli.open_runtime() as runtime:
        views = await service.list_sources(runtime.db)
    if cli.as_json:
        cli.print_json({"sources": [serializers.source(view) for view in views]})
    else:
        showing.print_sources(cli.out, views)


async def show(context: typer.Context, name: options.SourceArgument) -> None:
    """Show one source: its state, its settings, its last crawl.

    \b
    kept show django@5.2
    """
    cli: CliContext = context.obj
    async with cli.open_runtime() as runtime:
        view = await service.show_source(runtime.db, name, runtime.services.schedule_policy)
    if cli.as_json:
        cli.print_json(serializers.source(view) | serializers.source_insights(view))
    else:
        showing.print_source(cli.out, view)


async def rename(context: typer.Context, name: options.SourceArgument, new: options.NewNameArgument) -> None:
    """Give a source another name. Its ids, its history, its settings and its schedule stay.

    \b
    kept rename docs django
    kept rename django@5 django@5.2
    """
    cli: CliContext = context.obj
    async with cli.open_runtime() as runtime:
        before = await service.show_source(runtime.db, name)
        source = await service.rename_source(runtime.db, name, new)
    if cli.as_json:
        cli.print_json({"source": source.label, "renamed_from": before.source.label})
    else:
        cli.out.line(f"{before.source.label} is {source.label} now.")


async def remove(context: typer.Context, name: options.SourceArgument, yes: options.YesOption = False) -> None:
    """Remove a source with its history. The files it was made from stay. On a terminal it asks first.

    \b
    kept remove django@4.2
    kept remove django@4.2 --yes
    """
    cli: CliContext = context.obj
    async with cli.open_runtime() as runtime:
        if not yes and cli.can_ask:
            view = await service.show_source(runtime.db, name)
            what = f"{view.source.label} ({pluralize(view.documents, 'document')} of {view.source.root})"
            if not typer.confirm(f"Remove {what} and its history?", default=False, err=True):
                cli.err.line("Nothing was removed.")
                return
        source = await service.remove_source(runtime.db, name, runtime.services.secrets)
    if cli.as_json:
        cli.print_json({"source": source.label, "removed": True})
    else:
        cli.out.line(f"{source.label} is removed.")
