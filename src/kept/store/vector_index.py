"""Nearest vectors by comparing all of them in memory, for SQLite.

A vector is stored as a scale and a byte for each number: a quarter of the size, with the same order of results but for
ties. Up to ``MAX_FLOAT_VECTORS`` they are held as floats, which is faster; beyond that as bytes.
"""

import threading
from collections.abc import Sequence
from typing import Any

import apsw
import numpy as np

MAX_FLOAT_VECTORS = 200_000
ROWS_PER_CHUNK = 16_384  # bytes are converted to floats in chunks

Vector = np.ndarray[tuple[int], np.dtype[np.float32]]


def quantize(vector: Vector) -> bytes:
    scale = np.float32(max(float(np.abs(vector).max(initial=0.0)), 1e-12) / 127)
    return bytes(scale.tobytes() + np.rint(vector / scale).astype(np.int8).tobytes())


class VectorIndex:
    """The vectors of one model, loaded once and kept current. Safe to use from several threads."""

    def __init__(self, *, max_floats: int = MAX_FLOAT_VECTORS) -> None:
        self._max_floats = max_floats
        self._lock = threading.Lock()
        self._reset(-1)

    def nearest(
        self, connection: apsw.Connection, model: int, query: Vector, limit: int, among: Sequence[int] | None
    ) -> list[tuple[int, float]]:
        """Return ids and scores, best first; of all vectors, or of those among some ids."""
        with self._lock:
            self._refresh(connection, model)
            rows = slice(0, self._count) if among is None else self._rows_of(among)
            ids, scores = self._ids[rows], self._scores(np.ascontiguousarray(query, dtype=np.float32), rows)
        count = min(limit, len(scores))
        best = np.argpartition(-scores, count - 1)[:count] if 0 < count < len(scores) else np.arange(len(scores))
        best = best[np.lexsort((best, -scores[best]))]
        return list(zip(ids[best].tolist(), scores[best].tolist(), strict=True))

    def _reset(self, model: int) -> None:
        self._model = model
        self._last = 0
        self._count = 0
        # With spare capacity, so that new vectors are added without copying the others.
        self._ids: Any = np.empty(0, np.int64)
        self._scales: Any = np.empty(0, np.float32)
        self._numbers: Any = np.empty((0, 0), np.float32)  # floats, scaled; or int8, not scaled

    def _refresh(self, connection: apsw.Connection, model: int) -> None:
        """Load new vectors. Deleted ones lead to no section and may stay; once a fifth is deleted, load all again."""
        newest = connection.execute("SELECT max(id) FROM vectors").get or 0
        if model == self._model and newest == self._last:
            return
        stored = connection.execute("SELECT count(*) FROM vectors WHERE model_id = ?", (model,)).get
        if model != self._model or self._count > 1.25 * stored + 1000:
            self._reset(model)
        rows = connection.execute(
            "SELECT id, vector FROM vectors NOT INDEXED WHERE model_id = ? AND id > ? ORDER BY id", (model, self._last)
        ).fetchall()
        self._last = max(newest, self._last)
        if rows:
            self._add(rows)

    def _add(self, rows: Sequence[tuple[Any, ...]]) -> None:
        kind = np.dtype([("scale", "<f4"), ("numbers", "i1", (len(rows[0][1]) - 4,))])
        fresh = np.frombuffer(b"".join([vector for _, vector in rows]), dtype=kind)
        self._grow(len(rows), fresh["numbers"].shape[1])
        added = slice(self._count, self._count + len(rows))
        self._ids[added] = [id for id, _ in rows]
        self._scales[added] = fresh["scale"]
        in_bytes = self._numbers.dtype == np.int8
        self._numbers[added] = fresh["numbers"] if in_bytes else fresh["numbers"] * fresh["scale"][:, None]
        self._count += len(rows)

    def _grow(self, more: int, dimensions: int) -> None:
        if self._count + more > self._max_floats and self._numbers.dtype == np.float32:
            held = np.rint(self._numbers[: self._count] / self._scales[: self._count, None])
            self._numbers = held.astype(np.int8)
        if self._count + more > len(self._numbers):
            capacity = max(2 * self._count, self._count + more)
            self._ids, self._scales = _enlarged(self._ids, (capacity,)), _enlarged(self._scales, (capacity,))
            self._numbers = _enlarged(self._numbers, (capacity, dimensions))

    def _rows_of(self, among: Sequence[int]) -> Any:
        """Return the rows of these ids. Ids only grow, so they are sorted."""
        wanted = np.array(sorted(among), np.int64)
        rows = np.searchsorted(self._ids[: self._count], wanted)
        rows = rows[rows < self._count]
        return rows[np.isin(self._ids[rows], wanted)]

    def _scores(self, query: Vector, rows: Any) -> Any:
        numbers = self._numbers[rows]
        if not len(numbers):
            return np.empty(0, np.float32)
        if numbers.dtype == np.float32:
            return numbers @ query
        parts = [
            numbers[at : at + ROWS_PER_CHUNK].astype(np.float32) @ query
            for at in range(0, len(numbers), ROWS_PER_CHUNK)
        ]
        return np.concatenate(parts) * self._scales[rows]


def _enlarged(array: Any, shape: tuple[int, ...]) -> Any:
    grown = np.empty(shape, array.dtype)
    if array.size:
        grown[: len(array)] = array
    return grown
