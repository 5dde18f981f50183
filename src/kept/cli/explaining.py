"""Explaining: ``why``."""

import typer

from kept.cli import options
from kept.cli.command import Call
from kept.cli.show import ledger as show
from kept.service import ledger, shapes


async def why(context: typer.Context, what: options.Unkept, limit: options.Examples = 5) -> None:
    """Say what the last crawl made of a page, and why. Of a source: every page that was not kept.

    \b
    kept why https://docs.example.com/guide/old.html
    kept why django@5.2 --limit 20
    """
    call: Call = context.obj
    async with call.open() as runtime:
        if await ledger.is_source(runtime.db, what) or not set(what) & set(":/."):
            found = await ledger.not_kept(runtime.db, what, examples=limit)
            if call.as_json:
                call.answer(shapes.not_kept(found))
            else:
                show.not_kept(call.out, found)
            return
        accounts = await ledger.why(runtime.db, what, runtime.why_not)
    if call.as_json:
        call.answer(shapes.why(accounts))
    else:
        show.why(call.out, accounts)
