"""The Embedder protocol: texts in, vectors out.

    static    a small word model that comes with the extra kept-docs[meaning] and needs no server
    remote    any server with the /v1/embeddings API: OpenAI, Ollama, LM Studio, vLLM

Similar texts have vectors with a large inner product. Vectors of different models cannot be compared.
"""

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:  # heavy, and not part of a plain install
    import numpy as np

    Vectors: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.float32]]

MAX_TEXT_CHARACTERS = 8_000
"""Sections are shorter; an overlong heading must not push the text out of the model's window."""


class Embedder(Protocol):
    """Computes vectors with one model."""

    @property
    def model(self) -> str:
        """The model's name. Two embedders of the same name give the same vectors."""

    @property
    def dimensions(self) -> int:
        """The length of a vector; 0: unknown before the first one."""

    @property
    def batch(self) -> int:
        """How many texts to send in one call."""

    async def embed(self, texts: Sequence[str]) -> "Vectors":
        """Return a normalized row for each text.

        Raises EmbedderUnavailable when it should be tried again later, TextRejected when at least one of the texts
        will never be accepted.
        """


def embedding_text(title: str, headings: str, text: str) -> str:
    """Return the text of a section that is embedded: title and headings, then its own text."""
    above = " > ".join(part for part in dict.fromkeys((title, *headings.split("\n"))) if part)
    return f"{above}\n{text}"[:MAX_TEXT_CHARACTERS].strip() or "(empty)"


def hash_text(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def normalize(rows: "Vectors") -> "Vectors":
    """Return the rows scaled to length one; zero rows stay zero."""
    import numpy as np

    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1), dtype=np.float32)
