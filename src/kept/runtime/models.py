"""Models, built from settings: who makes vectors, who fills in those that are missing, and whom a search asks."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING

from kept.settings import Settings
from kept.store.database import Database

if TYPE_CHECKING:  # heavy: a search by words alone loads none of it
    from kept.embed.providers import EmbedderFactory
    from kept.embed.remote import ModelResponse
    from kept.embed.reranker import Reranker
    from kept.maintenance.embedding_backlog import EmbeddingBacklog
    from kept.origins.web.http.client import HttpClient
    from kept.search.rerank import Reranking
    from kept.search.vector_search import VectorSearchOptions

EMBED_INTERVAL_SECONDS = 2.0
EMBED_FINISH_TIMEOUT_SECONDS = 30.0  # for vectors that are still missing when a crawl has ended here


class SearchModels:
    """The embedder and the reranker of the settings, and their ways out where they are servers."""

    def __init__(self, settings: Settings, look_up: Callable[[str], str]) -> None:
        self._settings = settings
        self._look_up = look_up
        self._clients: dict[str, HttpClient] = {}  # to the operator's own servers, by the section of the settings

    @cached_property
    def providers(self) -> "EmbedderFactory":
        from kept.embed.providers import EmbedderConfig, EmbedderFactory

        said = self._settings.embed
        choice = EmbedderConfig(
            provider=said.provider,
            model=said.model,
            batch=said.batch_size,
            dimensions=said.dimensions,
            has_url=bool(said.url),
            is_vector_search_enabled=self._settings.search.mode != "lexical",
        )
        return EmbedderFactory(choice, self._post_to_embedder)

    @cached_property
    def embedding_backlog(self) -> "EmbeddingBacklog | None":
        """Who gives sections their vectors; None: nobody wants any."""
        if self._settings.embed.provider == "auto" and self._settings.search.mode == "lexical":
            return None  # as nearly always: nothing is loaded for that
        from kept.maintenance.embedding_backlog import EmbeddingBacklog

        embedder = self.providers.for_indexing()
        return EmbeddingBacklog(embedder) if embedder else None

    def vector_search(self) -> "VectorSearchOptions | None":
        """What a search goes by; None: words alone."""
        mode = self._settings.search.mode
        if mode == "lexical":
            return None
        from kept.search.vector_search import VectorSearchOptions

        return VectorSearchOptions(mode, self.providers.for_queries)

    def reranking(self) -> "Reranking | None":
        """Who orders the first hits of a search anew; None: nobody."""
        if not self._settings.rerank.url:
            return None
        from kept.search.rerank import Reranking

        return Reranking(reranker=self._reranker, top_n=max(1, self._settings.rerank.hits))

    @cached_property
    def _reranker(self) -> "Reranker":
        from kept.embed.reranker import RemoteReranker

        said = self._settings.rerank
        return RemoteReranker(self._post_to_reranker, said.model, timeout_seconds=max(0.1, said.seconds))

    @asynccontextmanager
    async def embed_in_background(self, db: Database) -> AsyncIterator[None]:
        """Sections get their vectors meanwhile. What is missing at the end is waited for, if that is quick."""
        if (filler := self.embedding_backlog) is None:
            yield
            return
        ended = asyncio.Event()

        async def fill() -> None:
            while not ended.is_set():
                with suppress(TimeoutError):
                    await asyncio.wait_for(ended.wait(), EMBED_INTERVAL_SECONDS)
                await filler.embed_pending(db)

        filling = asyncio.create_task(fill())
        try:
            yield
            ended.set()
            await asyncio.wait({filling}, timeout=EMBED_FINISH_TIMEOUT_SECONDS)
        finally:
            filling.cancel()  # a pass may be cut off anywhere
            await asyncio.gather(filling, return_exceptions=True)

    async def close(self) -> None:
        for way in self._clients.values():
            await way.close()

    async def _post_to_embedder(self, body: bytes, seconds: float) -> "ModelResponse":
        from kept.errors import EmbedderUnavailable, SecretUnavailable

        said = self._settings.embed
        try:
            return await self._post("embed", f"{said.url.rstrip('/')}/embeddings", said.key, body, seconds)
        except SecretUnavailable as error:
            raise EmbedderUnavailable(f"embed.key cannot be had: {error}") from None

    async def _post_to_reranker(self, body: bytes, seconds: float) -> "ModelResponse":
        from kept.errors import RerankerUnavailable, SecretUnavailable

        said = self._settings.rerank
        try:
            return await self._post("rerank", f"{said.url.rstrip('/')}/rerank", said.key, body, seconds)
        except SecretUnavailable as error:
            raise RerankerUnavailable(f"rerank.key cannot be had: {error}") from None

    async def _post(self, section: str, url: str, key: str, body: bytes, seconds: float) -> "ModelResponse":
        from kept.embed.remote import ModelResponse
        from kept.origins.web.http.messages import HttpResponse
        from kept.origins.web.outbound import make_model_client, post_to_model

        if section not in self._clients:
            self._clients[section] = make_model_client(url, self._look_up(key))
        answer = await post_to_model(self._clients[section], url, body, seconds)
        if isinstance(answer, HttpResponse):
            return ModelResponse(status=answer.status, body=answer.body, headers=answer.headers)
        return ModelResponse(status=None, reason=answer.reason)
