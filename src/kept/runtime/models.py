"""The embedding model and the reranker that the settings ask for."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING

from kept.settings import Settings
from kept.store.database import Database

if TYPE_CHECKING:  # heavy: a lexical search loads none of it
    from kept.embed.providers import EmbedderFactory
    from kept.embed.remote import ModelResponse
    from kept.embed.reranker import Reranker
    from kept.maintenance.embedding_backlog import EmbeddingBacklog
    from kept.origins.web.http.client import HttpClient
    from kept.search.rerank import Reranking
    from kept.search.vector_search import VectorSearchOptions

EMBED_INTERVAL_SECONDS = 2.0
EMBED_FINISH_TIMEOUT_SECONDS = 30.0  # for the vectors that are missing when a crawl ends


class SearchModels:
    """Makes the embedder and the reranker on first use, with HTTP clients for those that are servers."""

    def __init__(self, settings: Settings, look_up: Callable[[str], str]) -> None:
        self._settings = settings
        self._look_up = look_up
        self._clients: dict[str, HttpClient] = {}  # by section of the settings

    @cached_property
    def providers(self) -> "EmbedderFactory":
        from kept.embed.providers import EmbedderConfig, EmbedderFactory

        embed = self._settings.embed
        config = EmbedderConfig(
            provider=embed.provider,
            model=embed.model,
            batch=embed.batch_size,
            dimensions=embed.dimensions,
            has_url=bool(embed.url),
            is_vector_search_enabled=self._settings.search.mode != "lexical",
        )
        return EmbedderFactory(config, self._post_to_embedder)

    @cached_property
    def embedding_backlog(self) -> "EmbeddingBacklog | None":
        """Return what embeds new sections, or None if there are to be no vectors."""
        if self._settings.embed.provider == "auto" and self._settings.search.mode == "lexical":
            return None  # the default: nothing is imported for it
        from kept.maintenance.embedding_backlog import EmbeddingBacklog

        embedder = self.providers.for_indexing()
        return EmbeddingBacklog(embedder) if embedder else None

    def vector_search(self) -> "VectorSearchOptions | None":
        """Return how searches use vectors, or None when they are purely lexical."""
        mode = self._settings.search.mode
        if mode == "lexical":
            return None
        from kept.search.vector_search import VectorSearchOptions

        return VectorSearchOptions(mode, self.providers.for_queries)

    def reranking(self) -> "Reranking | None":
        """Return the reranker for one search, or None when none is configured."""
        if not self._settings.rerank.url:
            return None
        from kept.search.rerank import Reranking

        return Reranking(reranker=self._reranker, top_n=max(1, self._settings.rerank.hits))

    @cached_property
    def _reranker(self) -> "Reranker":
        from kept.embed.reranker import RemoteReranker

        rerank = self._settings.rerank
        return RemoteReranker(self._post_to_reranker, rerank.model, timeout_seconds=max(0.1, rerank.seconds))

    @asynccontextmanager
    async def embed_in_background(self, db: Database) -> AsyncIterator[None]:
        """Embed new sections while the block runs. At its end, wait a while for those that are still missing."""
        if (backlog := self.embedding_backlog) is None:
            yield
            return
        ended = asyncio.Event()

        async def embed_until_ended() -> None:
            while not ended.is_set():
                with suppress(TimeoutError):
                    await asyncio.wait_for(ended.wait(), EMBED_INTERVAL_SECONDS)
                await backlog.embed_pending(db)

        embedding = asyncio.create_task(embed_until_ended())
        try:
            yield
            ended.set()
            await asyncio.wait({embedding}, timeout=EMBED_FINISH_TIMEOUT_SECONDS)
        finally:
            embedding.cancel()  # a pass may be interrupted anywhere
            await asyncio.gather(embedding, return_exceptions=True)

    async def close(self) -> None:
        for client in self._clients.values():
            await client.close()

    async def _post_to_embedder(self, body: bytes, seconds: float) -> "ModelResponse":
        from kept.errors import EmbedderUnavailable, SecretUnavailable

        embed = self._settings.embed
        try:
            return await self._post("embed", f"{embed.url.rstrip('/')}/embeddings", embed.key, body, seconds)
        except SecretUnavailable as error:
            raise EmbedderUnavailable(f"embed.key is not available: {error}") from None

    async def _post_to_reranker(self, body: bytes, seconds: float) -> "ModelResponse":
        from kept.errors import RerankerUnavailable, SecretUnavailable

        rerank = self._settings.rerank
        try:
            return await self._post("rerank", f"{rerank.url.rstrip('/')}/rerank", rerank.key, body, seconds)
        except SecretUnavailable as error:
            raise RerankerUnavailable(f"rerank.key is not available: {error}") from None

    async def _post(self, section: str, url: str, key: str, body: bytes, seconds: float) -> "ModelResponse":
        from kept.embed.remote import ModelResponse
        from kept.origins.web.http.messages import HttpResponse
        from kept.origins.web.outbound import make_model_client, post_to_model

        if section not in self._clients:
            self._clients[section] = make_model_client(url, self._look_up(key))
        response = await post_to_model(self._clients[section], url, body, seconds)
        if isinstance(response, HttpResponse):
            return ModelResponse(status=response.status, body=response.body, headers=response.headers)
        return ModelResponse(status=None, reason=response.reason)
