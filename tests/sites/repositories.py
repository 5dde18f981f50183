"""Git repositories on loopback: served by ``git http-backend`` behind a small server, or by ``git daemon``."""

import base64
import os
import re
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PLAIN = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_NAME": "Ada" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_EMAIL": "ada@example.com" for who in ("AUTHOR", "COMMITTER")},
}


@dataclass
class Repository:
    """A bare repository with commits made by the test."""

    bare: Path

    def __post_init__(self) -> None:
        if not self.bare.exists():
            self.git("init", "--quiet", "--bare", "--initial-branch=main", str(self.bare), bare=False)
            self.git("config", "uploadpack.allowFilter", "true")

    def git(self, *arguments: str, bare: bool = True, stdin: bytes = b"") -> str:
        where = ("--git-dir", str(self.bare)) if bare else ()
        done = subprocess.run(["git", *where, *arguments], input=stdin, capture_output=True, env=PLAIN, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode().strip()

    def commit(self, files: Mapping[str, str | bytes], *, branch: str = "main", orphan: bool = False) -> str:
        """Commit exactly these files. A name may begin with a mode: '120000 link'."""
        stdin = [f"commit refs/heads/{branch}\ncommitter Ada <ada@example.com> {int(time.time())} +0000\n".encode()]
        stdin.append(b"data 1\nx\n")
        parent = self.git("for-each-ref", "--format=%(objectname)", f"refs/heads/{branch}")
        stdin.append(f"from {parent}\ndeleteall\n".encode() if parent and not orphan else b"")
        for name, text in files.items():
            mode, path = name.split(" ", 1) if re.match(r"1\d{5} ", name) else ("100644", name)
            body = text.encode() if isinstance(text, str) else text
            if mode == "160000":
                stdin.append(f"M 160000 {text} {path}\n".encode())
            else:
                stdin.append(f"M {mode} inline ".encode() + os.fsencode(path) + b"\n")
                stdin.append(f"data {len(body)}\n".encode() + body + b"\n")
        if orphan:
            self.git("update-ref", "-d", f"refs/heads/{branch}")
        self.git("fast-import", "--quiet", "--force", stdin=b"".join(stdin))
        return self.git("rev-parse", f"refs/heads/{branch}")


@dataclass
class GitServer:
    """Serves all repositories below a folder over HTTP. Counts requests, and may require a login."""

    folder: Path
    login: str = ""  # 'user:password' that is required; empty for none
    requests: list[tuple[str, str]] = field(default_factory=list)  # (method, path and query)
    pages: dict[str, tuple[int, str]] = field(default_factory=dict)  # what is answered without git: status and body
    before: Callable[[], None] = lambda: None
    server: ThreadingHTTPServer = field(init=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def repository(self, name: str) -> Repository:
        return Repository(self.folder / name)


@contextmanager
def git_server(folder: Path) -> Iterator[GitServer]:
    site = GitServer(folder)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            site.requests.append((self.command, self.path))
            site.before()
            expected = base64.b64encode(site.login.encode()).decode()
            path, _, query = self.path.partition("?")
            if site.login and self.headers.get("Authorization") != f"Basic {expected}":
                self._answer(401, {"WWW-Authenticate": 'Basic realm="git"'}, b"")
            elif path in site.pages:
                status, text = site.pages[path]
                where = {"Location": text} if 300 <= status < 400 else {}
                kind = "application/x-git-upload-pack-advertisement" if text.startswith("00") else "text/html"
                self._answer(status, {"Content-Type": kind} | where, text.encode("latin-1"))
            else:
                self._answer(*_backend(site.folder, self.command, path, query, self.headers, body))

        do_POST = do_GET

        def _answer(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None: ...

    site.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site.server.daemon_threads = True
    threading.Thread(target=site.server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield site
    finally:
        site.server.shutdown()
        site.server.server_close()


def _backend(
    folder: Path, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes
) -> tuple[int, dict[str, str], bytes]:
    environment = PLAIN | {
        "GIT_PROJECT_ROOT": str(folder),
        "GIT_HTTP_EXPORT_ALL": "1",
        "GIT_PROTOCOL": headers.get("Git-Protocol", ""),
        "REQUEST_METHOD": method,
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "CONTENT_TYPE": headers.get("Content-Type", ""),
        "CONTENT_LENGTH": str(len(body)),
        "HTTP_CONTENT_ENCODING": headers.get("Content-Encoding", ""),
    }
    done = subprocess.run(["git", "http-backend"], input=body, capture_output=True, env=environment, check=False)
    head, _, answer = done.stdout.partition(b"\r\n\r\n")
    said = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
    return int(said.pop("Status", "200").split()[0]), said, answer


@contextmanager
def git_daemon(folder: Path) -> Iterator[str]:
    """Serve a folder with git daemon and yield its URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["git", "daemon", "--export-all", f"--base-path={folder}", "--listen=127.0.0.1", f"--port={port}"]
    daemon = subprocess.Popen([*command, "--verbose"], env=PLAIN, stderr=subprocess.PIPE, start_new_session=True)
    try:
        assert daemon.stderr is not None
        assert b"Ready" in daemon.stderr.readline()
        yield f"git://127.0.0.1:{port}"
    finally:
        os.killpg(daemon.pid, 15)
        daemon.wait()
        if daemon.stderr:
            daemon.stderr.close()
