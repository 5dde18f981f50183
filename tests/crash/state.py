"""The state of a database after a crawl, in a form in which two runs can be compared.

Ids and times are left out: a document is called by the URL at which it was first seen, a content by its hash. So are
depths: the depth of a page comes from the first link to it, and which link comes first is chance.
"""

import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import apsw
import psycopg

WATCHER = "watcher"  # the name of a session that only reads

State = dict[str, list[tuple[Any, ...]]]

DOCUMENT = """(SELECT first.url || ' @' || CAST(first.born AS TEXT) FROM versions first
                WHERE first.document_id = {id} ORDER BY first.born LIMIT 1)"""

# A file that was written a moment ago has no ETag yet, and how long a moment is, is chance.
ETAG = "CASE WHEN {of}.url LIKE 'file:%' THEN NULL ELSE {of}.etag END"

SECTIONS = "s.position, s.parent_section_id - s.content_id * 1048576, s.level, s.heading, s.headings, s.anchor, s.text"

EVERYTHING = {
    "sources": "SELECT name, version, kind, root, active_generation, next_generation FROM sources",
    "generations": """SELECT number, base, state, whole, changed, cleared, documents, tally, partial, reason
                        FROM generations""",
    "documents": f"""SELECT {DOCUMENT.format(id="d.id")}, d.first_generation, d.lifecycle, d.missed_crawls,
                            d.retry_count, d.reason FROM documents d""",
    "versions": f"""SELECT {DOCUMENT.format(id="v.document_id")}, v.url, v.born, v.died, v.pending, v.read_again,
                           c.hash, v.content_type, {ETAG.format(of="v")}, v.last_modified, v.raw_hash, v.signature,
                           v.links
                      FROM versions v JOIN contents c ON c.id = v.content_id""",
    "contents": "SELECT hash, title, size, markdown FROM contents",
    "sections": f"SELECT c.hash, {SECTIONS} FROM sections s JOIN contents c ON c.id = s.content_id",
    "jobs": """SELECT mode, status, again, generation, listed, lists_everything, limited, unlisted, held, discovered,
                      n_new, n_changed, n_unchanged, n_moved, n_gone, n_failed, n_skipped, bytes, error_message
                 FROM crawl_jobs""",
    "workers": "SELECT name FROM job_workers",
    # The frontier of a cancelled crawl is no ledger, and how far it got is chance.
    "frontier": f"""SELECT j.generation, f.url, f.reached, {DOCUMENT.format(id="f.document_id")}, f.outcome,
                           f.reason, f.by_settings, f.renews, {ETAG.format(of="f")}, f.raw_hash, f.links
                      FROM frontier f JOIN crawl_jobs j ON j.id = f.job_id WHERE j.status <> 'cancelled'""",
}

SHOWN = """SELECT d.url, d.lifecycle, c.hash, (SELECT count(*) FROM sections s WHERE s.content_id = c.id)
             FROM documents_active d JOIN contents c ON c.id = d.content_id"""

SHOWN_ONCE = """SELECT v.url, c.hash FROM versions v JOIN contents c ON c.id = v.content_id
                 WHERE NOT v.pending AND v.born <= {number} AND (v.died IS NULL OR v.died > {number})"""

# None of these may return a row, whatever the run.
UNSOUND = {
    "a URL is two documents": "SELECT source_id, url FROM documents_active GROUP BY source_id, url HAVING count(*) > 1",
    "a document is shown twice": "SELECT id FROM documents_active GROUP BY id HAVING count(*) > 1",
    "a document has no version": """SELECT d.id FROM documents d
                                     WHERE NOT EXISTS (SELECT 1 FROM versions v WHERE v.document_id = d.id)""",
    "a content has no sections": """SELECT c.id FROM contents c WHERE c.size > 0
                                       AND NOT EXISTS (SELECT 1 FROM sections s WHERE s.content_id = c.id)""",
    "a version outlives its generation": """SELECT v.id FROM versions v JOIN generations g
                                                ON g.source_id = v.source_id AND g.number = v.born
                                             WHERE g.state IN ('active', 'retired') AND v.pending""",
}


class Reader(Protocol):
    def rows(self, sql: str) -> list[tuple[Any, ...]]: ...

    def full_text(self) -> list[tuple[Any, ...]]:
        """Return the terms of the full-text index. Raises AssertionError where it does not agree with the sections."""

    def check(self) -> None:
        """Raise AssertionError if the file is not sound."""


@contextmanager
def reading(url: str) -> Iterator[Reader]:
    """Open a connection whose reads all see one snapshot."""
    if url.startswith("sqlite:///"):
        connection = apsw.Connection(url.removeprefix("sqlite:///"))
        connection.set_busy_timeout(60_000)
        try:
            with connection:
                yield _Sqlite(connection)
        finally:
            connection.close()
    else:
        with psycopg.connect(url) as session:
            session.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            yield _Postgres(session)


