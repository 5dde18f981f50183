"""A slow site that counts requests: how often for each page, and how many at once.

with SlowSite(pages=300, seconds=0.05) as site: … site.root … site.visits … site.most_at_once
"""

import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class SlowSite:
    """A number of pages, all linked from the first. Each response takes ``seconds``, or waits until ``open`` is set."""

    def __init__(self, pages: int, seconds: float) -> None:
        self.visits: Counter[str] = Counter()
        self.most_at_once = 0
        self.requested = (
            threading.Event()
        )  # set by every request; first_request_at has the time of the first since it was cleared
        self.first_request_at = 0.0
        self.open = threading.Event()
        self.open.set()
        self._at_once = 0
        self._lock = threading.Lock()
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # or an answer in two writes takes 40 ms longer than asked for

            def do_GET(self) -> None:
                with site._lock:
                    if not site.requested.is_set():
                        site.first_request_at = time.monotonic()
                        site.requested.set()
                    site.visits[self.path] += 1
                    site._at_once += 1
                    site.most_at_once = max(site.most_at_once, site._at_once)
                time.sleep(seconds)
                site.open.wait()
                body = site._body(self.path, pages)
                with site._lock:  # before the response: its client may send the next request at once
                    site._at_once -= 1
                self.send_response(200 if body else 404)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None: ...

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, request: Any, client_address: Any) -> None: ...  # the client was killed

        self._server = Server(("127.0.0.1", 0), Handler)
        self.root = f"http://127.0.0.1:{self._server.server_port}/"

    @property
    def pages(self) -> dict[str, int]:
        """Return how often each page was requested."""
        return {path: times for path, times in self.visits.items() if path == "/" or path.startswith("/page/")}

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.open.set()
        self._server.shutdown()
        self._server.server_close()

    @staticmethod
    def _body(path: str, pages: int) -> bytes:
        if path == "/":
            links = "".join(f'<li><a href="/page/{number}">{number}</a>' for number in range(pages))
            return f"<h1>All pages</h1><p>There are some of them here.</p><ul>{links}</ul>".encode()
        if path.startswith("/page/") and path[6:].isdigit() and int(path[6:]) < pages:
            return f"<h1>Page {path[6:]}</h1><p>This one is about the number {path[6:]}, and nothing else.".encode()
        return b""
