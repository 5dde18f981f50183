"""Binds the socket and runs uvicorn on it."""

import asyncio
import resource
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import uvicorn
from fastapi import FastAPI

from kept.errors import InvalidInput
from kept.server.connections import KEEP_ALIVE_SECONDS, ConnectionLimits, ConnectionTable, LimitedHttpProtocol
from kept.server.proxies import TrustedProxies
from kept.settings import ServeSettings

SHUTDOWN_GRACE_SECONDS = 5  # for responses in progress at shutdown
LISTEN_BACKLOG = 1024  # connections that the kernel keeps until they are accepted
ACCEPTED_AT_ONCE = 32  # of them, before the limits see them: each takes a file descriptor
RESERVED_FILES = 256  # file descriptors for everything else: database, programs, files


async def run_server(app: FastAPI, host: str, port: int, stop: asyncio.Event, on_ready: Callable[[str], None]) -> None:
    """Serve until ``stop`` is set. Calls ``on_ready`` with the URL as soon as requests are accepted."""
    with _bind_socket(host, port) as bound:
        settings: ServeSettings = app.state.settings.serve
        proxies = TrustedProxies.from_settings(settings.proxies)
        limits = ConnectionLimits(
            total=_limit_by_files(settings.connections),
            per_address=settings.per_address,
            is_proxy=proxies.__contains__,
        )
        table = ConnectionTable(limits)
        config = uvicorn.Config(
            app,
            http=partial(LimitedHttpProtocol, table),  # type: ignore[arg-type]
            log_config=None,
            lifespan="on",
            ws="none",
            server_header=False,
            backlog=ACCEPTED_AT_ONCE,
            forwarded_allow_ips=proxies.names,
            timeout_keep_alive=int(KEEP_ALIVE_SECONDS),
            timeout_graceful_shutdown=SHUTDOWN_GRACE_SECONDS,
        )
        server = _UvicornServer(config, lambda: on_ready(_url(bound)))
        sweeping = asyncio.create_task(table.sweep_forever())
        serving, stopped = asyncio.create_task(server.serve([bound])), asyncio.create_task(stop.wait())
        await asyncio.wait([serving, stopped], return_when=asyncio.FIRST_COMPLETED)
        app.state.shutting_down.set()
        server.should_exit = True
        stopped.cancel()
        try:
            await serving
        finally:
            sweeping.cancel()


class _UvicornServer(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for bound in sockets or ():
            bound.listen(LISTEN_BACKLOG)  # asyncio has made it as short as the number that it accepts at once
        if self.started:
            self._on_ready()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # the caller handles signals


def _limit_by_files(connections: int) -> int:
    """Return how many connections may be open: as many as wanted, if the process may have so many open files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = (connections or 100_000) + RESERVED_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    else:
        soft = wanted
    return min(wanted - RESERVED_FILES, max(soft - RESERVED_FILES, soft // 2))


def _bind_socket(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=LISTEN_BACKLOG)
    except (OSError, OverflowError) as error:
        raise InvalidInput(
            f"The server cannot listen at {host}:{port}: {error}. Choose another address with --host or --port."
        ) from None


def _url(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
