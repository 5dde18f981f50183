"""Search the same rows with plain FTS5 and BM25, by whole pages and by sections."""

import re
from collections.abc import Iterator
from pathlib import Path

import apsw

from bench.quality.judge import JudgedHit
from kept.store.compression import decompress

TOKENS = "porter unicode61"


class PlainFts:
    """A search for all of the words, then for any of them."""

    def __init__(self, rows: Iterator[tuple[str, str | None, str, str, str]], root: str, weights: str) -> None:
        self._db = apsw.Connection(":memory:")
        self._root = root
        self._weights = weights
        self._db.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, url, anchor, text)")
        self._db.execute(
            f"CREATE VIRTUAL TABLE words USING fts5 (title, headings, text, tokenize='{TOKENS}', content='')"
        )
        with self._db:
            for id, (url, anchor, title, headings, text) in enumerate(rows):
                self._db.execute("INSERT INTO rows VALUES (?, ?, ?, ?)", (id, url, anchor, text))
                self._db.execute(
                    "INSERT INTO words (rowid, title, headings, text) VALUES (?, ?, ?, ?)", (id, title, headings, text)
                )

    def search(self, query: str, limit: int = 10) -> list[JudgedHit]:
        words = [f'"{word}"' for word in re.findall(r"[^\W_]+", query)]
        found: dict[int, JudgedHit] = {}
        for joint in (" AND ", " OR "):
            if len(found) < limit:
                rows = self._db.execute(
                    "SELECT rows.id, rows.url, rows.anchor, rows.text FROM words JOIN rows ON rows.id = words.rowid"
                    f" WHERE words MATCH ? ORDER BY bm25(words, {self._weights}) LIMIT ?",
                    (joint.join(words), limit),
                )
                for id, url, anchor, text in rows:
                    found.setdefault(id, JudgedHit(str(url).removeprefix(self._root), anchor, text))
        return list(found.values())[:limit]


def plain_sections(kept: Path, root: str) -> PlainFts:
    """Title × 10, headings × 5, text."""
    rows = _open(kept).execute(
        "SELECT v.url, s.anchor, c.title, s.headings, s.text"
        " FROM versions v JOIN contents c ON c.id = v.content_id JOIN sections s ON s.content_id = c.id ORDER BY s.id"
    )
    return PlainFts(rows, root, "10.0, 5.0, 1.0")  # type: ignore[arg-type]


def plain_pages(kept: Path, root: str) -> PlainFts:
    """Title × 10, text."""
    rows = _open(kept).execute(
        "SELECT v.url, c.title, c.markdown FROM versions v JOIN contents c ON c.id = v.content_id"
    )
    return PlainFts(((url, None, title, "", decompress(text)) for url, title, text in rows), root, "10.0, 0.0, 1.0")  # type: ignore[misc]


def _open(kept: Path) -> apsw.Connection:
    return apsw.Connection(str(kept), flags=apsw.SQLITE_OPEN_READONLY)
