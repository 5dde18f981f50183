"""Which embedder there is, by what the operator said."""

from collections.abc import Callable
from importlib.util import find_spec

from kept.embed import static
from kept.embed.embedder import Embedder
from kept.embed.remote import PATIENCE, Post, RemoteEmbedder
from kept.errors import WrongCall
from kept.model.nouns import dataclass

QUERY_PATIENCE = 2.0  # seconds; somebody waits for the answer
INSTALL = "pip install 'kept[meaning]'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    provider: str  # static, openai, none; auto: static if it is installed and used
    model: str = ""
    batch: int = 64
    dimensions: int = 0
    has_url: bool = False
    is_used: bool = True  # searches go by meaning


class Providers:
    """The embedders of one process: made when they are needed."""

    def __init__(self, choice: Choice, post: Post) -> None:
        self._choice = choice
        self._post = post
        self._made: dict[str, Embedder] = {}

    def wanted(self) -> Embedder | None:
        """The one that new vectors are made by; None: nobody wants any. WrongCall where it cannot be had."""
        choice = self._choice
        match choice.provider:
            case "static":
                if not static.is_installed():
                    raise WrongCall(f"embed.provider is static, and its model is not installed: {INSTALL}")
                return self._static()
            case "openai":
                if not find_spec("numpy"):
                    raise WrongCall(f"embed.provider is openai, and NumPy is not installed: {INSTALL}")
                return self._remote(choice.model, choice.dimensions, PATIENCE)
            case "auto" if choice.is_used and static.is_installed():
                return self._static()
            case _:
                return None

    def of(self, model: str) -> Embedder | None:
        """The one for queries, by the model that serves. It may be the one before: built in, or of the same server."""
        if model == static.MODEL:
            return self._static() if static.is_installed() else None
        if not self._choice.has_url or not find_spec("numpy"):
            return None
        name, _, dimensions = model.rpartition("/")
        if not name or not dimensions.isdecimal():
            name, dimensions = model, "0"
        return self._remote(name, int(dimensions), QUERY_PATIENCE)

    def _static(self) -> Embedder:
        return self._once(static.MODEL, static.StaticEmbedder)

    def _remote(self, name: str, dimensions: int, patience: float) -> Embedder:
        made = RemoteEmbedder(
            self._post, name, dimensions=dimensions, batch=max(1, self._choice.batch), patience=patience
        )
        return self._once(f"{made.model} {patience}", lambda: made)

    def _once(self, key: str, make: Callable[[], Embedder]) -> Embedder:
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]
