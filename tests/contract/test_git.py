"""A git repository on a real server: the changes that each push leads to, on both databases."""

import asyncio
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from kept.crawl.engine import CrawlRun
from kept.crawl.lifecycle import LifecycleRules
from kept.extract.reader import guess_content_type, parse_page, pipeline_signature
from kept.extract.sections import Unreadable
from kept.jobs import queue
from kept.jobs.worker import claim_and_run
from kept.maintenance.embedding_backlog import EmbeddingBacklog
from kept.model.document import ParsedPage, Validators
from kept.model.job import CrawlJob, JobStatus, Lease
from kept.model.repository import Forge, Repository
from kept.model.source import Access, Source, SourceKind, SourceSettings
from kept.origins.git import GitOrigin
from kept.origins.git.transport import Transport
from kept.store.database import Database
from tests.contract.databases import count_rows, on_both_databases, run_sql
from tests.contract.test_embedding_backlog import WordEmbedder
from tests.factories import ROOT, Page, Site, crawl, make_source, shown
from tests.sites.repositories import PLAIN, GitServer, git_server

WEB = "https://github.com/owner/manual"
NO_BRAKE = LifecycleRules(brake_share=1.0, brake_documents=1000)


@dataclass
class Kept:
    """A source of a repository on a server, crawled by the real engine."""

    db: Database
    source: Source
    cache: Path
    repository: Repository
    settings: SourceSettings
    labels: dict[str, str] = field(default_factory=dict)  # a document's id -> what the story calls it

    def origin(self) -> GitOrigin:
        way = Transport(settings=self.settings, environment=PLAIN, look_up=str)
        return GitOrigin(
            self.repository, self.settings, transport=way, cache_folder=self.cache, type_of=guess_content_type
        )

    async def crawl(self) -> CrawlJob:
        async def read_here(body: bytes, content_type: str, url: str) -> ParsedPage | Unreadable:
            return parse_page(body, content_type=content_type, url=url)

        def make_run(lease: Lease, claimed: Source) -> CrawlRun:
            origin = self.origin()
            return CrawlRun(
                self.db, lease, claimed, origin, read=read_here, signature=pipeline_signature(), rules=NO_BRAKE
            )

        job = await queue.enqueue(self.db, self.source.id)
        done = await claim_and_run(self.db, job.id, make_run)
        assert done is not None
        return done

    async def counts(self) -> dict[str, int]:
        job = await self.crawl()
        assert job.status is JobStatus.COMPLETED, job.error
        return {name: count for name, count in job.progress.tally.as_json().items() if count}

    async def table(self) -> dict[str, str]:
        """Return the documents shown: URL below the repository's -> the name it was first shown under."""
        found = {
            url.removeprefix(f"{WEB}/"): document for url, (document, _) in (await shown(self.db, self.source)).items()
        }
        for name, document in found.items():
            self.labels.setdefault(document, name)
        return {name: self.labels[document] for name, document in found.items()}

    async def states(self) -> dict[str, str]:
        async with self.db.snapshot() as snapshot:
            rows = await run_sql(snapshot, "SELECT id, lifecycle FROM documents")
        return {self.labels[str(id)]: str(lifecycle) for id, lifecycle in rows if str(id) in self.labels}


@contextmanager
def open_server(tmp_path: Path) -> Iterator[GitServer]:
    folder = tmp_path / "served"
    folder.mkdir()
    with git_server(folder) as server:
        yield server


async def kept(db: Database, server: GitServer, tmp_path: Path, at: str = "", name: str = "manual") -> Kept:
    settings = SourceSettings(access=Access(allowed=(server.url.removeprefix("http://"),)))
    repository = Repository(remote=f"{server.url}/owner/manual.git", web_url=WEB, forge=Forge.GITHUB, ref_and_path=at)
    source = await make_source(db, name, root=f"{repository.root} {at}", kind=SourceKind.GIT, settings=settings)
    return Kept(db, source, tmp_path / "cache", repository, settings)


def page(title: str, *more: str) -> str:
    lines = [f"{title} has a line of its own about the number {number}." for number in range(12)]
    return "\n\n".join([f"# {title}", *lines, *more]) + "\n"


FIRST: Mapping[str, str] = {
    "README.md": page("Readme", "[pool](docs/pool.md)"),
    "docs/pool.md": page("Pool"),
    "docs/install.md": page("Install"),
    "docs/old.md": page("Old"),
    "docs/guide/start.md": page("Start"),
    "src/code.py": "print('no documentation')\n",
    "src/notes.md": page("Notes of a developer"),
}


