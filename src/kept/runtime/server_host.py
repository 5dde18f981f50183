"""Hosts the HTTP server and the MCP server on standard input, with the background work behind them."""

import asyncio
import sys
from collections.abc import Callable

from kept.jobs.worker_process import supervise_process
from kept.maintenance.watcher import watch_sources
from kept.runtime.services import AppServices
from kept.runtime.worker_host import WorkerHost

DATABASE_PATIENCE_SECONDS = 0.75  # a request gets its answer within two


class ServerHost:
    """Runs a server on the services of this process, and workers unless others have them."""

    def __init__(self, services: AppServices, worker_host: WorkerHost) -> None:
        self._services = services
        self._settings = services.settings
        self._worker_host = worker_host

    def requires_keys(self, host: str) -> bool:
        """Whether requests to a server at this address need an API key."""
        from kept.server.auth import AllowedHosts

        return AllowedHosts.from_settings(host, self._settings.serve.hosts).requires_keys

    async def serve(
        self,
        stop: asyncio.Event,
        *,
        host: str,
        port: int,
        workers: int,
        on_ready: Callable[[str], None],
        separate_process: bool = False,
        verbose: bool = False,
    ) -> None:
        """Serve HTTP until ``stop`` is set. ``on_ready`` receives the server's URL once it accepts connections.

        ``separate_process``: the workers run in a process of their own, which logs everything if ``verbose``.
        """
        from kept.server.app import make_app
        from kept.server.server import run_server

        self._services.db.limit_silence(DATABASE_PATIENCE_SECONDS)
        background = [
            asyncio.create_task(self._run_background(stop, workers, separate_process, verbose)),
            asyncio.create_task(watch_sources(self._services.db, stop)),
        ]
        try:
            await run_server(make_app(self._services, self._settings, host=host), host, port, stop, on_ready)
        finally:
            stop.set()
            await asyncio.gather(*background)

    async def serve_mcp_stdio(self, stop: asyncio.Event, *, read_only: bool, workers: int) -> bool:
        """Serve MCP on standard input and output. Returns True when the client closed it, False when ``stop`` was set.

        Crawls run in this process too, unless it is read-only: a client may have no other worker.
        """
        from kept.server.mcp.server import make_mcp_server

        workers = 0 if read_only else workers
        background = asyncio.create_task(
            self._worker_host.run_worker(stop, concurrency=workers) if workers else stop.wait()
        )
        server = make_mcp_server(self._services, self._settings, read_only=read_only)
        serving = asyncio.create_task(server.run_stdio_async())
        try:
            await asyncio.wait({serving, asyncio.create_task(stop.wait())}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.set()
            await background
        if serving.done():
            await serving
        return serving.done()

    async def _run_background(self, stop: asyncio.Event, workers: int, separate_process: bool, verbose: bool) -> None:
        if not workers:
            await self._worker_host.run_periodic_tasks(stop)
        elif not separate_process:
            await self._worker_host.run_worker(stop, concurrency=workers)
        else:
            # -P: without it, Python would run a module "kept" of the working folder.
            command = [sys.executable, "-P", "-m", "kept", "worker", "--behind", "--concurrency", str(workers)]
            command += ["--verbose"] if verbose else []
            command += ["--config", self._settings.config_file] if self._settings.config_file else []
            environment = dict(self._settings.environment) | {"KEPT_DATABASE": self._settings.database}
            await supervise_process(command, environment, stop)
