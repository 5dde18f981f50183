"""Binds the socket and runs uvicorn on it."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from kept.errors import InvalidInput

SHUTDOWN_GRACE_SECONDS = 5  # for responses in progress at shutdown
KEEP_ALIVE_SECONDS = 75  # of an idle connection; longer than most clients and proxies keep theirs


async def run_server(app: FastAPI, host: str, port: int, stop: asyncio.Event, on_ready: Callable[[str], None]) -> None:
    """Serve until ``stop`` is set. Calls ``on_ready`` with the URL as soon as requests are accepted."""
    with _bind_socket(host, port) as bound:
        config = uvicorn.Config(
            app,
            log_config=None,
            lifespan="on",
            ws="none",
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=SHUTDOWN_GRACE_SECONDS,
        )
        server = _UvicornServer(config, lambda: on_ready(_url(bound)))
        serving, stopped = asyncio.create_task(server.serve([bound])), asyncio.create_task(stop.wait())
        await asyncio.wait([serving, stopped], return_when=asyncio.FIRST_COMPLETED)
        app.state.shutting_down.set()
        server.should_exit = True
        stopped.cancel()
        await serving


class _UvicornServer(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_ready()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # the caller handles signals


def _bind_socket(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=1024)
    except (OSError, OverflowError) as error:
        raise InvalidInput(
            f"The server cannot listen at {host}:{port}: {error}. Choose another address with --host or --port."
        ) from None


def _url(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
