"""Embedding models that the store has vectors of."""

from dataclasses import dataclass
from enum import StrEnum


class EmbeddingModelState(StrEnum):
    WANTED = "wanted"  # its vectors are being computed; it serves when they are complete
    SERVING = "serving"  # queries are compared with its vectors
    FORMER = "former"  # garbage collection deletes its vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingModel:
    id: int
    name: str
    dimensions: int | None  # None: it has no vector yet
    state: EmbeddingModelState
