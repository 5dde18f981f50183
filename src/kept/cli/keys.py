"""API keys: who may call the server.

\b
kept keys add laptop --scope write
kept keys list
kept keys remove laptop
"""

from typing import ClassVar

import typer

from kept.cli import options
from kept.cli.command import CliContext, LazyGroup
from kept.service import keys


class Keys(LazyGroup):
    modules: ClassVar = {"add": "keys", "list": "keys", "remove": "keys"}


async def add(context: typer.Context, name: options.KeyNameArgument, scope: options.KeyScopeOption = "read") -> None:
    """Make a key for the server. It is shown once, and only its hash is stored.

    \b
    kept keys add laptop
    kept keys add ci --scope write
    """
    cli: CliContext = context.obj
    async with cli.open_runtime(create=True) as runtime:
        key, token = await keys.add_key(runtime.db, name, scope)
    if cli.as_json:
        cli.print_json({"name": key.name, "scope": key.scope, "key": token})
    else:
        cli.err.line(f"The key '{key.name}' ({key.scope}); it will not be shown again:")
        cli.out.line(token)


async def list_(context: typer.Context) -> None:
    """List the keys: their names and what they open."""
    cli: CliContext = context.obj
    async with cli.open_runtime() as runtime:
        found = await keys.list_keys(runtime.db)
    if cli.as_json:
        shown = [{"name": key.name, "scope": key.scope, "created_at": key.created_at.isoformat()} for key in found]
        cli.print_json({"keys": shown})
    else:
        cli.out.table([[(key.name, "bold"), key.scope, (f"{key.created_at:%Y-%m-%d}", "dim")] for key in found])


async def remove(context: typer.Context, name: options.KeyNameArgument) -> None:
    """Remove a key. From then on it opens nothing."""
    cli: CliContext = context.obj
    async with cli.open_runtime() as runtime:
        await keys.remove_key(runtime.db, name)
    if cli.as_json:
        cli.print_json({"name": name, "removed": True})
    else:
        cli.out.line(f"The key '{name}' is removed.")
