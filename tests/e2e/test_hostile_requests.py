"""Requests that are made to break the server, to fill its disk, or to outlive their key."""

import io
import re
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kept.service.uploads import MAX_RATIO
from tests.e2e.server import Server, serving

NAUGHTY = ["..", "a\0b", "\x1b[2J", "\ufdd0", "a" * 300, "/", ""]


@pytest.fixture
def server(database_url: str, tmp_path: Path) -> Iterator[Server]:
    with serving(database_url, tmp_path, workers=0, serve__uploads_mb="1", serve__requests_per_minute="0") as running:
        yield running


def test_no_text_in_any_field_is_an_error_of_the_server_or_shows_its_paths(server: Server, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# A\n")
    wrong = []
    with server.client() as client:
        for text in NAUGHTY:
            file = {"file": (text, b"# A\n")}
            answers = {
                "file name": client.post("/api/v1/uploads", files=file, data={"name": "u"}),
                "file name alone": client.post("/api/v1/uploads", files=file),
                "upload": client.post("/api/v1/uploads", files={"file": ("a.md", b"# A\n")}, data={"name": text}),
                "upload version": client.post(
                    "/api/v1/uploads", files={"file": ("a.md", b"# A\n")}, data={"name": "v", "version": text}
                ),
                "form root": client.post("/add", data={"root": text}),
                "form preview": client.post("/add/preview", data={"root": text}),
                "form name": client.post("/add", data={"root": str(tmp_path / "docs"), "name": text}),
                "form scope": client.post(
                    "/add", data={"root": str(tmp_path / "docs"), "include": text, "scope": text}
                ),
                "login": client.post("/login", data={"key": text, "to": text}),
                "try": client.post("/api/v1/try", json={"url": text}),
                "tag": client.post("/api/v1/sources", json={"root": str(tmp_path / "docs"), "tag": [text]}),
                "queue": client.post("/knowledge-items/crawl", json={"url": text, "tags": [text]}),
                "search": client.get("/api/v1/search", params={"q": text, "path": text, "language": text}),
                "search page": client.get("/search", params={"q": text, "source": text}),
                "search source": client.get("/api/v1/search", params={"q": "a", "source": text, "version": text}),
                "why": client.get("/api/v1/why", params={"url": text}),
                "document": client.get("/api/v1/documents", params={"url": text, "section": text}),
            }
            wrong += [(what, text, got.text[:200]) for what, got in answers.items() if got.status_code >= 500]
            shown = str(tmp_path / "uploads")
            wrong += [(what, text, got.text) for what, got in answers.items() if got.is_error and shown in got.text]
    assert wrong == []


def make_zip(*files: tuple[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in files:
            archive.writestr(name, body)
    return packed.getvalue()


def test_an_upload_unpacks_to_little_more_than_itself_and_all_of_them_have_a_quota(
    server: Server, tmp_path: Path
) -> None:
    bomb = make_zip(("a.md", b"a" * 17 * 1024**2))
    assert len(bomb) * MAX_RATIO < 17 * 1024**2
    with server.client() as client:

        def upload(name: str, body: bytes, file: str = "a.zip") -> tuple[int, str]:
            answer = client.post("/api/v1/uploads", files={"file": (file, body)}, data={"name": name})
            return answer.status_code, answer.json().get("detail", "")

        status, detail = upload("bomb", bomb)
        assert (status, re.sub(r"\d+", "N", detail)) == (
            400,
            "The zip unpacks to more than N times its size: no documentation does.",
        )
        assert upload("first", make_zip(("a.md", b"a" * 700_000)))[0] == 201
        assert upload("first", make_zip(("a.md", b"b" * 700_000)))[0] == 200, "in place of the one before"
        for body, file in ((make_zip(("a.md", b"a" * 700_000)), "a.zip"), (b"a" * 700_000, "a.md")):
            status, detail = upload("second", body, file)
            assert status == 429
            assert "serve.uploads_mb" in detail
        with pytest.warns(UserWarning, match="Duplicate name"):
            twice = make_zip(("a.md", b"a"), ("a.md", b"b"))
        assert upload("twice", twice) == (400, "The zip cannot be unpacked: two of its files have the same name.")
    kept = sorted(path.name for path in (tmp_path / "uploads").iterdir())
    assert kept == ["first"], "what is refused leaves nothing behind"


def test_the_event_stream_of_a_key_ends_when_the_key_is_removed(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kept.server.auth.KEY_CHECK_SECONDS", 0.1)
    monkeypatch.setattr("kept.server.api.jobs.KEEPALIVE_SECONDS", 0.2)
    key, other = server.key("leaver", "read"), server.key("stayer", "read")
    with (
        server.client(key) as client,
        server.client(other) as staying,
        client.stream("GET", "/api/v1/events") as stream,
        staying.stream("GET", "/api/v1/events") as untouched,
    ):
        lines, others = stream.iter_lines(), untouched.iter_lines()
        assert next(lines).startswith("retry:")
        next(others)
        server.remove_key("leaver")
        started = time.monotonic()
        assert [line for line in lines if line.startswith("event")] == []
        assert time.monotonic() - started < 10, "it has ended"
        seen = [next(others) for _ in range(6)]
        assert ": still here" in seen
