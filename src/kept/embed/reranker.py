"""A second look at the first hits: one protocol, and any server that keeps it.

A reranker reads the query and each text together, which finds better than any index and costs too much for more than a
few dozen texts. Servers that speak /rerank: vLLM, Infinity, Jina, Cohere and those like them.
"""

import json
import math
import time
from collections.abc import Sequence
from typing import Any, Protocol

from kept.embed.remote import PostJson
from kept.errors import RerankerUnavailable

MAX_TEXT_CHARACTERS = 2_000
"""Characters: about as much as the window of a small model takes, and where a section says what it is about."""

COOLDOWN_SECONDS = 15.0  # seconds after it did not answer; otherwise every search would wait for it


class Reranker(Protocol):
    """Says how well texts answer a query."""

    async def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        """A number for each text; the larger, the better. RerankerUnavailable: not now."""


class RemoteReranker:
    """One model of one server."""

    def __init__(self, post: PostJson, model: str, *, timeout_seconds: float) -> None:
        self._post = post
        self._model = {"model": model} if model else {}
        self._timeout_seconds = timeout_seconds
        self._cooldown_until = -math.inf

    async def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        if time.monotonic() < self._cooldown_until:
            raise RerankerUnavailable("The reranker did not answer a moment ago.")
        documents = [text[:MAX_TEXT_CHARACTERS] for text in texts]
        asked = {**self._model, "query": query, "documents": documents, "top_n": len(documents)}
        reply = await self._post(json.dumps(asked).encode(), self._timeout_seconds)
        if reply.status is None:
            self._cooldown_until = time.monotonic() + COOLDOWN_SECONDS
            raise RerankerUnavailable(f"The reranker did not answer: {reply.reason}.")
        if reply.status != 200:
            raise RerankerUnavailable(
                f"The reranker answered {reply.status}. Check rerank.url, rerank.model and rerank.key."
            )
        return _parse_scores(reply.body, len(documents))


def _parse_scores(body: bytes, wanted: int) -> list[float]:
    try:
        said: dict[str, Any] = json.loads(body)
        scores = {int(one["index"]): float(one["relevance_score"]) for one in said["results"]}
    except (ValueError, KeyError, TypeError):
        raise RerankerUnavailable("The reranker answered with no scores. Check rerank.url.") from None
    if scores.keys() != set(range(wanted)) or not all(map(math.isfinite, scores.values())):
        raise RerankerUnavailable(f"The reranker answered with other than {wanted} scores.")
    return [scores[number] for number in range(wanted)]