def everything(url: str) -> State:
    """Return everything to compare, after checking that the database is sound."""
    with reading(url) as db:
        db.check()
        for what, sql in UNSOUND.items():
            assert not db.rows(sql), what
        state = {what: _sorted(db.rows(sql)) for what, sql in EVERYTHING.items()}
        state["full text"] = _sorted(db.full_text())
        for (number,) in db.rows("SELECT number FROM generations WHERE state IN ('active', 'retired')"):
            state[f"generation {number}"] = _sorted(db.rows(SHOWN_ONCE.format(number=number)))
        return state


def difference(state: State, expected: State) -> str:
    """Return where two runs differ, in a few lines; empty if they do not."""
    lines = []
    for what in sorted(state.keys() | expected.keys()):
        found, wanted = state.get(what, []), expected.get(what, [])
        if found != wanted:
            lines.append(f"{what}: {len(found)} rows, expected {len(wanted)}")
            lines += [f"  too much: {row}" for row in found if row not in wanted][:3]
            lines += [f"  missing:  {row}" for row in wanted if row not in found][:3]
    return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interim:
    """The state of a database after a crawl was interrupted."""

    shown: list[tuple[Any, ...]]
    generation: int | None
    done: set[str]  # URLs of the interrupted crawl
    leased: set[str]
    retries: int


def interim(url: str, last_job: str | None) -> Interim:
    """Return the state after an interruption. ``last_job``: the job before the crawl."""
    with reading(url) as db:
        if not db.rows(_tables(url)):
            return Interim(shown=[], generation=None, done=set(), leased=set(), retries=0)
        db.check()
        entries = db.rows(
            f"""SELECT f.url, f.outcome, f.worker_id FROM frontier f JOIN crawl_jobs j ON j.id = f.job_id
                 WHERE CAST(j.id AS TEXT) <> '{last_job}' AND j.created_at = (SELECT max(created_at) FROM crawl_jobs)"""
        )
        jobs = db.rows("SELECT retry_count FROM crawl_jobs WHERE status IN ('pending', 'processing', 'paused')")
        return Interim(
            shown=_sorted(db.rows(SHOWN)),
            generation=next((row[0] for row in db.rows("SELECT active_generation FROM sources")), None),
            done={entry[0] for entry in entries if entry[1]},
            leased={entry[0] for entry in entries if entry[2]},
            retries=max((row[0] for row in jobs), default=0),
        )


def wait_until_left_alone(url: str) -> None:
    """Wait for the sessions of the dead process, which on PostgreSQL end a moment after it."""
    if url.startswith("sqlite"):
        return
    with psycopg.connect(url, autocommit=True) as session:
        others = f"""SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
                        AND pid <> pg_backend_pid() AND application_name <> '{WATCHER}'"""
        while session.execute(others.encode()).fetchall()[0][0]:
            time.sleep(0.002)  # the server does not announce it


def _tables(url: str) -> str:
    catalogue = "sqlite_schema" if url.startswith("sqlite") else "pg_views"
    column = "name" if url.startswith("sqlite") else "viewname"
    return f"SELECT 1 FROM {catalogue} WHERE {column} = 'documents_active'"


class _Sqlite:
    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return [_plain(row) for row in self._connection.execute(sql)]

    def full_text(self) -> list[tuple[Any, ...]]:
        indexed, there = self.rows("SELECT rowid FROM section_words"), self.rows("SELECT id FROM sections")
        assert sorted(indexed) == sorted(there), "full text has other rows than the sections"
        self._connection.execute("INSERT INTO section_words (section_words) VALUES ('integrity-check')")
        self._connection.execute("CREATE VIRTUAL TABLE temp.terms USING fts5vocab (main, section_words, row)")
        terms = self.rows("SELECT term, doc, cnt FROM temp.terms")
        self._connection.execute("DROP TABLE temp.terms")
        return terms

    def check(self) -> None:
        assert self.rows("PRAGMA integrity_check") == [("ok",)]
        assert self.rows("PRAGMA foreign_key_check") == []


class _Postgres:
    def __init__(self, session: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._session = session

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return [_plain(row) for row in self._session.execute(sql.encode()).fetchall()]

    def full_text(self) -> list[tuple[Any, ...]]:
        stale = self.rows(
            """SELECT s.id FROM sections s
                WHERE strip(ts_filter(s.words, '{c,d}')) <> strip(ts_filter(section_words('', '', '', s.text), '{d}'))
                  AND s.text NOT LIKE '%](%' AND s.text NOT LIKE '%```%'"""
        )
        assert not stale, "full text says something else than the sections"
        return self.rows("SELECT word, ndoc, nentry FROM ts_stat('SELECT words FROM sections')")

    def check(self) -> None:
        pass  # its foreign keys are checked as it writes, and its files are not ours


def _plain(row: Sequence[Any]) -> tuple[Any, ...]:
    """Return the same values for both databases; large ones as hashes."""
    return tuple(_value(value) for value in row)


def _value(value: Any) -> Any:
    if isinstance(value, bytes) or (isinstance(value, str) and len(value) > 300):
        return hashlib.sha256(value if isinstance(value, bytes) else value.encode()).hexdigest()[:16]
    if isinstance(value, dict):
        return json.dumps(value, sort_keys=True)
    return value


def _sorted(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=lambda row: tuple(str(value) for value in row))
