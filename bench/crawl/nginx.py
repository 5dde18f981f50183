"""Serve a manual on loopback with nginx and its default settings."""

import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Debian: postgresql-doc-15, openjdk-17-doc
MANUALS = {
    "postgres": Path("/usr/share/doc/postgresql-doc-15/html"),
    "javadoc": Path("/usr/share/doc/openjdk-17-jre-headless/api"),
}

CONFIGURATION = """
daemon off; worker_processes 1; pid {own}/nginx.pid; error_log {own}/error.log;
events {{ worker_connections 1024; }}
http {{
    types {{ text/html html; text/css css; application/javascript js; image/png png; image/svg+xml svg; }}
    log_format sent '$status $bytes_sent $request_uri';
    access_log {log}; sendfile on; keepalive_requests 1000000;
    client_body_temp_path {own}/body; proxy_temp_path {own}/proxy; fastcgi_temp_path {own}/fastcgi;
    uwsgi_temp_path {own}/uwsgi; scgi_temp_path {own}/scgi;
    server {{ listen 127.0.0.1:{port}; root "{folder}"; {more} }}
}}
"""


@contextmanager
def served(folder: Path, *, port: int = 0, log: Path | None = None, validators: bool = True) -> Iterator[str]:
    """Serve a folder and yield its URL. ``log`` gets a line per response: status, bytes, path."""
    with tempfile.TemporaryDirectory(prefix="nginx") as own, socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", port))
        port = free.getsockname()[1]
        free.close()
        configuration = Path(own) / "nginx.conf"
        configuration.write_text(
            CONFIGURATION.format(
                own=own,
                port=port,
                folder=folder,
                log=f"{log} sent" if log else "off",
                more="" if validators else 'etag off; if_modified_since off; add_header Last-Modified "";',
            )
        )
        Path(own).chmod(0o755)
        with subprocess.Popen(["nginx", "-e", f"{own}/error.log", "-c", configuration]) as nginx:
            try:
                _wait_for(port, nginx)
                yield f"http://127.0.0.1:{port}/index.html"
            finally:
                nginx.terminate()


def _wait_for(port: int, nginx: "subprocess.Popen[bytes]") -> None:
    while nginx.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise RuntimeError("nginx did not start")
