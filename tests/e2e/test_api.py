"""The HTTP API, as programs call it: a real server, real requests."""

import hashlib
import hmac
import io
import zipfile
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kept.errors import InvalidInput
from kept.model.source import SourceKind
from kept.service.events import EventCursor, JobPosition
from tests.e2e.server import Event, Server, events, open_stream, parse_events, serving, wait_for
from tests.e2e.test_cli import COUNTS, HIT, INSTALL, NOTES, POOL, write

API = "/api/v1"


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    write(tmp_path / "docs", pool=POOL, install=INSTALL, notes=NOTES)
    return tmp_path / "docs"


@pytest.fixture
def server(tmp_path: Path, docs: Path) -> Iterator[Server]:
    with serving(f"sqlite:///{tmp_path}/kept.db", tmp_path) as running:
        yield running


def test_one_source_through_every_operation(database_url: str, tmp_path: Path, docs: Path) -> None:
    with serving(database_url, tmp_path) as running, running.client() as api:
        added = api.post(f"{API}/sources", json={"root": str(docs), "name": "docs", "tag": ["ours"]})
        assert added.status_code == 201
        assert added.headers["location"] == f"{API}/sources/docs"
        assert added.json()["counts"].keys() == COUNTS
        done = wait_for(api, added.json()["job"])
        assert (done["status"], done["progress"]["new"], done["owner"]) == ("completed", 3, None)

        found = api.get(f"{API}/search", params={"q": "connection pool", "source": "docs"})
        assert found.json()["hits"][0].keys() == HIT
        hit = found.json()["hits"][0]
        again = api.get(
            f"{API}/search",
            params={"q": "connection pool", "source": "docs"},
            headers={"If-None-Match": found.headers["etag"]},
        )
        assert (again.status_code, again.content) == (304, b"")
        read = api.get(f"{API}/documents/{hit['document']}", params={"section": "timeouts"})
        assert read.json()["markdown"] == "## Timeouts\n\nIt waits for some seconds."
        assert api.get(f"{API}/documents", params={"url": hit["url"].partition("#")[0]}).json()["title"] == "Pools"

        (docs / "notes.md").unlink()
        (docs / "pool.md").write_text(POOL.replace("some seconds", "nine seconds"))
        second = api.post(f"{API}/sources/docs/crawls", json={"mode": "full", "priority": 3})
        assert (second.status_code, second.json()["mode"], second.json()["priority"]) == (202, "full", 3)
        wait_for(api, second.json()["job"])
        stale = api.get(
            f"{API}/search",
            params={"q": "connection pool", "source": "docs"},
            headers={"If-None-Match": found.headers["etag"]},
        )
        assert stale.status_code == 200

        history = api.get(f"{API}/sources/docs/generations").json()
        assert [one["number"] for one in history["generations"] if one["state"] != "abandoned"] in ([1, 2], [2, 1])
        diff = api.get(f"{API}/sources/docs/diff", params={"from": 1, "to": 2}).json()
        assert [len(diff[name]) for name in ("added", "removed", "changed", "moved")] == [0, 1, 1, 0]
        changes = api.get(f"{API}/sources/docs/changes", params={"since": "1h"}).json()["changes"]
        assert {(one["change"], one["url"]) for one in changes if one["generation"] == 2} == {
            ("changed", diff["changed"][0]),
            ("removed", diff["removed"][0]),
        }
        found = api.get(f"{API}/documents/{hit['document']}/diff", params={"from": 1, "to": 2}).json()
        assert {"-It waits for some seconds.", "+It waits for nine seconds."} <= set(found["hunks"][0]["lines"])
        versions = api.get(f"{API}/documents/{hit['document']}/history").json()["versions"]
        assert [one["version"] for one in versions] == [1, 2]
        assert api.get(f"{API}/why", params={"url": diff["changed"][0]}).json()["outcome"] == "changed"
        looked = api.post(f"{API}/try", json={"url": str(docs / "install.md")}).json()
        assert (looked["title"], looked["sections"][0]["heading"]) == ("Install", "Install")

        back = api.post(f"{API}/sources/docs/rollback", json={"generation": 1}).json()
        assert back["generation"] == 3
        changed = api.patch(f"{API}/sources/docs", json={"schedule": "6h", "exclude": ["drafts/*"]}).json()
        assert (changed["schedule"], changed["settings"]["scope"]["exclude"]) == ("6h", ["drafts/*"])
        shown = api.get(f"{API}/sources/docs").json()
        assert (shown["generation"], shown["documents"], shown["tags"]) == (3, 3, ["ours"])
        assert [one["source"] for one in api.get(f"{API}/sources").json()["sources"]] == ["docs"]
        assert api.delete(f"{API}/sources/docs").json() == {"source": "docs", "removed": True}
        assert api.get(f"{API}/sources/docs").status_code == 404


