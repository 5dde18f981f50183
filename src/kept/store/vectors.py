"""Vectors: one for each text and model, however many sections, versions and sources share the text."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from kept.model.embedding import EmbeddingModel, EmbeddingModelState
from kept.model.section import SectionText
from kept.store.database import Connection, Row

if TYPE_CHECKING:  # heavy, and not part of a plain install
    import numpy as np

    Vector = np.ndarray[tuple[int], np.dtype[np.float32]]


# Models --------------------------------------------------------------------------------------------------------


async def prepare(db: Connection) -> bool:
    """Return whether this database can compare vectors."""
    row = await db.one("prepare_vectors")
    return bool(row and row["ready"])


async def lock_models(db: Connection) -> list[EmbeddingModel]:
    """Return all models, locked until the transaction ends."""
    return [_model(row) for row in await db.all("lock_models")]


async def serving_model(db: Connection) -> EmbeddingModel | None:
    row = await db.one("serving_model")
    return _model(row) if row else None


async def target_model(db: Connection) -> EmbeddingModel | None:
    """Return the model that new vectors are computed with: the wanted one, else the serving one."""
    row = await db.one("target_model")
    return _model(row) if row else None


async def insert_model(db: Connection, name: str, state: EmbeddingModelState) -> None:
    """Insert a model. Does nothing if it exists."""
    await db.run("insert_model", name=name, state=state)


async def set_state(db: Connection, model: int, state: EmbeddingModelState) -> None:
    await db.run("set_model_state", model=model, state=state)


async def requeue_contents(db: Connection) -> None:
    """Queue every content for embedding again."""
    await db.run("requeue_contents")


async def build_index(db: Connection, model: int, *, min_vectors: int) -> None:
    """Create the index of a model's vectors, in databases that need one beyond a certain number."""
    await db.all("create_vector_index", model=model, enough=min_vectors)


# Embedding ---------------------------------------------------------------------------------------------------


async def list_unembedded(db: Connection, *, now: datetime, limit: int) -> list[int]:
    """Return the contents that are due."""
    return [row["content_id"] for row in await db.all("unembedded_contents", now=now, limit=limit)]


async def has_unembedded(db: Connection) -> bool:
    return await db.one("has_unembedded") is not None


async def texts_of_contents(db: Connection, contents: Sequence[int]) -> list[SectionText]:
    rows = await db.all("texts_of_contents", contents=list(contents))
    return [SectionText(id=row["id"], title=row["title"], headings=row["headings"], text=row["text"]) for row in rows]


async def insert_section_texts(db: Connection, contents: Sequence[int], hashes: Mapping[int, str]) -> None:
    """Store which text stands for which section. The transaction locks the contents against gc."""
    await db.all("lock_contents_by_id", contents=list(contents))
    await db.run_many("insert_section_text", [{"section": id, "hash": hash} for id, hash in hashes.items()])


async def hashes_without_vector(db: Connection, model: int, hashes: Sequence[str]) -> list[str]:
    """Return those of the texts that have no vector, in order. The transaction locks the vectors of the others."""
    held = {row["hash"] for row in await db.all("lock_vectors_by_hash", model=model, hashes=list(hashes))}
    return [hash for hash in hashes if hash not in held]


async def claim_texts(
    db: Connection, model: int, hashes: Sequence[str], *, now: datetime, until: datetime
) -> list[str]:
    """Claim texts to embed. Returns those that the caller got: no other process gets them before ``until``."""
    rows = await db.all("claim_texts", model=model, hashes=list(hashes), now=now, until=until)
    taken = {row["hash"] for row in rows}
    missing = await hashes_without_vector(db, model, [hash for hash in hashes if hash in taken])
    await release_texts(db, model, sorted(taken - set(missing)))  # another process has just embedded them
    return missing


async def release_texts(db: Connection, model: int, hashes: Sequence[str]) -> None:
    if hashes:
        await db.run("release_texts", model=model, hashes=list(hashes))


async def mark_refused(db: Connection, model: int, hash: str, error: str) -> None:
    """Record that this text never gets a vector of this model."""
    await db.run("mark_refused", model=model, hash=hash, error=error)


async def insert_vectors(db: Connection, model: int, made: "Mapping[str, Vector]") -> None:
    """Store the vectors of claimed texts."""
    if not made:
        return
    await db.run("set_model_dimensions", model=model, dimensions=len(next(iter(made.values()))))
    rows = [{"model": model, "hash": hash, "vector": db.encode_vector(made[hash])} for hash in sorted(made)]
    await db.run_many("insert_vector", rows)
    await release_texts(db, model, sorted(made))


async def mark_embedded(db: Connection, model: int, contents: Sequence[int], *, retry_at: datetime) -> int:
    """Remove contents that have all their vectors from the queue; the others wait. Returns how many were removed."""
    settled = await db.run("mark_embedded", model=model, contents=list(contents))
    if settled < len(contents):
        await db.run("postpone_contents", contents=list(contents), until=retry_at)
    return settled


async def count_unembedded_sections(db: Connection, model: int) -> dict[str, int]:
    """Count the shown sections without a vector of a model, by source. Sources without any are left out."""
    rows = await db.all("count_unembedded_sections", model=model)
    return {row["source_id"]: row["sections"] for row in rows}


# Comparing -----------------------------------------------------------------------------------------------------


async def nearest(
    db: Connection, model: int, query: "Vector", *, limit: int, among: Sequence[int] | None = None
) -> list[tuple[int, float]]:
    """Return ids and similarities of the nearest vectors, best first, whether or not a generation shows them."""
    return await db.nearest(model, query, limit=limit, among=among)


async def in_generations(db: Connection, model: int, generations: Sequence[tuple[str, int]]) -> list[int]:
    """Return every vector of a model that stands for a section of these generations (source, number)."""
    rows = await db.all("vectors_in_generations", model=model, generations=json.dumps(generations))
    return [row["id"] for row in rows]


async def sections_of(
    db: Connection, vectors: Sequence[int], generations: Sequence[tuple[str, int]]
) -> list[tuple[int, int]]:
    """Return (vector, section) for the sections of these vectors that the generations (source, number) show."""
    rows = await db.all("sections_of_vectors", vectors=list(vectors), generations=json.dumps(generations))
    return [(row["vector_id"], row["section_id"]) for row in rows]


# Garbage collection --------------------------------------------------------------------------------------------


async def list_unreferenced(db: Connection, *, after: int, limit: int) -> list[int]:
    """List vectors of no section or of a former model. They are candidates: ``delete`` checks them again."""
    return [row["id"] for row in await db.all("unreferenced_vectors", after=after, limit=limit)]


async def delete(db: Connection, vectors: Sequence[int]) -> int:
    """Delete those of the vectors that are still unreferenced and not locked. Returns how many."""
    locked = [row["id"] for row in await db.all("lock_vectors_for_deletion", vectors=list(vectors))]
    return await db.run("delete_vectors", vectors=locked)


async def delete_former_vectors(db: Connection) -> None:
    """Delete the indexes and claims of models that are no longer used. Their names stay."""
    for row in await db.all("former_models"):
        await db.all("drop_vector_index", model=row["id"])
        await db.run("delete_claims", model=row["id"])


def _model(row: Row) -> EmbeddingModel:
    return EmbeddingModel(
        id=row["id"], name=row["name"], dimensions=row["dimensions"], state=EmbeddingModelState(row["state"])
    )
