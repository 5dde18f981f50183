"""``config``."""

import re

import typer

from kept.cli.command import CliContext
from kept.model.source import parse_secret_reference

SECRET_SETTINGS = (
    "webhooks.url",
    "webhooks.secret",
    "embed.key",
    "rerank.key",
)  # unless they only say where to find it


async def config(context: typer.Context) -> None:
    """Show every setting, and where its value came from.

    \b
    kept config
    KEPT_CRAWL__GRACE_DAYS=14 kept config --json
    """
    cli: CliContext = context.obj
    came_from = cli.settings.value_origins
    effective = cli.settings.effective() | {"database": mask_password(cli.settings.database)}
    effective |= {
        name: "***" for name in SECRET_SETTINGS if effective[name] and not parse_secret_reference(effective[name])
    }
    if cli.as_json:
        cli.print_json({name: {"value": value, "from": came_from[name]} for name, value in effective.items()})
    else:
        cli.out.table([[(name, "bold"), str(value), (came_from[name], "dim")] for name, value in effective.items()])


def mask_password(url: str) -> str:
    """Return the URL of a database without its password."""
    shown = re.sub(r"(://[^@/:]*:)[^@]*@", r"\1***@", url)
    return re.sub(r"(password=)[^&]*", r"\1***", shown)
