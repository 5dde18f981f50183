"""``set``."""

import typer

from kept.cli import options as opt
from kept.cli.command import CliContext
from kept.cli.source_options import with_source_options
from kept.errors import InvalidInput
from kept.service.source_options import SourceOptions


@with_source_options
async def set_(context: typer.Context, name: opt.SourceArgument, *, options: SourceOptions) -> None:
    """Change settings of a source, from its next crawl on.

    An empty text clears a setting: --include '', --header 'Authorization:'.

    \b
    kept set django@5.2 --exclude 'releases/*'
    kept set wiki --header 'Authorization: Bearer env:TOKEN'
    """
    from kept.service import sources
    from kept.service.access import OWNER

    cli: CliContext = context.obj
    if not options:
        raise InvalidInput("Say what to change. See 'kept set --help'.")
    async with cli.open_runtime() as runtime:
        await sources.change_settings(runtime.services, OWNER, name, options)
        view = await sources.show_source(runtime.db, name, runtime.services.schedule_policy)
        is_idle = "schedule" in options.names and not await sources.is_schedule_obeyed(runtime.db)
    if cli.as_json:
        from kept.service import serializers

        cli.print_json(serializers.source(view))
    else:
        cli.out.line(f"{view.source.label} is set; it holds from the next crawl on.")
    if is_idle and view.source.settings.schedule:
        cli.err.line("Nothing runs now that would obey its schedule: keep 'kept serve' or 'kept worker' running.")
