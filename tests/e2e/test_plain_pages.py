"""The pages as a browser without scripts has them: forms that are sent, links that are followed."""

import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.e2e.server import Server, serving, wait_for
from tests.e2e.test_cli import POOL, write

API = "/api/v1"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("pages")
    options = {"serve__uploads": os.path.relpath(folder / "uploads")}
    with serving(f"sqlite:///{folder}/kept.db", folder, **options) as running:
        yield running


def test_the_preview_works_without_scripts_and_keeps_the_form(server: Server, tmp_path: Path) -> None:
    write(tmp_path / "docs", pool=POOL)
    typed = {"root": str(tmp_path / "docs"), "name": "birds", "version": "2", "exclude": "drafts/*", "max_pages": "7"}
    with server.client() as browser:
        seen = browser.post("/add/preview", data=typed)
        assert (seen.status_code, seen.text.count("<h1>")) == (200, 1)
        assert "1 page to begin with" in seen.text
        assert all(f'value="{typed[name]}"' in seen.text for name in ("root", "name", "version", "max_pages"))
        assert ">drafts/*</textarea>" in seen.text
        part = browser.post("/add/preview", data=typed, headers={"HX-Request": "true"})
        assert "<h1>" not in part.text
        assert "birds" not in browser.get("/sources").text, "nothing is kept"
        for version in ("1", "2"):
            added = browser.post("/add", data=typed | {"version": version})
            wait_for(browser, added.headers["location"].rpartition("/")[2])
        found = browser.get("/", params={"q": "connection pool"}).text
        assert found.count("<li data-item>") == found.count("also in birds@1") > 0, "each version is named"


def test_a_document_of_a_held_generation_can_be_read_before_the_decision(server: Server, tmp_path: Path) -> None:
    write(tmp_path / "docs", **{f"page{number}": f"# Page {number}\n\nNumber {number}.\n" for number in range(8)})
    with server.client() as browser:
        added = browser.post(f"{API}/sources", json={"root": str(tmp_path / "docs"), "name": "docs"})
        wait_for(browser, added.json()["job"])
        for number in range(7):
            (tmp_path / "docs" / f"page{number}.md").unlink()
        write(tmp_path / "docs", fresh="# Fresh\n\nNobody has decided about this one yet.\n")
        assert wait_for(browser, browser.post(f"{API}/sources/docs/crawls").json()["id"])["held"]
        changes = browser.get("/sources/docs/changes", params={"a": 1, "b": 2})
        [address] = re.findall(r'href="(/documents/[^"]*)">[^<]*fresh.md', changes.text)
        page = browser.get(address)
        assert (page.status_code, "Nobody has decided about this one yet." in page.text) == (200, True)
        document = address.partition("?")[0]
        for number in ("0", "-1", "9" * 30):
            assert browser.get(document, params={"generation": number}).status_code == 400
            assert browser.get(f"{document}/diff", params={"a": number}).status_code == 400
            assert browser.get("/sources/docs/changes", params={"a": 1, "b": number}).status_code == 400


def test_uploaded_files_are_deleted_with_their_source_by_page_and_api(server: Server) -> None:
    home = server.runtime.settings.uploads_folder / "guide"
    with server.client() as browser:
        for interface in ("page", "api"):
            sent = browser.post(f"{API}/uploads", files={"file": ("Guide.md", POOL.encode())})
            wait_for(browser, sent.json()["job"])
            assert (home / "Guide.md").exists()
            if interface == "page":
                assert browser.post("/sources/guide/remove").status_code == 303
            else:
                assert browser.delete(f"{API}/sources/guide").status_code == 200
            assert not home.exists(), interface


def test_refusals_by_scope_rate_or_quota_are_pages_for_browsers(tmp_path: Path) -> None:
    options = {"serve__hosts": "docs.test", "serve__live_jobs": "1", "serve__requests_per_minute": "30"}
    write(tmp_path / "docs", pool=POOL)
    with serving(f"sqlite:///{tmp_path}/kept.db", tmp_path, workers=0, **options) as running:
        with _browser(running, "reader", "read") as browser:
            refused = browser.post("/sources/docs/refresh")
            assert (refused.status_code, "this request needs write" in refused.text) == (403, True)
            assert "<h1>" in refused.text
            assert "default-src 'none'" in refused.headers["content-security-policy"]
            assert browser.post("/add/preview", headers={"Accept": "*/*"}).json()["status"] == 403, "for programs"
            fast = next(page for _ in range(100) if (page := browser.get("/jobs")).status_code != 200)
            assert (fast.status_code, fast.headers["retry-after"].isdigit(), "<h1>" in fast.text) == (429, True, True)
        with _browser(running, "writer", "write") as browser:
            first = browser.post("/add", data={"root": str(tmp_path / "docs")})
            assert first.status_code == 303
            full = browser.post("/sources/docs/refresh")
            assert (full.status_code, full.headers["retry-after"]) == (429, "60")
            assert "1 crawls of this key wait or run" in full.text
            for _ in range(2):
                sent = browser.post(f"{API}/uploads", files={"file": ("Guide.md", POOL.encode())})
                assert sent.status_code == 429
            assert list((tmp_path / "uploads").glob("*")) == [], "nothing lies around that may not be kept"
        key, roots = running.key("many", "write"), [tmp_path / f"docs{number}" for number in range(8)]
        for root in roots:
            write(root, pool=POOL)
        with ThreadPoolExecutor(8) as at_once:
            additions = [at_once.submit(_add, running, key, str(root)) for root in roots]
            assert sorted(one.result() for one in additions) == [201] + 7 * [429], "nor do several at once get more"


def test_a_limit_that_is_emptied_in_the_form_is_cleared(tmp_path: Path) -> None:
    write(tmp_path / "docs", pool=POOL)
    options = {"serve__hosts": "docs.test", "serve__pages": "50"}
    with serving(f"sqlite:///{tmp_path}/kept.db", tmp_path, workers=0, **options) as running:
        with running.client(running.key("boss", "admin")) as boss:
            body = {"root": str(tmp_path / "docs"), "max_pages": 9, "max_depth": 3}
            boss.post(f"{API}/sources", json=body)
            boss.post("/sources/docs/settings", data={"max_pages": "", "max_depth": "4"})
            limits = boss.get(f"{API}/sources/docs").json()["settings"]["limits"]
            assert (limits["max_pages"], limits["max_depth"]) == (None, 4)
        with running.client(running.key("writer", "write")) as writer:
            refused = writer.post("/sources/docs/settings", data={"max_pages": ""})
            assert (refused.status_code, "more than 50 pages" in refused.text) == (429, True)
            assert writer.post("/sources/docs/settings", data={"tag": "ours"}).status_code == 303


def _add(server: Server, key: str, root: str) -> int:
    with server.client(key) as api:
        return api.post(f"{API}/sources", json={"root": root}).status_code


@contextmanager
def _browser(server: Server, name: str, scope: str) -> Iterator[httpx2.Client]:
    """Yield the client of a person who has logged in."""
    with server.client(accept="text/html") as browser:
        assert browser.post("/login", data={"key": server.key(name, scope)}).status_code == 303
        yield browser
