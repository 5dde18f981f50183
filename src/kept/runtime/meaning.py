"""Models, built from settings: who makes vectors, who fills in those that are missing, and whom a search asks."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING

from kept.settings import Settings
from kept.store.database import Database

if TYPE_CHECKING:  # heavy: a search by words alone loads none of it
    from kept.embed.providers import Providers
    from kept.embed.remote import Reply
    from kept.embed.reranker import Reranker
    from kept.origins.web.egress import Egress
    from kept.search.meaning import By
    from kept.search.rerank import SecondLook
    from kept.upkeep.embedding import Filler

EMBED_SECONDS = 2.0
FINISH_SECONDS = 30.0  # for vectors that are still missing when a crawl has ended here


class Meaning:
    """The embedder and the reranker of the settings, and their ways out where they are servers."""

    def __init__(self, settings: Settings, look_up: Callable[[str], str]) -> None:
        self._settings = settings
        self._look_up = look_up
        self._ways: dict[str, Egress] = {}  # to the operator's own servers, by the section of the settings

    @cached_property
    def providers(self) -> "Providers":
        from kept.embed.providers import Choice, Providers

        said = self._settings.embed
        choice = Choice(
            provider=said.provider,
            model=said.model,
            batch=said.batch_size,
            dimensions=said.dimensions,
            has_url=bool(said.url),
            is_used=self._settings.search.mode != "lexical",
        )
        return Providers(choice, self._post_to_embedder)

    @cached_property
    def filler(self) -> "Filler | None":
        """Who gives sections their vectors; None: nobody wants any."""
        if self._settings.embed.provider == "auto" and self._settings.search.mode == "lexical":
            return None  # as nearly always: nothing is loaded for that
        from kept.upkeep.embedding import Filler

        embedder = self.providers.wanted()
        return Filler(embedder) if embedder else None

    def searches_by(self) -> "By | None":
        """What a search goes by; None: words alone."""
        mode = self._settings.search.mode
        if mode == "lexical":
            return None
        from kept.search.meaning import By

        return By(mode, self.providers.of)

    def second_look(self) -> "SecondLook | None":
        """Who orders the first hits of a search anew; None: nobody."""
        if not self._settings.rerank.url:
            return None
        from kept.search.rerank import SecondLook

        return SecondLook(reranker=self._reranker, hits=max(1, self._settings.rerank.hits))

    @cached_property
    def _reranker(self) -> "Reranker":
        from kept.embed.reranker import RemoteReranker

        said = self._settings.rerank
        return RemoteReranker(self._post_to_reranker, said.model, patience=max(0.1, said.seconds))

    @asynccontextmanager
    async def filling(self, db: Database) -> AsyncIterator[None]:
        """Sections get their vectors meanwhile. What is missing at the end is waited for, if that is quick."""
        if (filler := self.filler) is None:
            yield
            return
        ended = asyncio.Event()

        async def fill() -> None:
            while not ended.is_set():
                with suppress(TimeoutError):
                    await asyncio.wait_for(ended.wait(), EMBED_SECONDS)
                await filler.fill(db)

        filling = asyncio.create_task(fill())
        try:
            yield
            ended.set()
            await asyncio.wait({filling}, timeout=FINISH_SECONDS)
        finally:
            filling.cancel()  # a pass may be cut off anywhere
            await asyncio.gather(filling, return_exceptions=True)

    async def close(self) -> None:
        for way in self._ways.values():
            await way.close()

    async def _post_to_embedder(self, body: bytes, seconds: float) -> "Reply":
        from kept.errors import EmbedderUnavailable, SecretUnavailable

        said = self._settings.embed
        try:
            return await self._post("embed", f"{said.url.rstrip('/')}/embeddings", said.key, body, seconds)
        except SecretUnavailable as error:
            raise EmbedderUnavailable(f"embed.key cannot be had: {error}") from None

    async def _post_to_reranker(self, body: bytes, seconds: float) -> "Reply":
        from kept.errors import RerankerUnavailable, SecretUnavailable

        said = self._settings.rerank
        try:
            return await self._post("rerank", f"{said.url.rstrip('/')}/rerank", said.key, body, seconds)
        except SecretUnavailable as error:
            raise RerankerUnavailable(f"rerank.key cannot be had: {error}") from None

    async def _post(self, section: str, url: str, key: str, body: bytes, seconds: float) -> "Reply":
        from kept.embed.remote import Reply
        from kept.origins.web.exchange import Answer
        from kept.origins.web.posting import ask_model, model_egress

        if section not in self._ways:
            self._ways[section] = model_egress(url, self._look_up(key))
        answer = await ask_model(self._ways[section], url, body, seconds)
        if isinstance(answer, Answer):
            return Reply(status=answer.status, body=answer.body, headers=answer.headers)
        return Reply(status=None, reason=answer.reason)
