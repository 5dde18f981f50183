"""An embedder on a server with the /v1/embeddings API: OpenAI, Ollama, LM Studio, vLLM and many more.

Requests are retried here for about a minute, afterwards by the caller. The connection and the API key are part of the
``post`` function that is passed in.
"""

import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from kept.embed.embedder import normalize
from kept.errors import EmbedderUnavailable, TextRejected

if TYPE_CHECKING:
    from kept.embed.embedder import Vectors

TIMEOUT_SECONDS = 90.0  # for one call with all its retries; shorter than the lease of the texts
MAX_UNANSWERED_TRIES = 2  # few: a busy server is worth waiting for, an unreachable one is not
INITIAL_BACKOFF_SECONDS = 0.5
MAX_BACKOFF_SECONDS = 20.0

_REJECTED_STATUSES = (400, 413, 422)  # because of the texts, not of the client


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelResponse:
    """The response of a model server. Without a status: there was none, for this reason."""

    status: int | None
    reason: str = ""
    body: bytes = b""
    headers: Mapping[str, str] | None = None


PostJson = Callable[[bytes, float], Awaitable[ModelResponse]]  # JSON body, timeout in seconds


class RemoteEmbedder:
    """One model of one server."""

    def __init__(
        self,
        post: PostJson,
        name: str,
        *,
        dimensions: int = 0,
        batch: int = 64,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        self.model = f"{name}/{dimensions}" if dimensions else name
        self.dimensions = dimensions
        self.batch = batch
        self._post = post
        self._name = name
        self._extra_parameters = {"dimensions": dimensions} if dimensions else {}
        self._timeout_seconds = timeout_seconds

    async def embed(self, texts: Sequence[str]) -> "Vectors":
        if not texts:
            raise ValueError("There is nothing to embed.")
        request = {"model": self._name, "input": list(texts), "encoding_format": "float", **self._extra_parameters}
        body = json.dumps(request).encode()
        deadline, tries, unanswered = time.monotonic() + self._timeout_seconds, 0, 0
        while True:
            response = await self._post(body, max(0.1, deadline - time.monotonic()))
            if response.status == 200:
                vectors = _parse_vectors(response.body, len(texts))
                self.dimensions = vectors.shape[1]
                return vectors
            _raise_if_permanent(response)
            wait = max(_retry_after(response), _back_off(tries))
            unanswered += response.status is None
            if unanswered >= MAX_UNANSWERED_TRIES or time.monotonic() + wait > deadline:
                raise EmbedderUnavailable(f"The embedder {_describe_response(response)}.", retry_after=wait)
            await asyncio.sleep(wait)
            tries += 1


def _raise_if_permanent(response: ModelResponse) -> None:
    """Raise for a response that a retry would not change."""
    match response.status:
        case status if status in _REJECTED_STATUSES:
            raise TextRejected(f"The embedder {_describe_response(response)}.")
        case 401 | 403:
            raise EmbedderUnavailable(f"The embedder {_describe_response(response)}. Check embed.key.")
        case 404 | 405:
            raise EmbedderUnavailable(f"The embedder {_describe_response(response)}. Check embed.url and embed.model.")


def _describe_response(response: ModelResponse) -> str:
    return f"answered {response.status}" if response.status else f"did not answer: {response.reason}"


def _back_off(tries: int) -> float:
    """Return an exponential delay with jitter."""
    return min(MAX_BACKOFF_SECONDS, INITIAL_BACKOFF_SECONDS * 2.0**tries) * random.uniform(0.5, 1.0)


def _retry_after(response: ModelResponse) -> float:
    value = (response.headers or {}).get("Retry-After", "").strip()
    if value.isdecimal():
        return float(value[:6])
    try:
        at = parsedate_to_datetime(value)
    except ValueError:
        return 0.0
    return max(0.0, (at - datetime.now(at.tzinfo or UTC)).total_seconds()) if at.tzinfo else 0.0


def _parse_vectors(body: bytes, count: int) -> "Vectors":
    import numpy as np

    try:
        answer: dict[str, Any] = json.loads(body)
        items = sorted(answer["data"], key=lambda item: item["index"])
        rows = np.array([item["embedding"] for item in items], dtype=np.float32)
    except (ValueError, KeyError, TypeError):
        raise EmbedderUnavailable("The embedder answered with no embeddings. Check embed.url.") from None
    if rows.ndim != 2 or rows.shape[0] != count or not np.isfinite(rows).all():
        raise EmbedderUnavailable(f"The embedder answered with other than {count} vectors of numbers.")
    return normalize(rows)
