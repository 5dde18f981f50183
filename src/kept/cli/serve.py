"""``serve``: API, web pages and MCP over HTTP, with workers. ``mcp``: MCP on standard input and output."""

import os
import sys

import typer

from kept.cli import options
from kept.cli.command import CliContext
from kept.cli.run_crawl import configure_logging
from kept.cli.worker import stop_on_signal
from kept.service.keys import list_keys


async def serve(
    context: typer.Context,
    host: options.HostOption = "127.0.0.1",
    port: options.PortOption = 8600,
    workers: options.WorkersOption = 1,
) -> None:
    """Serve the API, the web pages and MCP, and run crawls, until a signal.

    \b
    kept serve
    kept --database postgresql://kept@db/kept serve --workers 4
    """
    cli: CliContext = context.obj
    configure_logging(verbose=cli.verbose, info=True)
    stop = stop_on_signal()

    def ready(url: str) -> None:
        cli.err.line(f"Kept serves at {url}/ (API at /api/v1, MCP at /mcp). Ctrl-C stops it.")

    async with cli.open_runtime(create=True) as runtime:
        if runtime.server_host.requires_keys(host) and not await list_keys(runtime.db):
            cli.err.line(
                "Requests to this address need an API key, and there is none yet: kept keys add NAME --scope write"
            )
        await runtime.server_host.serve(
            stop, host=host, port=port, workers=workers, on_ready=ready, separate_process=True, verbose=cli.verbose
        )


async def mcp(
    context: typer.Context, read_only: options.ReadOnlyOption = False, workers: options.WorkersOption = 1
) -> None:
    """Answer an assistant by MCP, on standard input and output. Assistants start it themselves.

    Crawls that are asked for run here as well, unless --workers 0 leaves them to others.

    \b
    claude mcp add kept -- kept mcp
    kept mcp --read-only
    kept --database postgresql://kept@db/kept mcp --workers 0
    """
    cli: CliContext = context.obj
    configure_logging(verbose=cli.verbose)
    stop = stop_on_signal()
    async with cli.open_runtime(create=True) as runtime:
        hung_up = await runtime.server_host.serve_mcp_stdio(stop, read_only=read_only, workers=workers)
    if not hung_up:  # a thread still waits for input, and only input would end it
        sys.stderr.flush()
        os._exit(0)
