"""Listening: one socket, one server, until it is told to stop."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from kept.errors import InvalidInput

SHUTDOWN_GRACE_SECONDS = 5  # for answers that are under way when it stops
KEEP_ALIVE_SECONDS = 75  # a connection that nothing comes over; longer than most who ask, or proxies, keep theirs


async def run_server(app: FastAPI, host: str, port: int, stop: asyncio.Event, on_ready: Callable[[str], None]) -> None:
    """Serves until ``stop`` is set. ``ready`` is told the address as soon as it can be asked."""
    with _bind_socket(host, port) as at:
        config = uvicorn.Config(
            app,
            log_config=None,
            lifespan="on",
            ws="none",
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=SHUTDOWN_GRACE_SECONDS,
        )
        server = _UvicornServer(config, lambda: on_ready(_url(at)))
        serving, stopped = asyncio.create_task(server.serve([at])), asyncio.create_task(stop.wait())
        await asyncio.wait([serving, stopped], return_when=asyncio.FIRST_COMPLETED)
        app.state.closing.set()
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
        yield  # whoever started us takes them


def _bind_socket(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=1024)
    except (OSError, OverflowError) as error:
        raise InvalidInput(
            f"Nothing can listen at {host}:{port}: {error}. Choose another with --host or --port."
        ) from None


def _url(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