def test_held_generations_are_decided_and_jobs_are_paused_resumed_and_cancelled(
    database_url: str, tmp_path: Path
) -> None:
    pages = {f"page{number}": f"# Page {number}\n\nNumber {number} of some.\n" for number in range(8)}
    write(tmp_path / "docs", **pages)
    with serving(database_url, tmp_path, workers=0) as idle, idle.client() as api:
        job = api.post(f"{API}/sources", json={"root": str(tmp_path / "docs")}).json()["job"]
        assert api.post(f"{API}/jobs/{job}/pause").json()["status"] == "paused"
        assert api.post(f"{API}/sources/docs/crawls").status_code == 409
        assert api.get(f"{API}/jobs", params={"status": "paused"}).json()["jobs"][0]["id"] == job
        assert api.post(f"{API}/jobs/{job[:35]}/resume").json()["status"] == "pending"
        assert api.post(f"{API}/jobs/{job}/cancel").json()["status"] == "cancelled"
        assert api.post(f"{API}/jobs/{job}/resume").status_code == 409
    with serving(database_url, tmp_path) as running, running.client() as api:
        wait_for(api, api.post(f"{API}/sources/docs/crawls").json()["id"])
        for number in range(7):
            (tmp_path / "docs" / f"page{number}.md").unlink()
        for decision, state, live in (("discard", "abandoned", 8), ("activate", "active", 1)):
            assert wait_for(api, api.post(f"{API}/sources/docs/crawls").json()["id"])["held"]
            decided = api.post(f"{API}/sources/docs/{decision}").json()
            assert decided["state"] == state
            assert api.get(f"{API}/sources/docs").json()["documents"] == live
        jobs = api.get(f"{API}/jobs", params={"limit": 2}).json()
        rest = api.get(f"{API}/jobs", params={"limit": 2, "cursor": jobs["next"]}).json()
        assert len({one["id"] for one in jobs["jobs"] + rest["jobs"]}) == 4
        assert api.post(f"{API}/sources/docs/activate").status_code == 404


def test_a_paged_list_stays_in_the_generation_it_began_with(server: Server, docs: Path) -> None:
    with server.client() as api:
        wait_for(api, api.post(f"{API}/sources", json={"root": str(docs)}).json()["job"])
        first = api.get(f"{API}/sources/docs/documents", params={"limit": 2}).json()
        assert [one["title"] for one in first["documents"]] == ["Install", "Notes"]
        (docs / "another.md").write_text("# Another\n\nIt came between two pages of the list.\n")
        (docs / "pool.md").unlink()
        wait_for(api, api.post(f"{API}/sources/docs/crawls").json()["id"])
        second = api.get(f"{API}/sources/docs/documents", params={"limit": 2, "cursor": first["next"]}).json()
        assert ([one["title"] for one in second["documents"]], second["generation"], second["next"]) == (
            ["Pools"],
            1,
            None,
        )
        now = api.get(f"{API}/sources/docs/documents").json()
        assert [one["title"] for one in now["documents"]] == ["Another", "Install", "Notes"]


def test_a_repeated_request_with_an_idempotency_key_is_one_job(database_url: str, tmp_path: Path, docs: Path) -> None:
    with serving(database_url, tmp_path) as running, running.client() as api:
        once = {"Idempotency-Key": "monday"}
        first = api.post(f"{API}/sources", json={"root": str(docs)}, headers=once).json()["job"]
        wait_for(api, first)
        assert api.post(f"{API}/sources", json={"root": str(docs)}, headers=once).json()["job"] == first
        crawl = {"Idempotency-Key": "tuesday"}
        jobs = {api.post(f"{API}/sources/docs/crawls", headers=crawl).json()["id"] for _ in range(3)}
        [job] = jobs
        wait_for(api, job)
        jobs |= {api.post(f"{API}/sources/docs/crawls", headers=crawl).json()["id"]}
        assert len(jobs) == 1
        assert first not in jobs
        other = api.post(f"{API}/sources/docs/crawls", json={"mode": "full"}, headers=crawl)
        assert other.status_code == 400
        assert len(api.get(f"{API}/jobs").json()["jobs"]) == 2
        another = api.post(f"{API}/sources", json={"root": str(docs / "pool.md"), "name": "pool"}, headers=crawl)
        assert another.status_code == 400
        assert [one["source"] for one in api.get(f"{API}/sources").json()["sources"]] == ["docs"], "none was created"
        changed = api.patch(f"{API}/sources/docs", json={"tag": ["ours"]}).json()
        assert api.post(f"{API}/sources", json={"root": str(docs)}, headers=once).json()["job"] == first
        assert api.get(f"{API}/sources/docs").json()["tags"] == changed["tags"] == ["ours"]


