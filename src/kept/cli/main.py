"""The command line: ``kept`` itself, and which module has which command.

A command is loaded when it is called, with whatever it needs. A search has to answer at once.
"""

import gc
import os
import sys
from typing import ClassVar

import typer

from kept.cli import options
from kept.cli.command import Call, Group, report
from kept.cli.screen import make_streams_lenient

COMPLETING = "_KEPT_COMPLETE"  # set by a shell that asks what may follow


class Kept(Group):
    modules: ClassVar = {
        "add": "keeping",
        "set": "keeping",
        "try": "trying",
        "refresh": "keeping",
        "list": "sources",
        "show": "sources",
        "remove": "sources",
        "search": "finding",
        "read": "reading",
        "history": "reading",
        "why": "explaining",
        "generations": "generations",
        "diff": "generations",
        "changes": "generations",
        "rollback": "generations",
        "activate": "generations",
        "discard": "generations",
        "jobs": "jobs",
        "job": "jobs",
        "pause": "jobs",
        "resume": "jobs",
        "cancel": "jobs",
        "worker": "working",
        "serve": "serving",
        "gc": "upkeep",
        "check": "upkeep",
        "backup": "upkeep",
        "restore": "upkeep",
        "export": "upkeep",
        "import": "upkeep",
        "keys": "keys:Keys",
        "mcp": "serving",
        "config": "configuration",
        "doctor": "doctoring",
        "completion": "completing",
    }


app = typer.Typer(
    cls=Kept,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def kept(
    context: typer.Context,
    database: options.Database = None,
    as_json: options.AsJson = False,
    verbose: options.Verbose = False,
    version: options.Version = False,
) -> None:
    """Keeps documentation: a complete, current, searchable copy of it, and every version it had.

    \b
    kept add docs                        keep a folder
    kept search "connection pool"        find the sections about it
    kept read docs/pool.md               read a page as it is kept
    kept refresh docs                    bring it up to date
    kept history docs/pool.md            what became of a page
    kept mcp                             for your assistant, which starts it
    kept doctor                          if something does not work

    Data is in one SQLite file unless --database or KEPT_DATABASE says otherwise; 'kept config' shows where.
    """
    call = context.obj = Call()
    call.database, call.as_json, call.verbose = database, as_json, verbose
    if version:
        from kept import __version__

        typer.echo(f"kept {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Runs one command, to its exit code."""
    make_streams_lenient()
    if COMPLETING in os.environ:
        from kept.cli.completing import prepare

        prepare()
    try:
        code = app(prog_name="kept", standalone_mode=False)
    except Exception as error:
        code = report(error, verbose="--verbose" in sys.argv)
    gc.freeze()  # the end comes sooner when the interpreter does not search everything for garbage once more
    sys.exit(code)
