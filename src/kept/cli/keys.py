"""Who may ask the server.

\b
kept keys add laptop --scope write
kept keys list
kept keys remove laptop
"""

from typing import ClassVar

import typer

from kept.cli import options
from kept.cli.command import Call, Group
from kept.service import keys


class Keys(Group):
    modules: ClassVar = {"add": "keys", "list": "keys", "remove": "keys"}


async def add(context: typer.Context, name: options.KeyName, scope: options.KeyScope = "read") -> None:
    """Make a key for the server. It is shown once, and only its hash is stored.

    \b
    kept keys add laptop
    kept keys add ci --scope write
    """
    call: Call = context.obj
    async with call.open(create=True) as runtime:
        key, said = await keys.add_key(runtime.db, name, scope)
    if call.as_json:
        call.answer({"name": key.name, "scope": key.scope, "key": said})
    else:
        call.err.line(f"The key '{key.name}' ({key.scope}); it will not be shown again:")
        call.out.line(said)


async def list_(context: typer.Context) -> None:
    """List the keys: their names and what they open."""
    call: Call = context.obj
    async with call.open() as runtime:
        found = await keys.list_keys(runtime.db)
    if call.as_json:
        shown = [{"name": key.name, "scope": key.scope, "created_at": key.created_at.isoformat()} for key in found]
        call.answer({"keys": shown})
    else:
        call.out.table([[(key.name, "bold"), key.scope, (f"{key.created_at:%Y-%m-%d}", "dim")] for key in found])


async def remove(context: typer.Context, name: options.KeyName) -> None:
    """Remove a key. From then on it opens nothing."""
    call: Call = context.obj
    async with call.open() as runtime:
        await keys.remove_key(runtime.db, name)
    if call.as_json:
        call.answer({"name": name, "removed": True})
    else:
        call.out.line(f"The key '{name}' is removed.")