def until_completed(found: Iterator[Event]) -> tuple[list[Event], str]:
    """Return the URLs of page events until a job is completed, and the id of the last event."""
    pages = []
    for event in found:
        if event.kind == "page":
            pages.append(event)
        if event.kind == "job" and event.data["status"] == "completed":
            return pages, event.id
    raise AssertionError("no job was completed")


def test_a_stream_resumes_without_gaps_or_repeats(database_url: str, tmp_path: Path) -> None:
    write(tmp_path / "docs", **{f"page{number}": f"# Page {number}\n\nOf some.\n" for number in range(40)})
    with serving(database_url, tmp_path) as running, running.client() as api:
        with running.client() as other, open_stream(other, f"{API}/events") as everything:
            job = api.post(f"{API}/sources", json={"root": str(tmp_path / "docs")}).json()["job"]
            urls_seen, last_of_all = until_completed(parse_events(everything))
        whole = list(events(api, f"{API}/jobs/{job}/events"))
        assert (whole[-1].kind, whole[-1].data["status"]) == ("job", "completed")
        pages = [event.data["url"] for event in whole if event.kind == "page"]
        assert len(pages) == len(set(pages)) == 40
        assert [event.data["url"] for event in urls_seen] == pages
        seen: list[str] = []
        last: str | None = None
        for most in (1, 7, 30, 100):
            for event in events(api, f"{API}/jobs/{job}/events", last, most=most):
                last = event.id
                seen += [event.data["url"]] if event.kind == "page" else []
        assert seen == pages
        assert list(events(api, f"{API}/jobs/{job}/events", last)) == []  # 204: nothing more can come
        (tmp_path / "docs" / "page7.md").write_text("# Page 7\n\nIt was changed.\n")
        (tmp_path / "docs" / "page8.md").unlink()
        wait_for(api, api.post(f"{API}/sources/docs/crawls").json()["id"])
        missed, _ = until_completed(events(api, f"{API}/events", last_of_all))
        outcomes = Counter(event.data["outcome"] for event in missed)
        assert (outcomes["changed"], outcomes["gone"], outcomes["new"]) == (
            1,
            1,
            0,
        )  # unchanged files may go unmentioned
        assert all(event.data["deleted"] == (event.data["outcome"] == "gone") for event in missed)
        for id in ("x", "%", "\0"):
            made_up = EventCursor(
                since=datetime.now(UTC), jobs={id: JobPosition(state="completed"), f"{id} ": JobPosition()}
            )
            with pytest.raises(InvalidInput):
                EventCursor.decode(made_up.encode())
        assert api.get(f"{API}/events", headers={"Last-Event-ID": "nonsense"}).status_code == 400


