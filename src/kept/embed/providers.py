"""Chooses the embedder that the settings ask for."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

from kept.embed import static
from kept.embed.embedder import Embedder
from kept.embed.remote import TIMEOUT_SECONDS, PostJson, RemoteEmbedder
from kept.errors import InvalidInput

QUERY_TIMEOUT_SECONDS = 2.0  # short: a user waits for the search
INSTALL_COMMAND = "pip install 'kept-docs[meaning]'"


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedderConfig:
    provider: str  # static, openai, none; auto: static if it is installed and searches use vectors
    model: str = ""
    batch: int = 64
    dimensions: int = 0
    has_url: bool = False
    is_vector_search_enabled: bool = True


class EmbedderFactory:
    """Makes the embedders of this process, each on first use."""

    def __init__(self, config: EmbedderConfig, post: PostJson) -> None:
        self._config = config
        self._post = post
        self._embedders: dict[str, Embedder] = {}

    def for_indexing(self) -> Embedder | None:
        """Return the embedder for new vectors, or None for none. Raises InvalidInput if it is not installed."""
        config = self._config
        match config.provider:
            case "static":
                if not static.is_installed():
                    raise InvalidInput(f"embed.provider is static, and its model is not installed: {INSTALL_COMMAND}")
                return self._static()
            case "openai":
                if not find_spec("numpy"):
                    raise InvalidInput(f"embed.provider is openai, and NumPy is not installed: {INSTALL_COMMAND}")
                return self._remote(config.model, config.dimensions, TIMEOUT_SECONDS)
            case "auto" if config.is_vector_search_enabled and static.is_installed():
                return self._static()
            case _:
                return None

    def for_queries(self, model: str) -> Embedder | None:
        """Return the embedder of the serving model, or None if it is not available here.

        After a change of settings the serving model is the previous one until the new vectors are complete.
        """
        if model == static.MODEL:
            return self._static() if static.is_installed() else None
        if not self._config.has_url or not find_spec("numpy"):
            return None
        name, _, dimensions = model.rpartition("/")
        if not name or not dimensions.isdecimal():
            name, dimensions = model, "0"
        return self._remote(name, int(dimensions), QUERY_TIMEOUT_SECONDS)

    def _static(self) -> Embedder:
        return self._get_or_create(static.MODEL, static.StaticEmbedder)

    def _remote(self, name: str, dimensions: int, timeout_seconds: float) -> Embedder:
        embedder = RemoteEmbedder(
            self._post, name, dimensions=dimensions, batch=max(1, self._config.batch), timeout_seconds=timeout_seconds
        )
        return self._get_or_create(f"{embedder.model} {timeout_seconds}", lambda: embedder)

    def _get_or_create(self, key: str, make: Callable[[], Embedder]) -> Embedder:
        if key not in self._embedders:
            self._embedders[key] = make()
        return self._embedders[key]