@on_both_databases
async def test_every_push_leads_to_the_matching_changes(db: Database, tmp_path: Path) -> None:
    with open_server(tmp_path) as server:
        manual, wiki = server.repository("owner/manual.git"), server.repository("owner/manual.wiki.git")
        manual.commit(FIRST)
        wiki.commit({"Home.md": page("Home"), "How-To.md": page("How to"), "_Sidebar.md": page("Sidebar")})
        source = await kept(db, server, tmp_path)

        assert await source.counts() == {"new": 7}
        names = ["README.md", "docs/pool.md", "docs/install.md", "docs/old.md", "docs/guide/start.md"]
        first = {f"blob/main/{name}": f"blob/main/{name}" for name in names} | {
            "wiki/Home": "wiki/Home",
            "wiki/How-To": "wiki/How-To",
        }
        assert await source.table() == first

        # Nothing was pushed: each repository gets one request, and nothing but the crawl itself is written.
        before, earlier = await count_rows(db), len(server.requests)
        assert await source.counts() == {"unchanged": 7}
        after = await count_rows(db)
        own = {"frontier", "crawl_jobs", "generations", "job_workers", "host_shares"}
        assert {table for table in before if before[table] != after[table]} <= own
        info, command = "info/refs?service=git-upload-pack", "git-upload-pack"
        repositories = ("/owner/manual.git", "/owner/manual.wiki.git")
        one_each = [
            (verb, f"{one}/{what}") for one in repositories for verb, what in (("GET", info), ("POST", command))
        ]
        assert server.requests[earlier:] == one_each

        # An edit, a rename, a rename with an edit, a deletion and something new; and our copy was thrown away.
        shutil.rmtree(source.cache)
        files = dict(FIRST)
        files["docs/pool.md"] += "\nOne more line.\n"
        files["docs/setup.md"] = files.pop("docs/install.md")
        files["docs/guide/begin.md"] = (
            files.pop("docs/guide/start.md").replace("number 3", "number three") + "\nMore.\n"
        )
        del files["docs/old.md"]
        files["docs/new.md"] = page("Something else entirely", "with words that no other page has")
        manual.commit(files)
        wiki.commit({"Home.md": page("Home"), "Tricks.md": page("How to", "and more")})
        assert await source.counts() == {"unchanged": 2, "changed": 1, "moved": 3, "gone": 1, "new": 1}
        second = {
            "blob/main/README.md": "blob/main/README.md",
            "blob/main/docs/pool.md": "blob/main/docs/pool.md",
            "blob/main/docs/setup.md": "blob/main/docs/install.md",
            "blob/main/docs/guide/begin.md": "blob/main/docs/guide/start.md",
            "blob/main/docs/new.md": "blob/main/docs/new.md",
            "wiki/Home": "wiki/Home",
            "wiki/Tricks": "wiki/How-To",
        }
        assert await source.table() == second
        states = dict.fromkeys(first, "active") | {
            "blob/main/docs/old.md": "missing",
            "blob/main/docs/new.md": "active",
        }
        assert await source.states() == states

        # History is written anew: what matters is what is there.
        files["docs/old.md"] = FIRST["docs/old.md"]
        files["docs/pool.md"] = page("Pool", "as it is told after all")
        manual.commit(files, orphan=True)
        assert await source.counts() == {"unchanged": 6, "changed": 1, "new": 1}
        assert await source.table() == second | {"blob/main/docs/old.md": "blob/main/docs/old.md"}
        assert set((await source.states()).values()) == {"active"}

        # The default branch gets another name: every URL is another, every document is the same.
        manual.git("branch", "-m", "main", "trunk")
        manual.git("symbolic-ref", "HEAD", "refs/heads/trunk")
        assert (await source.counts())["moved"] == 6
        moved = await source.table()
        assert moved["blob/trunk/docs/setup.md"] == "blob/main/docs/install.md"
        assert len(moved) == 8

        # A wiki that was removed is not an error, a repository that was removed is one; either way nothing is lost.
        (server.folder / "owner/manual.wiki.git").rename(server.folder / "away")
        files["docs/setting-up.md"] = files.pop("docs/setup.md") + "\nMore.\n"
        manual.commit(files, branch="trunk")
        assert await source.counts() == {"unchanged": 5, "moved": 1, "gone": 2}
        assert (await source.table())["blob/trunk/docs/setting-up.md"] == "blob/main/docs/install.md"
        (server.folder / "owner/manual.git").rename(server.folder / "gone.git")
        job = await source.crawl()
        assert job.status is JobStatus.FAILED
        assert "does not exist, or requires a login" in (job.error or "")
        assert len(await source.table()) == 6


