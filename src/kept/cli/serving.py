"""``serve``: every door in one command, with workers behind them."""

import typer

from kept.cli import options
from kept.cli.command import Call
from kept.cli.crawl import log_events
from kept.cli.working import stop_on_signal
from kept.service.keys import list_keys


async def serve(
    context: typer.Context,
    host: options.Host = "127.0.0.1",
    port: options.Port = 8600,
    workers: options.Workers = 1,
) -> None:
    """Serve the API, the web pages and MCP, and run crawls, until a signal.

    \b
    kept serve
    kept --database postgresql://kept@db/kept serve --workers 4
    """
    call: Call = context.obj
    log_events(verbose=call.verbose, info=True)
    stop = stop_on_signal()

    def ready(url: str) -> None:
        call.err.line(f"Kept serves at {url}/ (API at /api/v1, MCP at /mcp). Ctrl-C stops it.")

    async with call.open(create=True) as runtime:
        if runtime.needs_keys(host) and not await list_keys(runtime.db):
            call.err.line("Whoever asks here needs a key, and there is none yet: kept keys add NAME --scope write")
        await runtime.serve(stop, host=host, port=port, workers=workers, ready=ready)
