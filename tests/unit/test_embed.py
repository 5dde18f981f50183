"""Embedders, and the fusion of two rankings."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kept import settings
from kept.embed import static
from kept.embed.embedder import MAX_TEXT_CHARACTERS, Embedder, embedding_text, hash_text
from kept.embed.providers import EmbedderConfig, EmbedderFactory
from kept.embed.remote import ModelResponse, RemoteEmbedder
from kept.errors import EmbedderUnavailable, InvalidInput, TextRejected
from kept.search.fuse import fuse_rankings
from kept.store.vector_index import quantize


class Server:
    """Returns the scripted replies, then vectors of three numbers."""

    def __init__(self, *replies: ModelResponse) -> None:
        self.replies = list(replies)
        self.requests: list[dict[str, Any]] = []

    async def post(self, body: bytes, seconds: float) -> ModelResponse:
        assert 0 < seconds <= 90
        self.requests.append(json.loads(body))
        return self.replies.pop(0) if self.replies else good(self.requests[-1]["input"])


def good(texts: Sequence[str]) -> ModelResponse:
    rows = [{"index": number, "embedding": [len(text), 1, 0]} for number, text in enumerate(texts)]
    return ModelResponse(status=200, body=json.dumps({"data": rows[::-1]}).encode())  # no order is promised


def embed(embedder: Embedder, *texts: str) -> Any:
    return asyncio.run(embedder.embed(texts))


@pytest.mark.parametrize("make", [static.StaticEmbedder, lambda: RemoteEmbedder(Server().post, "small")])
def test_every_embedder_gives_a_row_of_length_one_for_each_text_the_same_every_time(make: Any) -> None:
    texts = ["How to limit connections", "x" * 20_000, "日本語の文書", "\ud800 a lone surrogate, \x00 and 🦙", "a"]
    embedder = make()
    rows = embed(embedder, *texts)
    assert rows.dtype == np.float32
    assert rows.shape == (len(texts), embedder.dimensions)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert np.allclose(embed(embedder, texts[2])[0], rows[2], atol=1e-6), "neither order nor company matters"


def test_the_built_in_model_puts_like_next_to_like_and_loads_nothing_of_the_package_it_comes_from() -> None:
    import sys

    rows = embed(
        static.StaticEmbedder(), "delete a database table", "remove a relation", "the weather in spring", " -> "
    )
    assert rows[0] @ rows[1] > rows[0] @ rows[2] + 0.1
    assert not rows[3].any(), "what has no word means nothing"
    assert "wordllama" not in sys.modules


def test_what_is_embedded_says_where_it_stands_and_never_grows_too_long() -> None:
    assert embedding_text("Guide", "Guide\nPools\nSize", "## Size\n\nTen.") == "Guide > Pools > Size\n## Size\n\nTen."
    assert embedding_text("", "", "Only text") == "Only text"
    assert embedding_text("", "", "  ")
    assert len(embedding_text("T", "h\n" * 9_000, "text")) <= MAX_TEXT_CHARACTERS
    assert hash_text("a") != hash_text("b")
    assert len(hash_text("\ud800")) == 32


# A server ------------------------------------------------------------------------------------------------------


def test_a_busy_server_is_asked_again_after_the_time_it_names(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr("kept.embed.remote.asyncio.sleep", sleep)
    busy = [
        ModelResponse(status=429, headers={"Retry-After": "7"}),
        ModelResponse(status=503),
        ModelResponse(status=503),
    ]
    server = Server(*busy)
    assert embed(RemoteEmbedder(server.post, "small", dimensions=3), "a", "bb").shape == (2, 3)
    assert len(server.requests) == 4
    assert server.requests[0] == server.requests[3]
    assert {"model": "small", "input": ["a", "bb"], "dimensions": 3}.items() <= server.requests[0].items()
    assert waits[0] == 7.0
    assert 0.5 <= waits[1] <= 1.0
    assert 1.0 <= waits[2] <= 2.0


@pytest.mark.parametrize(
    ("reply", "error", "says"),
    [
        (ModelResponse(status=429, headers={"Retry-After": "600"}), EmbedderUnavailable, "429"),
        (
            ModelResponse(status=429, headers={"Retry-After": "Wed, 21 Oct 2099 07:28:00 GMT"}),
            EmbedderUnavailable,
            "429",
        ),
        (ModelResponse(status=401), EmbedderUnavailable, "embed.key"),
        (ModelResponse(status=404), EmbedderUnavailable, "embed.model"),
        (ModelResponse(status=400), TextRejected, "400"),
        (ModelResponse(status=200, body=b"<html>"), EmbedderUnavailable, "no embeddings"),
        (
            ModelResponse(status=200, body=b'{"data": [{"index": 0, "embedding": "AAAA"}]}'),
            EmbedderUnavailable,
            "embeddings",
        ),
        (ModelResponse(status=200, body=b'{"data": []}'), EmbedderUnavailable, "other than 1"),
        (
            ModelResponse(status=200, body=b'{"data": [{"index": 0, "embedding": [NaN]}]}'),
            EmbedderUnavailable,
            "other than 1",
        ),
    ],
)
def test_an_answer_that_asking_again_would_not_change_is_an_error_at_once(
    reply: ModelResponse, error: Any, says: str
) -> None:
    server = Server(reply)
    with pytest.raises(error, match=says):
        embed(RemoteEmbedder(server.post, "small"), "text")
    assert len(server.requests) == 1


def test_a_server_that_is_not_there_is_given_up_soon() -> None:
    server = Server(*[ModelResponse(status=None, reason="refused")] * 9)
    with pytest.raises(EmbedderUnavailable, match="did not answer: refused"):
        embed(RemoteEmbedder(server.post, "small"), "text")
    assert len(server.requests) == 2


# The operator's choice -----------------------------------------------------------------------------------------


def test_the_choice_is_the_operators_and_the_model_that_serves_is_found_whatever_the_choice(tmp_path: Path) -> None:
    def chosen(**config: Any) -> EmbedderFactory:
        return EmbedderFactory(EmbedderConfig(**config), Server().post)

    def wanted(**config: Any) -> str | None:
        embedder = chosen(**config).for_indexing()
        return embedder.model if embedder else None

    assert wanted(provider="none") is None
    assert wanted(provider="auto", is_vector_search_enabled=False) is None, "vector search is off"
    assert wanted(provider="auto") == wanted(provider="static") == static.MODEL
    assert wanted(provider="openai", model="small", has_url=True) == "small"
    assert wanted(provider="openai", model="small", has_url=True, dimensions=256) == "small/256"
    with pytest.raises(InvalidInput, match=r"so embed\.url and embed\.model have to say which"):
        settings.load(environment={"KEPT_EMBED__PROVIDER": "openai", "KEPT_EMBED__MODEL": "small"}, folder=tmp_path)
    with pytest.raises(InvalidInput, match=r"search\.mode should be one of lexical, meaning, fused; it is 'vibes'"):
        settings.load(environment={"KEPT_SEARCH__MODE": "vibes"}, folder=tmp_path)
    both = chosen(provider="static", has_url=True)
    assert [both.for_queries(name).model for name in (static.MODEL, "small", "org/small", "small/256")] == [  # type: ignore[union-attr]
        static.MODEL, "small", "org/small", "small/256",
    ]  # fmt: skip
    assert chosen(provider="static").for_queries("small") is None


# Fusing --------------------------------------------------------------------------------------------------------


def test_fusing_goes_by_rank_and_what_both_found_rises() -> None:
    order = [one for one, _ in fuse_rankings("abcd", "dxya", vector_weight=0.3, k=10)]
    assert order[:2] == ["a", "d"], "both found them, and words weigh more"
    assert set(order) == set("abcdxy")
    assert fuse_rankings("ab", "", vector_weight=0.3, k=10) == [("a", 0.7), ("b", pytest.approx(0.7 * 11 / 12))]
    assert [one for one, _ in fuse_rankings("", "ab")] == ["a", "b"]
    assert fuse_rankings("a", "a")[0][1] == pytest.approx(1.0)
    assert [one for one, _ in fuse_rankings("ab", "ba", vector_weight=0.5)] == ["a", "b"], "words decide a tie"
    assert [one for one, _ in fuse_rankings("ab", "ba", vector_weight=0.9)] == ["b", "a"]


def test_a_vector_packed_into_bytes_points_where_it_did() -> None:
    chance = np.random.default_rng(7)
    rows = chance.normal(size=(200, 64)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    for row in rows:
        kept = quantize(row)
        assert len(kept) == 4 + 64
        back = np.frombuffer(kept[4:], np.int8) * np.frombuffer(kept[:4], np.float32)
        assert row @ back / np.linalg.norm(back) > 0.9999
    assert not any(quantize(np.zeros(8, np.float32))[4:])
