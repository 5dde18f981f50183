"""The settings in force: ``config``."""

import typer

from kept.cli.command import Call
from kept.cli.words import without_password
from kept.model.source import parse_reference

SECRET = ("webhooks.url", "webhooks.secret", "embed.key", "rerank.key")  # unless they only say where to find it


async def config(context: typer.Context) -> None:
    """Show every setting, and where its value came from.

    \b
    kept config
    KEPT_CRAWL__GRACE_DAYS=14 kept config --json
    """
    call: Call = context.obj
    came_from = call.settings.came_from
    effective = call.settings.effective() | {"database": without_password(call.settings.database)}
    effective |= {name: "***" for name in SECRET if effective[name] and not parse_reference(effective[name])}
    if call.as_json:
        call.answer({name: {"value": value, "from": came_from[name]} for name, value in effective.items()})
    else:
        call.out.table([[(name, "bold"), str(value), (came_from[name], "dim")] for name, value in effective.items()])
