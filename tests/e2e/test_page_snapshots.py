"""A web page reads one snapshot: a generation that is activated while it reads does not show in a part of it."""

import asyncio
import inspect
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx2

from kept.runtime.runtime import open_runtime
from kept.server.app import make_app
from kept.service import generations
from kept.service.context import Services
from kept.settings import load
from kept.store.database import Connection, Database
from tests.e2e.test_cli import write

PAGES = {f"page{number}": f"# Page {number}\n\nNumber {number} of some. [Next](page0.md)\n" for number in range(8)}
Interruption = Callable[[], Awaitable[Any]]


@dataclass
class InterruptedDatabase:
    """A database that runs something else between two statements of a reader."""

    db: Database
    statements: int = 0
    interrupt_before: int = 0
    interruption: Interruption | None = None
    snapshots: int = 0
    has_shared_clock: bool = False  # then the server does not check now and then whether the database answers

    def __getattr__(self, name: str) -> Any:
        return getattr(self.db, name)

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Any]:
        self.snapshots += 1
        async with self.db.snapshot() as connection:
            yield InterruptedConnection(connection, self)

    async def before_statement(self) -> None:
        self.statements += 1
        if self.interruption and self.statements == self.interrupt_before:
            await self.interruption()


@dataclass
class InterruptedConnection:
    connection: Connection
    database: InterruptedDatabase

    def __getattr__(self, name: str) -> Any:
        if not inspect.iscoroutinefunction(getattr(self.connection, name)):
            return getattr(self.connection, name)

        async def run(*args: Any, **values: Any) -> Any:
            await self.database.before_statement()
            return await getattr(self.connection, name)(*args, **values)

        return run


@dataclass
class Site:
    """The application, and its pages, read with or without an interruption."""

    services: Services
    database: InterruptedDatabase
    client: httpx2.AsyncClient

    async def page(self, path: str, before: int = 0, interruption: Interruption | None = None) -> str:
        self.database.statements = self.database.snapshots = 0
        self.database.interrupt_before, self.database.interruption = before, interruption
        response = await self.client.get(path, headers={"Accept": "text/html"})
        assert response.status_code == 200, response.text
        return re.sub("<time.*?</time>", "", response.text)

    async def crawl(self, path: str, **body: Any) -> dict[str, Any]:
        job = (await self.client.post(path, json=body)).json()["job"]
        for _ in range(600):
            shown: dict[str, Any] = (await self.client.get(f"/api/v1/jobs/{job}")).json()
            if shown["status"] not in ("pending", "processing"):
                return shown
            await asyncio.sleep(0.1)
        raise AssertionError("the crawl does not end")


@dataclass
class _ServicesOn:
    """The services of a runtime on another database."""

    services: Services
    db: InterruptedDatabase

    def __getattr__(self, name: str) -> Any:
        return getattr(self.services, name)


@asynccontextmanager
async def two_generations(database_url: str, folder: Path) -> AsyncIterator[Site]:
    settings = load(environment={"KEPT_NETWORK__ALLOW_FILES": "1"}, folder=folder, database=database_url)
    write(folder / "docs", **PAGES)
    async with open_runtime(settings) as runtime:
        database = InterruptedDatabase(runtime.db)
        app = make_app(_ServicesOn(runtime.services, database), settings)  # type: ignore[arg-type]
        stop = asyncio.Event()
        worker = asyncio.create_task(runtime.worker_host.run_worker(stop))
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
            site = Site(runtime.services, database, client)
            try:
                await site.crawl("/api/v1/sources", root=str(folder / "docs"))
                write(folder / "docs", page1="# Page 1\n\nAnother text.\n", page8="# Page 8\n\nA new one.\n")
                (folder / "docs" / "page2.md").unlink()
                await site.crawl("/api/v1/sources/docs/crawls")
                yield site
            finally:
                stop.set()
                await worker


def test_a_page_shows_one_moment_whatever_is_activated_meanwhile(database_url: str, tmp_path: Path) -> None:
    async def run() -> None:
        async with two_generations(database_url, tmp_path) as site:
            listed = (await site.client.get("/api/v1/sources/docs/documents")).json()["documents"]
            changed = next(one["document"] for one in listed if one["title"] == "Page 1")
            paths = [
                "/sources",
                "/sources/docs",
                "/sources/docs/tree",
                f"/documents/{changed}",
                f"/documents/{changed}/diff",
            ]
            for path in paths:
                before = await site.page(path)
                for number in range(2, site.database.statements + 1):
                    roll_back = partial(generations.roll_back, site.services.db, "docs", 1 + number % 2)
                    meanwhile = await site.page(path, number, roll_back)
                    after = await site.page(path)
                    assert meanwhile == before, f"{path} mixes two moments at statement {number}"
                    assert after != before, "the page shows what was activated"
                    before = after

    asyncio.run(run())


def test_a_held_generation_is_reviewed_as_of_one_moment(database_url: str, tmp_path: Path) -> None:
    async def run() -> None:
        async with two_generations(database_url, tmp_path) as site:
            for name in ("page3", "page4", "page5", "page6", "page7"):
                (tmp_path / "docs" / f"{name}.md").unlink()
            assert (await site.crawl("/api/v1/sources/docs/crawls"))["held"]
            before = await site.page("/sources/docs")
            assert "page7.md" in before
            rules = site.services.lifecycle_rules
            meanwhile = await site.page(
                "/sources/docs", 3, lambda: generations.activate_held(site.services.db, "docs", rules)
            )
            assert meanwhile == before
            assert "page7.md" not in await site.page("/sources/docs")

    asyncio.run(run())


def test_every_page_opens_one_snapshot(database_url: str, tmp_path: Path) -> None:
    async def run() -> None:
        async with two_generations(database_url, tmp_path) as site:
            [job, *_] = (await site.client.get("/api/v1/jobs")).json()["jobs"]
            [document, *_] = (await site.client.get("/api/v1/sources/docs/documents")).json()["documents"]
            paths = ["/sources", "/sources/docs", "/sources/docs/tree", "/sources/docs/changes?a=1&b=2", "/jobs"]
            paths += [f"/documents/{document['document']}", f"/documents/{document['document']}/diff"]
            paths += [f"/jobs/{job['id']}", f"/jobs/{job['id']}/ledger", "/", "/?q=number", "/?q=nothinglikethis"]
            for path in paths:
                await site.page(path)
                assert site.database.snapshots == 1, path

    asyncio.run(run())
