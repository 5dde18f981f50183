"""Semantic search, through the command line and the server."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.server import serving
from tests.e2e.test_cli import INSTALL, NOTES, POOL, Kept, write


@pytest.fixture
def kept(tmp_path: Path, database_url: str) -> Kept:
    write(tmp_path / "docs", pool=POOL, install=INSTALL, notes=NOTES)
    return Kept(tmp_path, database_url)


def test_other_words_with_the_same_meaning_are_found_and_an_unavailable_embedder_loses_nothing(kept: Kept) -> None:
    kept.environment["KEPT_SEARCH__MODE"] = "meaning"
    kept.json("add", "docs", "--name", "docs")
    found = kept.json("search", "compile the software")
    assert found["vectors_missing"] == 0
    assert found["hits"][0]["title"] == "Install", "it says none of these words"

    kept.environment |= {
        "KEPT_SEARCH__MODE": "fused",
        "KEPT_EMBED__PROVIDER": "openai",
        "KEPT_EMBED__URL": "http://127.0.0.1:1/v1",
        "KEPT_EMBED__MODEL": "of-nobody",
        "KEPT_EMBED__KEY": "hidden-key",
    }
    write(kept.docs, fresh="# Fresh\n\nA page about quinces.\n")
    refreshed = kept("refresh", "docs")
    assert refreshed.code == 0
    assert "embedder away" in refreshed.err
    assert "without a vector so far: 1." in refreshed.err
    assert kept.json("search", "quinces")["hits"][0]["title"] == "Fresh"
    found = kept.json("search", "compile the software")
    assert found["hits"][0]["title"] == "Install", "the model before answers until another is complete"
    assert found["vectors_missing"] == 1
    assert "hidden-key" not in refreshed.out + refreshed.err + kept("config").out + kept("config", "--json").out

    kept.environment["KEPT_EMBED__URL"] = ""
    assert "embed.url" in kept("refresh", "docs").sentence


class RerankingServer(ThreadingHTTPServer):
    """Prefers texts with the word "brew"; answers as configured."""

    status = 200
    body: bytes | None = None

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Reranking)
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []


class _Reranking(BaseHTTPRequestHandler):
    server: RerankingServer

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append(request | {"path": self.path})
        self.server.keys.append(self.headers["Authorization"])
        scores = [
            {"index": at, "relevance_score": float("brew" in text)} for at, text in enumerate(request["documents"])
        ]
        body = self.server.body or json.dumps({"results": scores[::-1]}).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


@pytest.fixture
def reranker() -> Iterator[RerankingServer]:
    server = RerankingServer()
    threading.Thread(target=server.serve_forever, args=(0.02,)).start()
    yield server
    server.shutdown()
    server.server_close()


def test_a_reranker_orders_the_first_hits_and_a_failing_one_is_ignored(
    tmp_path: Path, reranker: RerankingServer
) -> None:
    pages = {f"page{number}": f"# Tea {number}\n\nTea, tea and tea.\n" for number in range(4)}
    write(tmp_path / "docs", **pages, last="# Kettle\n\nHow to brew tea.\n")
    kept = Kept(tmp_path, f"sqlite:///{tmp_path}/kept.db")
    kept.json("add", "docs", "--name", "docs")
    plain = [hit["title"] for hit in kept.json("search", "tea", "--limit", "3")["hits"]]
    assert "Kettle" not in plain

    kept.environment |= {
        "KEPT_RERANK__URL": f"http://127.0.0.1:{reranker.server_address[1]}/v1/",
        "KEPT_RERANK__MODEL": "second-look",
        "KEPT_RERANK__KEY": "env:RERANK_KEY",
        "KEPT_RERANK__SECONDS": "20",
        "RERANK_KEY": "hidden-key",
    }
    found = kept.json("search", "tea", "--limit", "3")
    assert [hit["title"] for hit in found["hits"]] == ["Kettle", *plain[:2]], "it was shown more than the three"
    assert found["hits"][0]["score"] == 1.0
    assert "not_reranked" not in found
    request = reranker.requests[-1]
    assert (request["path"], request["model"], request["query"]) == ("/v1/rerank", "second-look", "tea")
    assert request["top_n"] == len(request["documents"]) == 5
    assert reranker.keys == ["Bearer hidden-key"]

    for status, body, why in (
        (503, None, "answered 503"),
        (200, b"<html>", "no scores"),
        (200, b'{"results": [{"index": 0, "relevance_score": 1}]}', "other than 5 scores"),
    ):
        reranker.status, reranker.body = status, body
        found = kept.json("search", "tea", "--limit", "3")
        assert [hit["title"] for hit in found["hits"]] == plain
        assert why in found["not_reranked"]
    options = {"rerank__url": kept.environment["KEPT_RERANK__URL"], "rerank__seconds": "20"}
    with serving(kept.environment["KEPT_DATABASE"], tmp_path, workers=0, **options) as running, running.client() as api:
        without = api.get("/api/v1/search", params={"q": "tea"})
        assert "not_reranked" in without.json()
        reranker.body = None
        known = {"If-None-Match": without.headers["etag"]}
        assert api.get("/api/v1/search", params={"q": "tea"}, headers=known).json()["hits"][0]["title"] == "Kettle"

    kept.environment["KEPT_RERANK__URL"] = "http://127.0.0.1:1"
    away = kept("search", "tea", "--limit", "3")
    assert away.code == 0
    assert "The reranker did not answer" in away.err
    assert "hidden-key" not in away.out + away.err + kept("config").out
