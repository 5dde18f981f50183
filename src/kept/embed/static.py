"""The built-in embedding model: the vector of a text is the mean of the vectors of its tokens.

Only words are tokenized. Tokenizing whole texts with their punctuation takes twice as long and ranks worse (decision
16).

Weights and tokenizer are those of the installed package wordllama. Its code is not imported: it would bring an HTTP
client that downloads missing files.
"""

import asyncio
import json
import re
from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from kept.embed.embedder import normalize
from kept.errors import EmbedderUnavailable

if TYPE_CHECKING:
    import numpy as np
    from tokenizers import Tokenizer

    from kept.embed.embedder import Vectors

MODEL = "static:l2_supercat_256"
REQUIRED_PACKAGES = ("numpy", "tokenizers", "wordllama")
MAX_CACHED_WORDS = 200_000

_WORD = re.compile(r"[^\W_]+")


def is_installed() -> bool:
    return all(find_spec(name) for name in REQUIRED_PACKAGES)


class StaticEmbedder:
    """Runs in this process, without network. The model is loaded for the first text."""

    model = MODEL
    dimensions = 256
    batch = 1000

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._token_ids: dict[str, list[int]] = {}
        self._lock = asyncio.Lock()

    async def embed(self, texts: Sequence[str]) -> "Vectors":
        async with self._lock:
            return await asyncio.to_thread(self._embed, list(texts))

    def _embed(self, texts: list[str]) -> "Vectors":
        import numpy as np

        words = [_WORD.findall(text) for text in texts]
        self._tokenize_new_words(set().union(*words))
        known, rows = self._token_ids, np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text_words in zip(rows, words, strict=True):
            if tokens := [token for word in text_words for token in known[word]]:
                self._weights[tokens].mean(axis=0, out=row)
        return normalize(rows)

    def _tokenize_new_words(self, words: set[str]) -> None:
        if len(self._token_ids) > MAX_CACHED_WORDS:
            self._token_ids.clear()
        new = list(words - self._token_ids.keys())
        for word, encoding in zip(new, self._tokenizer.encode_batch_fast(new, add_special_tokens=False), strict=True):
            self._token_ids[word] = encoding.ids

    @cached_property
    def _model_folder(self) -> Path:
        if self._folder:
            return self._folder
        package = find_spec("wordllama")  # found, not imported
        if package is None or package.origin is None:
            raise EmbedderUnavailable(
                "The built-in model is not installed. Install it with: pip install 'kept-docs[meaning]'"
            )
        return Path(package.origin).parent

    @cached_property
    def _tokenizer(self) -> "Tokenizer":
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(self._model_folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        return tokenizer

    @cached_property
    def _weights(self) -> "np.ndarray[tuple[int, int], np.dtype[np.float32]]":
        """Read the only table of a safetensors file: eight bytes of header length, a JSON header, and the numbers."""
        import numpy as np

        file = self._model_folder / "weights" / "l2_supercat_256.safetensors"
        with file.open("rb") as opened:
            length = int.from_bytes(opened.read(8), "little")
            header = json.loads(opened.read(length))["embedding.weight"]
            dtype = {"F16": "<f2", "F32": "<f4"}[header["dtype"]]
            numbers = np.fromfile(opened, dtype=dtype, offset=header["data_offsets"][0])
        rows, columns = header["shape"]
        return numbers[: rows * columns].reshape(rows, columns).astype(np.float32)
