"""Every operation of the API behaves as its schema describes, with valid and invalid requests."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.e2e.server import Server, serving, wait_for
from tests.e2e.test_cli import INSTALL, POOL, write
from tests.postgres import PostgresServer

API = "/api/v1"
CHECKS = [not_a_server_error, content_type_conformance, response_schema_conformance, status_code_conformance]
PROBES = (f"{API}/try", f"{API}/sources", f"{API}/knowledge-items/crawl")  # they contact the site that they are given
STREAMS = f"{API}/events"  # it has no end
NAUGHTY = [
    *("", "\x00", "\u202e", "\ud800", "'; DROP TABLE sources; --", "<script>alert(1)</script>", "a" * 5000),
    *("../../etc/passwd", "docs@@1", "http://[::1", "https://docs.test:99999/"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("schema")
    write(folder / "docs", pool=POOL, install=INSTALL)
    with serving(f"sqlite:///{folder}/kept.db", folder) as running, running.client() as api:
        wait_for(api, api.post(f"{API}/sources", json={"root": str(folder / "docs")}).json()["job"])
    options = {"serve__hosts": "docs.test", "network__allow_private": "0"}
    with serving(f"sqlite:///{folder}/kept.db", folder, workers=0, **options) as running:  # no crawl goes anywhere
        yield running


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
@pytest.mark.parametrize("with_key", [True, False])
def test_every_operation_behaves_as_described(server: Server, mode: GenerationMode, with_key: bool) -> None:
    key = server.key(f"{mode.value}-{with_key}", "admin")
    schema = schemathesis.openapi.from_url(
        f"{server.url}{API}/openapi.json", headers={"Authorization": f"Bearer {key}"}
    )
    headers = {"Authorization": f"Bearer {key}"} if with_key else {}
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) > 30
    without_input = ("/healthz", "/readyz", "/metrics", f"{API}/sources")  # nothing to be wrong about
    for operation in operations:
        if operation.path == STREAMS:
            continue
        if mode is GenerationMode.NEGATIVE and operation.path in without_input and operation.method == "get":
            continue

        @hypothesis.settings(
            max_examples=3 if with_key else 1,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
            database=None,
            deadline=None,
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def check_case(case: schemathesis.Case) -> None:
            if case.path in PROBES:
                case.body = _on_loopback(case.body)
            response = case.call(headers=headers, timeout=30)
            case.validate_response(response, checks=CHECKS)
            if not with_key:
                open_to_all = case.path in ("/healthz", "/readyz") or case.path.startswith(f"{API}/hooks/")
                assert open_to_all or response.status_code == 401

        check_case()


def test_naughty_strings_in_every_parameter_cause_no_failure(postgres_server: PostgresServer, tmp_path: Path) -> None:
    """On PostgreSQL, which accepts fewer texts than SQLite."""
    url = postgres_server.create_database()
    write(tmp_path / "docs", pool=POOL)
    with serving(url, tmp_path, workers=0, network__allow_private="0") as running, running.client() as api:
        assert api.post(f"{API}/sources", json={"root": str(tmp_path / "docs")}).status_code == 201
        for number, text in enumerate(NAUGHTY):
            write(tmp_path / str(number), pool=POOL)
            with_name = {"root": str(tmp_path / str(number)), "name": text}
            sent = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
            for path, name in (("search", "q"), ("search", "source"), ("documents", "url"), ("why", "url")):
                params = {"q": "pool", name: sent} if path == "search" else {name: sent}
                assert api.get(f"{API}/{path}", params=params).status_code < 500, (path, name, text)
            for name in ("status", "cursor", "limit"):
                assert api.get(f"{API}/jobs", params={name: sent}).status_code < 500, (name, text)
            assert api.get(f"{API}/sources/docs/documents", params={"cursor": sent}).status_code < 500, text
            for body in ({"root": text}, with_name, {"root": "a", "header": [text]}):
                assert api.post(f"{API}/sources", content=_json(body), headers=JSON).status_code < 500, body
            for name in ("schedule", "max_time", "scope", "select", "webhook", "hook_secret", "tag", "user_agent"):
                value = [text] if name in ("scope", "tag") else text
                changed = api.patch(f"{API}/sources/docs", content=_json({name: value}), headers=JSON)
                assert changed.status_code < 500, (name, text)
            if sent.isprintable():
                named = api.post(f"{API}/uploads", files={"file": (sent, b"# A")}, data={"name": sent})
                assert named.status_code < 500, text
        assert api.get(f"{API}/sources").status_code == 200
    postgres_server.drop_database(url)


JSON = {"Content-Type": "application/json"}


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


def _on_loopback(body: Any) -> Any:
    """Return a body whose URLs name a closed port of this machine: no test contacts another host."""
    if isinstance(body, dict):
        return {key: _on_loopback(value) for key, value in body.items()}
    if isinstance(body, list):
        return [_on_loopback(value) for value in body]
    return "http://127.0.0.1:9/" if isinstance(body, str) and "://" in body else body
