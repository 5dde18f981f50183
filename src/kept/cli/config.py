"""``config``."""

import re
from pathlib import Path
from typing import Annotated

import typer

from kept.cli.command import CliContext
from kept.model.source import parse_secret_reference
from kept.settings import set_trust

SECRET_SETTINGS = (
    "webhooks.url",
    "webhooks.secret",
    "embed.key",
    "rerank.key",
)  # unless they only say where to find it


TrustOption = Annotated[
    bool | None,
    typer.Option("--trust/--distrust", help="Obey the kept.toml of this folder as it is now; do so no longer."),
]


async def config(context: typer.Context, trust: TrustOption = None) -> None:
    """Show every setting, and where its value came from.

    \b
    kept config
    kept config --trust                  obey the kept.toml of this folder
    KEPT_CRAWL__GRACE_DAYS=14 kept config --json
    """
    cli: CliContext = context.obj
    if trust is not None:
        set_trust(Path.cwd(), trusted=trust)
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
