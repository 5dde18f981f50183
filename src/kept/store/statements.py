"""The SQL statements by name, as each backend spells them.

A statement is written once, in ``sql/shared/``, with placeholders where the backends differ in spelling; one that needs
different SQL lies in the folders of both backends under the same name. Placeholders are replaced when it is loaded:

==============================  ==========================================  ===================================
placeholder                     PostgreSQL                                  SQLite
==============================  ==========================================  ===================================
``id {in :ids}``                ``id = ANY(:ids)``                          ``id IN (SELECT … json_each(:ids))``
``id {in :ids as uuid}``        ``id = ANY(CAST(:ids AS uuid[]))``          the same
``FROM {each :ids as text}``    ``unnest(...) AS item (value)``             ``json_each(:ids) AS item``
``WITH {rows a text, b uuid}``  ``new (a, b) AS (SELECT * FROM unnest …)``  ``new (a, b) AS (VALUES (:a, :b))``
``{generations :pairs}``        rows of ``source_id, number`` from JSON     the same
``{:value as uuid}``            ``CAST(:value AS uuid)``                    ``:value``
``{for update}`` and the like   ``FOR UPDATE``                              nothing: only one transaction writes
``{postgres: SQL}``             ``SQL``                                     nothing
``{sqlite: SQL}``               nothing                                     ``SQL``
==============================  ==========================================  ===================================
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

SQL_FOLDER = Path(__file__).with_name("sql")  # importlib.resources would load zipfile and more for the same files


@cache
def statements(backend: str) -> Mapping[str, str]:
    """Return every statement of a backend ("sqlite" or "postgres"), by name."""
    found = {name: _resolve(sql, backend) for name, sql in _named_statements("shared")}
    found.update(_named_statements(backend))
    return found


_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def _named_statements(folder: str) -> Iterator[tuple[str, str]]:
    for file in sorted((SQL_FOLDER / folder).glob("*.sql")):
        _, *parts = _NAME.split(file.read_text("utf-8"))
        yield from zip(parts[::2], (part.strip().rstrip(";") for part in parts[1::2]), strict=True)


_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_IN = re.compile(r"in (:\w+)(?: as (\w+))?")
_EACH = re.compile(r"each (:\w+) as (\w+)")
_ROWS = re.compile(r"rows (.*)", re.DOTALL)
_GENERATIONS = re.compile(r"generations (:\w+)")
_CAST = re.compile(r"([:.\w]+) as ([\w\[\]]+)")
_LOCK = re.compile(r"for (?:no key update|update|key share)(?: skip locked)?")
_BACKEND_ONLY = re.compile(r"(sqlite|postgres): (.*)", re.DOTALL)


def _resolve(sql: str, backend: str) -> str:
    if "{" not in sql:
        return sql
    spell = _spell_sqlite if backend == "sqlite" else _spell_postgres
    return _PLACEHOLDER.sub(lambda found: spell(found[1]), sql)


def _spell_sqlite(placeholder: str) -> str:
    if found := _IN.fullmatch(placeholder):
        return f"IN (SELECT value FROM json_each({found[1]}))"
    if found := _EACH.fullmatch(placeholder):
        return f"json_each({found[1]}) AS item"
    if found := _ROWS.fullmatch(placeholder):
        columns = [column.split()[0] for column in found[1].split(",")]
        return f"new ({', '.join(columns)}) AS (VALUES ({', '.join(f':{column}' for column in columns)}))"
    if found := _GENERATIONS.fullmatch(placeholder):
        return f"(SELECT value ->> 0 AS source_id, value ->> 1 AS number FROM json_each({found[1]}))"
    if found := _CAST.fullmatch(placeholder):
        return found[1]
    if _LOCK.fullmatch(placeholder):
        return ""
    if found := _BACKEND_ONLY.fullmatch(placeholder):
        return found[2] if found[1] == "sqlite" else ""
    raise ValueError(f"'{{{placeholder}}}' is no placeholder.")


def _spell_postgres(placeholder: str) -> str:
    if found := _IN.fullmatch(placeholder):
        return f"= ANY(CAST({found[1]} AS {found[2]}[]))" if found[2] else f"= ANY({found[1]})"
    if found := _EACH.fullmatch(placeholder):
        return f"unnest(CAST({found[1]} AS {found[2]}[])) AS item (value)"
    if found := _ROWS.fullmatch(placeholder):
        columns = [column.split() for column in found[1].split(",")]
        arrays = ", ".join(f"CAST(:{name} AS {type}[])" for name, type in columns)
        return f"new ({', '.join(name for name, _ in columns)}) AS (SELECT * FROM unnest({arrays}))"
    if found := _GENERATIONS.fullmatch(placeholder):
        return (
            "(SELECT CAST(value ->> 0 AS uuid) AS source_id, CAST(value ->> 1 AS bigint) AS number"
            f" FROM jsonb_array_elements(CAST({found[1]} AS jsonb)) AS value)"
        )
    if found := _CAST.fullmatch(placeholder):
        return f"CAST({found[1]} AS {found[2]})"
    if _LOCK.fullmatch(placeholder):
        return placeholder.upper()
    if found := _BACKEND_ONLY.fullmatch(placeholder):
        return found[2] if found[1] == "postgres" else ""
    raise ValueError(f"'{{{placeholder}}}' is no placeholder.")
