"""The Reranker protocol, and rerankers on servers with the /rerank API: vLLM, Infinity, Jina, Cohere.

A reranker reads the query and each text together, which ranks better than any index and is too slow for more than a
few dozen texts.
"""

import json
import math
import time
from collections.abc import Sequence
from typing import Any, Protocol

from kept.embed.remote import PostJson
from kept.errors import RerankerUnavailable

MAX_TEXT_CHARACTERS = 2_000
"""About the window of a small model. The start of a section tells what it is about."""

COOLDOWN_SECONDS = 15.0  # after a timeout; otherwise every search would wait for it


class Reranker(Protocol):
    """Scores how well texts answer a query."""

    async def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return a score for each text; the larger, the better. Raises RerankerUnavailable."""


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
        request = {**self._model, "query": query, "documents": documents, "top_n": len(documents)}
        response = await self._post(json.dumps(request).encode(), self._timeout_seconds)
        if response.status is None:
            self._cooldown_until = time.monotonic() + COOLDOWN_SECONDS
            raise RerankerUnavailable(f"The reranker did not answer: {response.reason}.")
        if response.status != 200:
            raise RerankerUnavailable(
                f"The reranker answered {response.status}. Check rerank.url, rerank.model and rerank.key."
            )
        return _parse_scores(response.body, len(documents))


def _parse_scores(body: bytes, count: int) -> list[float]:
    try:
        answer: dict[str, Any] = json.loads(body)
        scores = {int(item["index"]): float(item["relevance_score"]) for item in answer["results"]}
    except (ValueError, KeyError, TypeError):
        raise RerankerUnavailable("The reranker answered with no scores. Check rerank.url.") from None
    if scores.keys() != set(range(count)) or not all(map(math.isfinite, scores.values())):
        raise RerankerUnavailable(f"The reranker answered with other than {count} scores.")
    return [scores[number] for number in range(count)]
