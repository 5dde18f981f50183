"""``why``."""

import typer

from kept.cli import options
from kept.cli.command import CliContext
from kept.cli.views import ledger as show
from kept.service import ledger, serializers


async def why(
    context: typer.Context, what: options.PageOrSourceArgument, limit: options.ExampleLimitOption = 5
) -> None:
    """Say what the last crawl made of a page, and why. Of a source: every page that was not kept.

    \b
    kept why https://docs.example.com/guide/old.html
    kept why django@5.2 --limit 20
    """
    cli: CliContext = context.obj
    async with cli.open_runtime() as runtime:
        if await ledger.is_source_label(runtime.db, what) or not set(what) & set(":/."):
            found = await ledger.summarize_not_kept(runtime.db, what, examples=limit)
            if cli.as_json:
                cli.print_json(serializers.ledger_summary(found))
            else:
                show.print_not_kept(cli.out, found)
            return
        entries = await ledger.explain_url(runtime.db, what, runtime.services.why_excluded)
    if cli.as_json:
        cli.print_json(serializers.ledger_entries(entries))
    else:
        show.print_outcomes(cli.out, entries)
