"""``kept`` itself, and the table of commands and their modules.

The module of a command is imported when the command is called: a search has to answer quickly.
"""

import gc
import os
import sys
from typing import ClassVar

import typer

from kept.cli import options
from kept.cli.command import CliContext, LazyGroup, report_error
from kept.cli.screen import make_streams_lenient

COMPLETION_VARIABLE = "_KEPT_COMPLETE"  # set by a shell that completes a command line


class RootGroup(LazyGroup):
    modules: ClassVar = {
        "add": "add",
        "set": "set_",
        "try": "try_",
        "refresh": "refresh",
        "list": "sources",
        "show": "sources",
        "rename": "sources",
        "remove": "sources",
        "search": "search",
        "read": "read",
        "history": "read",
        "why": "why",
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
        "worker": "worker",
        "serve": "serve",
        "gc": "maintenance",
        "check": "maintenance",
        "backup": "maintenance",
        "restore": "maintenance",
        "export": "maintenance",
        "import": "maintenance",
        "keys": "keys:Keys",
        "mcp": "serve",
        "config": "config",
        "doctor": "doctor",
        "completion": "completion",
    }


app = typer.Typer(
    cls=RootGroup,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def kept(
    context: typer.Context,
    database: options.DatabaseOption = None,
    config: options.ConfigOption = None,
    as_json: options.JsonOption = False,
    verbose: options.VerboseOption = False,
    version: options.ShowVersionOption = False,
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
    cli = context.obj = CliContext()
    cli.database, cli.config, cli.as_json, cli.verbose = database, config, as_json, verbose
    if version:
        from kept import __version__

        typer.echo(f"kept {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Run one command and exit with its code."""
    make_streams_lenient()
    if COMPLETION_VARIABLE in os.environ:
        from kept.cli.completion import init_completion

        init_completion()
    try:
        code = app(prog_name="kept", standalone_mode=False)
    except Exception as error:
        code = report_error(error, verbose="--verbose" in sys.argv)
    gc.freeze()  # the interpreter ends sooner without a last garbage collection
    sys.exit(code)