@on_both_databases
async def test_a_second_version_adds_only_what_differs(db: Database, tmp_path: Path) -> None:
    with open_server(tmp_path) as server:
        manual = server.repository("owner/manual.git")
        files = {
            f"docs/{number:04d}.md": f"# Page {number}\n\nWhat is said about {number}.\n" for number in range(1000)
        }
        manual.commit(files)
        manual.git("tag", "v1")
        for number in range(7):
            files[f"docs/{number:04d}.md"] += f"\n## News\n\nWhat is new about {number}.\n"
        manual.commit(files)
        manual.git("tag", "-a", "-m", "2", "v2", "main")

        one = await kept(db, server, tmp_path, at="v1", name="one")
        assert await one.counts() == {"new": 1000}
        filler = EmbeddingBacklog(WordEmbedder())
        assert (await filler.embed_pending(db)).embedded == 1000
        before, earlier = await count_rows(db), len(server.requests)
        two = await kept(db, server, tmp_path, at="v2", name="two")
        assert await two.counts() == {"new": 1000}
        after = await count_rows(db)
        assert after["contents"] - before["contents"] == 7
        assert after["sections"] - before["sections"] == 14
        assert (await filler.embed_pending(db)).embedded == 7, "what is equal in both versions has its vector"
        posts = [path for verb, path in server.requests[earlier:] if verb == "POST"]
        assert len(posts) == 3, "where it is, its commit, the seven files: nothing that is there already"
        urls = await shown(db, two.source)
        assert set(urls) == {f"{WEB}/blob/v2/{name}" for name in files}


@on_both_databases
async def test_a_wiki_that_cannot_be_read_loses_nothing(db: Database, tmp_path: Path) -> None:
    with open_server(tmp_path) as server:
        server.repository("owner/manual.git").commit({"a.md": page("A")})
        server.repository("owner/manual.wiki.git").commit({"Home.md": page("Home")})
        source = await kept(db, server, tmp_path)
        assert await source.counts() == {"new": 2}
        server.pages["/owner/manual.wiki.git/info/refs"] = (500, "out of order")
        assert await source.counts() == {"unchanged": 1, "failed": 1}
        assert set(await source.table()) == {"blob/main/a.md", "wiki/Home"}


class CutShort(Site):
    """The first crawl ends after the listing, before absent documents are settled."""

    runs = 0

    async def find_renames(self, missing: Mapping[str, Validators], new_urls: Sequence[str]) -> Mapping[str, str]:
        self.runs += 1
        if self.runs == 1:
            raise asyncio.CancelledError
        return await super().find_renames(missing, new_urls)


@on_both_databases
async def test_a_crawl_that_is_interrupted_finds_the_same_renames_again(db: Database) -> None:
    source = await make_source(db, kind=SourceKind.GIT)
    before = {f"{ROOT}{name}": Page(text=f"{name} " * 40, tag=name) for name in "abc"}
    await crawl(db, source, Site(before, lists_everything=True))
    first = await shown(db, source)
    after = {f"{ROOT}a": before[f"{ROOT}a"], f"{ROOT}new": Page(text="all of it is new " * 9, tag="n")}
    site = CutShort(after, lists_everything=True, renames={f"{ROOT}b": f"{ROOT}new"})
    job = await crawl(db, source, site, rules=NO_BRAKE)
    assert (site.runs, job.status) == (1, JobStatus.PENDING)
    done = await crawl(db, source, site, rules=NO_BRAKE)
    assert (site.runs, done.id, done.status) == (2, job.id, JobStatus.COMPLETED)
    tally = done.progress.tally
    assert (tally.unchanged, tally.moved, tally.gone, tally.new) == (1, 1, 1, 0)
    assert {url: document for url, (document, _) in (await shown(db, source)).items()} == {
        f"{ROOT}a": first[f"{ROOT}a"][0],
        f"{ROOT}new": first[f"{ROOT}b"][0],
    }
