"""A server that speaks /v1/embeddings: OpenAI's, Ollama, LM Studio, vLLM and many more.

It may be slow, busy, or away. Asking again is this module's business for a minute or so, then it is the caller's. The
way to the server, and the key that it wants, are in what is handed over as ``post``.
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

TIMEOUT_SECONDS = 90.0  # seconds for one call, all its tries together; whoever takes texts counts on it
MAX_UNANSWERED_TRIES = 2  # a server that is busy is worth waiting for; one that is not there comes back in its own time
INITIAL_BACKOFF_SECONDS = 0.5
MAX_BACKOFF_SECONDS = 20.0

_REJECTED_STATUSES = (400, 413, 422)  # by what was sent, not by who sent it


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelResponse:
    """What the server said. No status: it did not."""

    status: int | None
    reason: str = ""
    body: bytes = b""
    headers: Mapping[str, str] | None = None


PostJson = Callable[[bytes, float], Awaitable[ModelResponse]]  # a body of JSON, and how many seconds there are


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
        asked = {"model": self._name, "input": list(texts), "encoding_format": "float", **self._extra_parameters}
        body = json.dumps(asked).encode()
        until, tries, unanswered = time.monotonic() + self._timeout_seconds, 0, 0
        while True:
            reply = await self._post(body, max(0.1, until - time.monotonic()))
            if reply.status == 200:
                vectors = _parse_vectors(reply.body, len(texts))
                self.dimensions = vectors.shape[1]
                return vectors
            _raise_if_permanent(reply)
            wait = max(_retry_after(reply), _back_off(tries))
            unanswered += reply.status is None
            if unanswered >= MAX_UNANSWERED_TRIES or time.monotonic() + wait > until:
                raise EmbedderUnavailable(f"The embedder {_describe_response(reply)}.", retry_after=wait)
            await asyncio.sleep(wait)
            tries += 1


def _raise_if_permanent(reply: ModelResponse) -> None:
    """Where asking the same again would change nothing."""
    match reply.status:
        case status if status in _REJECTED_STATUSES:
            raise TextRejected(f"The embedder {_describe_response(reply)}.")
        case 401 | 403:
            raise EmbedderUnavailable(f"The embedder {_describe_response(reply)}. Check embed.key.")
        case 404 | 405:
            raise EmbedderUnavailable(f"The embedder {_describe_response(reply)}. Check embed.url and embed.model.")


def _describe_response(reply: ModelResponse) -> str:
    return f"answered {reply.status}" if reply.status else f"did not answer: {reply.reason}"


def _back_off(tries: int) -> float:
    """Longer after each try, and never the same for two that were sent away together."""
    return min(MAX_BACKOFF_SECONDS, INITIAL_BACKOFF_SECONDS * 2.0**tries) * random.uniform(0.5, 1.0)


def _retry_after(reply: ModelResponse) -> float:
    said = (reply.headers or {}).get("Retry-After", "").strip()
    if said.isdecimal():
        return float(said[:6])
    try:
        at = parsedate_to_datetime(said)
    except ValueError:
        return 0.0
    return max(0.0, (at - datetime.now(at.tzinfo or UTC)).total_seconds()) if at.tzinfo else 0.0


def _parse_vectors(body: bytes, wanted: int) -> "Vectors":
    import numpy as np

    try:
        said: dict[str, Any] = json.loads(body)
        found = sorted(said["data"], key=lambda one: one["index"])
        rows = np.array([one["embedding"] for one in found], dtype=np.float32)
    except (ValueError, KeyError, TypeError):
        raise EmbedderUnavailable("The embedder answered with no embeddings. Check embed.url.") from None
    if rows.ndim != 2 or rows.shape[0] != wanted or not np.isfinite(rows).all():
        raise EmbedderUnavailable(f"The embedder answered with other than {wanted} vectors of numbers.")
    return normalize(rows)
