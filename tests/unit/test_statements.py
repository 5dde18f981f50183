"""Placeholders in shared SQL are replaced by what each backend understands."""

import pytest

from kept.store.statements import _resolve, statements

SPELLINGS = [
    ("id {in :ids}", "id IN (SELECT value FROM json_each(:ids))", "id = ANY(:ids)"),
    ("id {in :ids as uuid}", "id IN (SELECT value FROM json_each(:ids))", "id = ANY(CAST(:ids AS uuid[]))"),
    (
        "FROM {each :urls as text}",
        "FROM json_each(:urls) AS item",
        "FROM unnest(CAST(:urls AS text[])) AS item (value)",
    ),
    (
        "WITH {rows id uuid,\n   url text}",
        "WITH new (id, url) AS (VALUES (:id, :url))",
        "WITH new (id, url) AS (SELECT * FROM unnest(CAST(:id AS uuid[]), CAST(:url AS text[])))",
    ),
    ("{:job as uuid}", ":job", "CAST(:job AS uuid)"),
    ("{new.vector as real[]}", "new.vector", "CAST(new.vector AS real[])"),
    ("x {for key share skip locked}", "x ", "x FOR KEY SHARE SKIP LOCKED"),
    ('x {postgres: ORDER BY url COLLATE "C"}', "x ", 'x ORDER BY url COLLATE "C"'),
    ("x {sqlite: INDEXED BY y}", "x INDEXED BY y", "x "),
]


@pytest.mark.parametrize(("shared", "sqlite", "postgres"), SPELLINGS)
def test_a_placeholder_becomes_what_each_backend_understands(shared: str, sqlite: str, postgres: str) -> None:
    assert _resolve(shared, "sqlite") == sqlite
    assert _resolve(shared, "postgres") == postgres


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
@pytest.mark.parametrize("shared", ["{}", "{in ids}", "{for share}", "{oracle: x}", "{each :ids}"])
def test_an_unknown_placeholder_is_an_error(shared: str, backend: str) -> None:
    with pytest.raises(ValueError, match="is no placeholder"):
        _resolve(shared, backend)


def test_only_the_spelling_of_a_shared_statement_differs() -> None:
    assert statements("sqlite")["lock_job"].strip() == "SELECT * FROM crawl_jobs WHERE id = :id"
    assert statements("postgres")["lock_job"] == "SELECT * FROM crawl_jobs WHERE id = :id FOR UPDATE"