def test_files_and_zips_can_be_uploaded(server: Server, tmp_path: Path) -> None:
    with server.client() as api:
        one = api.post(f"{API}/uploads", files={"file": ("Guide.md", POOL.encode())})
        assert (one.status_code, one.json()["source"]) == (201, "guide")
        assert wait_for(api, one.json()["job"])["progress"]["new"] == 1
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("a/pool.md", POOL)
            archive.writestr("b/install.md", INSTALL)
        many = api.post(f"{API}/uploads", files={"file": ("all.zip", packed.getvalue())}, data={"name": "manual"})
        assert wait_for(api, many.json()["job"])["progress"]["new"] == 2
        again = io.BytesIO()
        with zipfile.ZipFile(again, "w") as archive:
            archive.writestr("a/pool.md", POOL)
        less = api.post(f"{API}/uploads", files={"file": ("all.zip", again.getvalue())}, data={"name": "manual"})
        assert less.status_code == 200
        wait_for(api, less.json()["job"])
        assert api.get(f"{API}/sources/manual").json()["documents"] == 1
        for name in ("../evil.md", "/etc/evil.md", "a/../../evil.md", "a\\..\\evil.md"):
            evil = io.BytesIO()
            with zipfile.ZipFile(evil, "w") as archive:
                archive.writestr(name, "evil")
            answer = api.post(f"{API}/uploads", files={"file": ("evil.zip", evil.getvalue())})
            kept = [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*evil*") if path.is_file()]
            assert answer.status_code == 400 or kept == ["uploads/evil/etc/evil.md"], name
        api.delete(f"{API}/sources/manual")
        assert not (tmp_path / "uploads" / "manual").exists()
        assert api.post(f"{API}/uploads", files={"file": ("broken.zip", b"PK\x05\x06" + b"\0" * 9)}).status_code < 500


def test_a_signed_hook_requests_a_refresh(server: Server, docs: Path) -> None:
    with server.client() as api:
        wait_for(api, api.post(f"{API}/sources", json={"root": str(docs)}).json()["job"])
        body = b'{"ref": "refs/heads/main"}'
        right = {"X-Hub-Signature-256": "sha256=" + hmac.digest(b"between us", body, hashlib.sha256).hex()}
        assert api.post(f"{API}/hooks/docs", content=body, headers=right).status_code == 401
        changed = api.patch(f"{API}/sources/docs", json={"hook_secret": "between us"})
        assert "between us" not in changed.text
        for signature in ("", "sha256=", right["X-Hub-Signature-256"][:-1] + "x"):
            refused = api.post(f"{API}/hooks/docs", content=body, headers={"X-Hub-Signature-256": signature})
            assert refused.status_code == 401
        assert api.post(f"{API}/hooks/other", content=body, headers=right).text == refused.text
        response = api.post(f"{API}/hooks/docs", content=body, headers=right)
        assert response.status_code == 202
        assert wait_for(api, response.json()["job_id"])["status"] == "completed"


def test_the_paths_of_the_queue_contract_work(server: Server, docs: Path) -> None:
    with server.client() as api:
        for base in ("", "/api"):
            response = api.post(f"{base}/knowledge-items/crawl", json={"url": str(docs), "tags": ["a"], "priority": 2})
            assert response.status_code == 202
            assert response.json()["job_id"] == response.json()["progress_id"]
            wait_for(api, response.json()["job_id"])
            progress = api.get(f"{base}/crawl-progress/{response.json()['progress_id']}").json()
            assert (progress["status"], progress["progress_percentage"]) == ("completed", 100)
        for body in ({"strategies": ["sitemap"]}, {"depth": 1, "max_depth": 2}, {"deep": 1}):
            refused = api.post("/knowledge-items/crawl", json={"url": str(docs)} | body)
            assert refused.status_code == 422, "what is not obeyed is refused"
            assert any(name in refused.json()["detail"] for name in body), refused.text


def test_the_depth_of_the_queue_contract_is_obeyed(server: Server, tmp_path: Path) -> None:
    other = tmp_path / "deep"
    other.mkdir()
    (other / "a.md").write_text("# A\n")
    with server.client() as api:
        job = api.post("/knowledge-items/crawl", json={"url": str(other), "depth": 1}).json()["job_id"]
        wait_for(api, job)
        assert api.get(f"{API}/sources/deep").json()["settings"]["limits"]["max_depth"] == 1
        api.delete(f"{API}/sources/deep")


def test_errors_are_problems(server: Server) -> None:
    with server.client() as api:
        for method, path, status in (
            ("GET", "/sources/nothing", 404),
            ("GET", "/nowhere", 404),
            ("PUT", "/sources", 405),
            ("GET", "/search", 422),
            ("GET", "/search?q=%00", 422),
            ("GET", "/search?q=%20", 400),
            ("GET", "/jobs?status=odd", 400),
            ("POST", "/sources", 422),
        ):
            answer = api.request(method, API + path)
            assert answer.status_code == status, path
            assert answer.headers["content-type"] == "application/problem+json"
            problem = answer.json()
            assert problem["status"] == status
            assert problem["detail"]
        lone = api.post(f"{API}/sources", content=b'{"root": "\\ud800"}', headers={"Content-Type": "application/json"})
        assert lone.status_code == 422


def test_health_and_metrics_are_reported(server: Server, docs: Path) -> None:
    with server.client() as api:
        described = api.get(f"{API}/openapi.json").json()["components"]["schemas"]
        assert described["SourceKind"]["enum"] == list(SourceKind)
        wait_for(api, api.post(f"{API}/sources", json={"root": str(docs)}).json()["job"])
        assert api.get("/healthz").json() == {"status": "ok"}
        assert api.get("/readyz").json() == {"status": "ready"}
        metrics = api.get("/metrics").text
        assert 'kept_jobs{status="completed"} 1.0' in metrics
        assert "kept_documents 3.0" in metrics
        assert 'route="/api/v1/sources",status="201"' in metrics
        described = api.get(f"{API}/openapi.json").json()
        assert described["paths"][f"{API}/sources"]["post"]["responses"].keys() == {"200", "201", "default"}
