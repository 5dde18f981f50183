"""What a text means, as a vector: one protocol, and whoever can keep it.

    static    a small model of words that comes with the extra kept[meaning] and needs no server
    remote    any server that speaks /v1/embeddings, as OpenAI, Ollama, LM Studio and vLLM do

Texts of like meaning have vectors whose inner product is large. Those of two models have nothing to do with each
other.
"""

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:  # heavy, and not part of a plain install
    import numpy as np

    Vectors: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.float32]]

MAX_TEXT_CHARACTERS = 8_000
"""Characters. Sections are shorter; a heading of a thousand words should not push the rest out of a model's window."""


class Embedder(Protocol):
    """Makes vectors by one model."""

    @property
    def model(self) -> str:
        """The same name: the same vectors."""

    @property
    def dimensions(self) -> int:
        """How many numbers a vector has; 0: not known before the first."""

    @property
    def batch(self) -> int:
        """How many texts it likes to be given at once."""

    async def embed(self, texts: Sequence[str]) -> "Vectors":
        """A row for each text, of length one.

        EmbedderUnavailable: not now, for none of them. TextRefused: never, for at least one of them.
        """


def embedding_text(title: str, headings: str, text: str) -> str:
    """What of a section is embedded: where it stands, its own heading included, then what it says."""
    above = " > ".join(part for part in dict.fromkeys((title, *headings.split("\n"))) if part)
    return f"{above}\n{text}"[:MAX_TEXT_CHARACTERS].strip() or "(empty)"


def hash_text(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def normalize(rows: "Vectors") -> "Vectors":
    """The rows, each of length one; what is nothing stays nothing."""
    import numpy as np

    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1), dtype=np.float32)
