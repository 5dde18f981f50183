"""The embedding backlog: computes the missing vectors of sections, independently of crawls.

    1. pending contents    a trigger enqueues each new content; a new model enqueues all of them
    2. texts               by hash: a text that has a vector of the model, from any section, needs no other
    3. claimed             each text by one process, under a lease
    4. embedded, stored    in batches, each in a transaction of its own
    5. done                a content with all its vectors leaves the queue; when it is empty, a wanted model serves

Any number of processes may do this and be killed at any point: stored vectors stay, leases expire.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from kept.embed.embedder import Embedder, embedding_text, hash_text
from kept.errors import EmbedderUnavailable, TextRejected
from kept.log import Log
from kept.model.embedding import EmbeddingModel, EmbeddingModelState
from kept.store import vectors
from kept.store.database import Connection, Database, current_time

if TYPE_CHECKING:
    from kept.store.database import Vector

log = Log(__name__)

BATCH_SIZE = 200  # contents
TEXT_LEASE = timedelta(minutes=2)  # longer than the timeout of any embedder
RETRY_DELAY = timedelta(seconds=10)  # for texts that another process has claimed
MIN_VECTORS_FOR_INDEX = 10_000
MIN_BACKOFF_SECONDS, MAX_BACKOFF_SECONDS = 2.0, 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingReport:
    embedded: int = 0  # texts
    refused: int = 0
    contents: int = 0  # whose vectors are complete now


class EmbeddingBacklog:
    """One for each process: requests its model once, and backs off while the embedder is not available."""

    def __init__(self, embedder: Embedder, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._embedder = embedder
        self._clock = clock
        self._is_model_requested = False
        self._dimensions = 0  # of the vectors so far; 0: unknown
        self._backoff = 0.0
        self._backoff_until = 0.0

    async def embed_pending(self, db: Database, *, seconds: float = float("inf")) -> EmbeddingReport:
        """Embed what is pending, for about so many seconds at most. Stops if the embedder is not available."""
        started, report = self._clock(), EmbeddingReport()
        if started < self._backoff_until:
            return report
        model = await self._get_target_model(db)
        try:
            while model and self._clock() - started < seconds:
                async with db.snapshot() as snapshot:
                    contents = await vectors.list_unembedded(
                        snapshot, now=await current_time(snapshot), limit=BATCH_SIZE
                    )
                if not contents:
                    break
                done = await self._embed_contents(db, model, contents)
                self._backoff = 0.0
                report = EmbeddingReport(
                    embedded=report.embedded + done.embedded,
                    refused=report.refused + done.refused,
                    contents=report.contents + done.contents,
                )
        except EmbedderUnavailable as error:
            self._backoff = min(MAX_BACKOFF_SECONDS, max(MIN_BACKOFF_SECONDS, 2 * self._backoff, error.retry_after))
            self._backoff_until = self._clock() + self._backoff
            log.warning(
                "embedder away", model=self._embedder.model, reason=str(error), retry_in=round(self._backoff, 1)
            )
        if model and (report.contents or model.state is EmbeddingModelState.WANTED):
            await _switch_model(db, model)
        return report

    async def _get_target_model(self, db: Database) -> EmbeddingModel | None:
        """Return the model to embed with; None if another one is wanted now, or the database has no vectors."""
        if not self._is_model_requested:
            async with db.transaction() as tx:
                if not await vectors.prepare(tx):
                    log.warning("no vectors", reason="PostgreSQL has no pgvector here; search goes by words alone")
                    return None
                await request_model(tx, self._embedder.model)
            self._is_model_requested = True
        async with db.snapshot() as snapshot:
            wanted = await vectors.target_model(snapshot)
        return wanted if wanted and wanted.name == self._embedder.model else None

    async def _embed_contents(self, db: Database, model: EmbeddingModel, contents: Sequence[int]) -> EmbeddingReport:
        async with db.snapshot() as snapshot:
            sections = await vectors.texts_of_contents(snapshot, contents)
        text_by_id = {section.id: embedding_text(section.title, section.headings, section.text) for section in sections}
        hashes = {id: hash_text(text) for id, text in text_by_id.items()}
        texts = {hashes[id]: text for id, text in text_by_id.items()}
        async with db.transaction() as tx:
            await vectors.insert_section_texts(tx, contents, hashes)
            missing = await vectors.hashes_without_vector(tx, model.id, list(texts))
        embedded = refused = 0
        for at in range(0, len(missing), self._embedder.batch):
            batch = {hash: texts[hash] for hash in missing[at : at + self._embedder.batch]}
            batch_embedded, batch_refused = await self._embed_batch(db, model, batch)
            embedded, refused = embedded + batch_embedded, refused + batch_refused
        async with db.transaction() as tx:
            completed = await vectors.mark_embedded(
                tx, model.id, contents, retry_at=await current_time(tx) + RETRY_DELAY
            )
        return EmbeddingReport(embedded=embedded, refused=refused, contents=completed)

    async def _embed_batch(self, db: Database, model: EmbeddingModel, texts: dict[str, str]) -> tuple[int, int]:
        """Return how many texts were embedded and how many refused. Other processes have claimed the rest."""
        async with db.transaction() as tx:
            now = await current_time(tx)
            claimed = await vectors.claim_texts(tx, model.id, list(texts), now=now, until=now + TEXT_LEASE)
        if not claimed:
            return 0, 0
        refused: dict[str, str] = {}
        try:
            embedded = await self._embed({hash: texts[hash] for hash in claimed}, refused)
            self._check_dimensions(model, embedded)
        except BaseException:
            async with db.transaction() as tx:
                await vectors.release_texts(tx, model.id, claimed)
            raise
        async with db.transaction() as tx:
            await vectors.insert_vectors(tx, model.id, embedded)
            for hash, why in refused.items():
                await vectors.mark_refused(tx, model.id, hash, why)
        return len(embedded), len(refused)

    def _check_dimensions(self, model: EmbeddingModel, embedded: "dict[str, Vector]") -> None:
        for vector in embedded.values():
            self._dimensions = self._dimensions or model.dimensions or len(vector)
            if len(vector) != self._dimensions:
                raise EmbedderUnavailable(
                    f"The vectors of {model.name} had {self._dimensions} numbers, and now the embedder gives "
                    f"{len(vector)}. "
                    "If it is another model by now, say so with another embed.model or embed.dimensions."
                )

    async def _embed(self, texts: dict[str, str], refused: dict[str, str]) -> "dict[str, Vector]":
        """Return vectors by hash. A rejected batch is split in halves until the rejected texts are found."""
        hashes = list(texts)
        try:
            return dict(zip(hashes, await self._embedder.embed(list(texts.values())), strict=True))
        except TextRejected as error:
            if len(texts) == 1:
                log.warning("text refused", model=self._embedder.model, reason=str(error), text=texts[hashes[0]][:80])
                refused[hashes[0]] = str(error)
                return {}
        middle = len(hashes) // 2
        first = await self._embed({hash: texts[hash] for hash in hashes[:middle]}, refused)
        return first | await self._embed({hash: texts[hash] for hash in hashes[middle:]}, refused)


# Models --------------------------------------------------------------------------------------------------------


async def request_model(tx: Connection, name: str) -> None:
    """Make this model the target of embedding. The serving one goes on until the new vectors are complete."""
    known = await vectors.lock_models(tx)
    if (target := _find_target(known)) and target.name == name:
        return
    named = next((model for model in known if model.name == name), None)
    serves = next((model for model in known if model.state is EmbeddingModelState.SERVING), None)
    for model in known:
        if model.state is EmbeddingModelState.WANTED:
            await vectors.set_state(tx, model.id, EmbeddingModelState.FORMER)
    if named is None:
        await vectors.insert_model(tx, name, EmbeddingModelState.WANTED if serves else EmbeddingModelState.SERVING)
    elif named is not serves:
        await vectors.set_state(tx, named.id, EmbeddingModelState.WANTED)
    await vectors.requeue_contents(tx)


def _find_target(known: Sequence[EmbeddingModel]) -> EmbeddingModel | None:
    """Return the model to embed with: the wanted one, else the serving one."""
    by_state = {model.state: model for model in known}
    return by_state.get(EmbeddingModelState.WANTED) or by_state.get(EmbeddingModelState.SERVING)


async def _switch_model(db: Database, model: EmbeddingModel) -> None:
    """Let a wanted model serve when no content is pending."""
    async with db.transaction() as tx:
        known = await vectors.lock_models(tx)
        if await vectors.has_unembedded(tx) or (target := _find_target(known)) is None or target.id != model.id:
            return
        await vectors.build_index(tx, model.id, min_vectors=MIN_VECTORS_FOR_INDEX)
        if target.state is EmbeddingModelState.WANTED:
            for one in known:
                if one.state is EmbeddingModelState.SERVING:
                    await vectors.set_state(tx, one.id, EmbeddingModelState.FORMER)
            await vectors.set_state(tx, model.id, EmbeddingModelState.SERVING)
            log.info("model serves", model=model.name)


# Garbage collection --------------------------------------------------------------------------------------------


async def delete_unused_vectors(db: Database, *, batch_size: int = 2_000) -> int:
    """Delete vectors without a section and those of former models. Returns how many."""
    after, total = 0, 0
    while True:
        async with db.snapshot() as snapshot:
            unreferenced = await vectors.list_unreferenced(snapshot, after=after, limit=batch_size)
        async with db.transaction() as tx:
            total += await vectors.delete(tx, unreferenced) if unreferenced else 0
            if not unreferenced:
                await vectors.delete_former_vectors(tx)
                return total
        after = unreferenced[-1]
