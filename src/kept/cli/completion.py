"""``completion``: the shell completes commands, options and the names of sources."""

import asyncio
import os
from pathlib import Path

import typer
from typer._completion_classes import completion_init
from typer._completion_shared import get_completion_script

from kept.cli import options
from kept.cli.command import CliContext
from kept.errors import InvalidInput, KeptError

SHELLS = ("bash", "zsh", "fish")


async def completion(context: typer.Context, shell: options.ShellArgument) -> None:
    """Print what a shell needs to complete commands, options and names.

    \b
    kept completion bash >> ~/.bashrc
    kept completion zsh >> ~/.zshrc
    kept completion fish > ~/.config/fish/completions/kept.fish
    """
    cli: CliContext = context.obj
    if shell not in SHELLS:
        raise InvalidInput(f"There is no completion for '{shell}'. There is for {', '.join(SHELLS)}.")
    script = get_completion_script(prog_name="kept", complete_var="_KEPT_COMPLETE", shell=shell)
    if cli.as_json:
        cli.print_json({"shell": shell, "script": script})
    else:
        cli.out.text(script)


def init_completion() -> None:
    """Register the completion of the supported shells."""
    completion_init()


def list_source_labels() -> list[str]:
    """List the labels of all sources; none where the database cannot be read."""
    from kept.runtime.runtime import open_runtime
    from kept.service.sources import list_sources
    from kept.settings import load

    async def found() -> list[str]:
        settings = load(environment=os.environ, folder=Path.cwd())
        async with open_runtime(settings, create=False) as runtime:
            return [view.source.label for view in await list_sources(runtime.db)]

    try:
        return asyncio.run(found())
    except KeptError:
        return []
