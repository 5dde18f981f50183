"""Test random file operations against a simple model of the lifecycle: identities, states, history, shown documents.

``python -m tests.crash.file_operations --operations 10000`` runs longer, on both databases.
"""

import argparse
import asyncio
import os
import random
import tempfile
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from kept.crawl.engine import CrawlRun
from kept.crawl.lifecycle import LifecycleRules
from kept.crawl.visitor import ReadPage
from kept.extract.reader import guess_content_type
from kept.extract.sections import SectionNode, SectionRules, build_content
from kept.jobs import queue
from kept.jobs.worker import claim_and_run
from kept.model.document import ParsedPage
from kept.model.frontier import Unreachable, Visit
from kept.model.ids import new_id
from kept.model.job import CrawlJob, JobStatus, Lease
from kept.model.source import Limits, Scope, Source, SourceKind
from kept.model.url import file_path, file_url
from kept.origins.folder import FolderOrigin
from kept.origins.zip_file import ZipOrigin, is_zip_root
from kept.store import documents
from kept.store.database import Database
from tests.contract.databases import run_sql
from tests.factories import database_at, make_source, shown
from tests.postgres import PostgresServer

NO_BRAKE = LifecycleRules(brake_share=2.0, brake_documents=10**9)
LETTERS = "pqrstuv"
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC).timestamp()


class LockedFolder(FolderOrigin):
    """A folder in which some files cannot be read, not even by root."""

    locked: frozenset[str] = frozenset()

    def _read_file(self, path: str) -> Visit:
        return Unreachable(reason="locked", is_retryable=False) if path in self.locked else super()._read_file(path)


async def read_plainly(body: bytes, content_type: str, url: str) -> ParsedPage:
    text = body.decode("utf-8", "replace")
    return ParsedPage(content=build_content("", text, SectionNode(content=text), SectionRules()))


async def crawl_folder(
    db: Database,
    source: Source,
    root: Path,
    *,
    locked: frozenset[str] = frozenset(),
    rules: LifecycleRules = NO_BRAKE,
    read: ReadPage = read_plainly,
) -> CrawlJob:
    """Crawl a folder."""
    job = await queue.enqueue(db, source.id)

    def make_run(lease: Lease, claimed: Source) -> CrawlRun:
        kind = ZipOrigin if is_zip_root(source.root) else LockedFolder
        origin = kind(source.root, scope=Scope(), limits=Limits(), type_of=guess_content_type)
        if isinstance(origin, LockedFolder):
            origin.locked = locked
        return CrawlRun(db, lease, claimed, origin, read=read, signature="1", rules=rules)

    done = await claim_and_run(db, job.id, make_run)
    assert done is not None
    return done


@dataclass(frozen=True)
class Text:
    """The text of a file. Edits of one topic are similar, two topics are not. A tiny text identifies nothing."""

    topic: int
    edits: int = 0
    tiny: bool = False

    def __str__(self) -> str:
        if self.tiny:
            return f"t{self.topic} e{self.edits}"
        body = " ".join(f"w{self.topic}x{number}" for number in range(30))
        return f"{body} {' '.join(f'edit{number}' for number in range(self.edits % 5))} {self.edits}"

    def is_like(self, other: "Text") -> bool:
        return self == other if self.tiny else self.topic == other.topic and not other.tiny


@dataclass
class Doc:
    """A document of the model."""

    path: str
    text: Text
    state: str = "active"
    born: int = 0  # the crawl that brought what it last was
    stamp: int = 0  # the file that was read: equal only for the same file, not written to since
    history: list[tuple[str, Text]] = field(default_factory=list)


def same_path(path: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def same_stem(path: str) -> str:
    folder, name = os.path.split(same_path(path))
    return os.path.join(folder, name.rpartition(".")[0] or name)


def same_name(path: str) -> str:
    return os.path.basename(same_path(path))


class Folders:
    """A folder, the operations on it, and the model of its documents."""

    def __init__(self, db: Database, source: Source, root: Path, chance: random.Random) -> None:
        self.db, self.source, self.root, self.chance = db, source, root, chance
        self.files: dict[str, Text] = {}
        self.stamps: dict[str, int] = {}
        self.locked: set[str] = set()
        self.shown: dict[str, Doc] = {}
        self.docs: list[Doc] = []
        self.ids: dict[str, Doc] = {}
        self.crawls = self.operations = self._stories = self._clock = 0
        root.mkdir(parents=True, exist_ok=True)
        self._write("anchor.md", Text(0))

    async def run(self, operations: int) -> None:
        while self.operations < operations:
            for _ in range(self.chance.randrange(1, 13)):
                self.chance.choice(self._operations())()
                self.operations += 1
            await self.crawl()

    # Operations

    def _operations(self) -> list[Callable[[], None]]:
        plain = [
            self._create,
            self._create,
            self._edit,
            self._rewrite,
            self._delete,
            self._rename,
            self._rename,
            self._move,
        ]
        return [
            *plain,
            self._move_and_edit,
            self._respell,
            self._resuffix,
            self._swap,
            self._copy,
            self._replace,
            self._lock,
        ]

    def _some(self) -> str | None:
        return self.chance.choice([path for path in sorted(self.files) if path != "anchor.md"] or [None])  # type: ignore[list-item]

    def _fresh(self, *, folder: str | None = None, name: str | None = None) -> str:
        folder = self.chance.choice(["", "a/", "b/", "a/deep/"]) if folder is None else folder
        return f"{folder}{name or f'{self.chance.choice(LETTERS)}{self.chance.randrange(9)}é.md'}"

    def _write(self, path: str, text: Text) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(str(text))
        self._touch(path)
        self.files[path] = text

    def _touch(self, path: str) -> None:
        self._clock += 1
        os.utime(self.root / path, (LONG_AGO + self._clock,) * 2)
        self.stamps[path] = self._clock

    def _put(self, old: str, new: str) -> bool:
        if new == old:
            return False
        (self.root / new).parent.mkdir(parents=True, exist_ok=True)
        (self.root / old).rename(self.root / new)
        self.files[new], self.stamps[new] = self.files.pop(old), self.stamps.pop(old)
        self.locked -= {old, new}
        return True

    def _create(self) -> None:
        self._stories += 1
        path = self._fresh()
        if path not in self.files:
            self._write(path, Text(self._stories, tiny=self.chance.random() < 0.1))

    def _edit(self) -> None:
        if path := self._some():
            text = self.files[path]
            self._write(path, Text(text.topic, text.edits + 1, text.tiny))

    def _rewrite(self) -> None:
        self._stories += 1
        if path := self._some():
            self._write(path, Text(self._stories))

    def _delete(self) -> None:
        if path := self._some():
            (self.root / path).unlink()
            del self.files[path], self.stamps[path]
            self.locked.discard(path)

    def _rename(self) -> None:
        if (path := self._some()) and (new := self._fresh(folder=path[: path.rfind("/") + 1])) not in self.files:
            self._put(path, new)

    def _move(self, *, edit: bool = False) -> None:
        if (path := self._some()) and (new := self._fresh(name=os.path.basename(path))) not in self.files:
            self._put(path, new)
            if edit:
                text = self.files[new]
                self._write(new, Text(text.topic, text.edits + 1, text.tiny))

    def _move_and_edit(self) -> None:
        self._move(edit=True)

    def _respell(self) -> None:
        """Change only the case of a name, or the Unicode normalization."""
        if path := self._some():
            folder, name = path[: path.rfind("/") + 1], os.path.basename(path)
            forms = [
                name.swapcase().replace(".MD", ".md"),
                unicodedata.normalize("NFD", name),
                unicodedata.normalize("NFC", name),
            ]
            new = folder + self.chance.choice(forms)
            if new not in self.files:
                self._put(path, new)

    def _resuffix(self) -> None:
        if (path := self._some()) and (
            new := path.rpartition(".")[0] + self.chance.choice([".md", ".txt"])
        ) not in self.files:
            self._put(path, new)

    def _swap(self) -> None:
        one, other = self._some(), self._some()
        if one and other and one != other:
            (self.root / one).rename(self.root / ".swap")
            (self.root / other).rename(self.root / one)
            (self.root / ".swap").rename(self.root / other)
            self.files[one], self.files[other] = self.files[other], self.files[one]
            self.stamps[one], self.stamps[other] = self.stamps[other], self.stamps[one]
            self.locked -= {one, other}

    def _copy(self) -> None:
        if (path := self._some()) and (new := self._fresh()) not in self.files:
            self._write(new, self.files[path])

    def _replace(self) -> None:
        one, other = self._some(), self._some()
        if one and other and one != other:
            self._put(one, other)

    def _lock(self) -> None:
        if path := self._some():
            self._touch(path)
            self.locked ^= {path}

    # Expected results

    async def crawl(self) -> None:
        job = await crawl_folder(
            self.db, self.source, self.root, locked=frozenset(str(self.root / path) for path in self.locked)
        )
        assert job.status is JobStatus.COMPLETED, job.error
        assert not job.held
        self.crawls += 1
        self._foresee()
        await self._compare()

    def _foresee(self) -> None:
        before, self.shown = self.shown, {}
        readable = {path: text for path, text in self.files.items() if path not in self.locked}
        arrived = {path: text for path, text in readable.items() if path not in before}
        for path, doc in before.items():
            if path in self.files:
                self.shown[path] = doc
                doc.state = "error" if path in self.locked else "active"
                if path in readable and doc.text != readable[path]:
                    self._is_now(doc, path, readable[path])
        lost = [doc for path, doc in before.items() if path not in self.files]
        missing = [doc for doc in self.docs if doc.state == "missing"]
        for path in list(arrived):
            for doc in lost:
                if doc.stamp == self.stamps[path]:  # the same file, whatever is in it
                    self._is_now(doc, path, arrived.pop(path))
        lost = [doc for doc in lost if doc not in self.shown.values()]
        for path, doc in self._by_content(arrived, lost, missing):
            self._is_now(doc, path, arrived.pop(path))
        for path in list(arrived):
            last = [doc for doc in missing if doc.path == path and doc not in self.shown.values()]
            if last:
                self._is_now(max(last, key=lambda doc: doc.born), path, arrived.pop(path))
        for likeness in (same_path, same_stem, same_name):
            left = [doc for doc in lost if doc not in self.shown.values()]
            for path in list(arrived):
                alike = [other for other in arrived if likeness(other) == likeness(path)]
                same = [doc for doc in left if likeness(doc.path) == likeness(path)]
                if len(alike) == len(same) == 1 and (likeness is same_path or arrived[path].is_like(same[0].text)):
                    self._is_now(same[0], path, arrived[path])
            arrived = {path: text for path, text in arrived.items() if path not in self.shown}
        for doc in lost:
            if doc not in self.shown.values():
                doc.state = "missing"
        for path, text in arrived.items():
            doc = Doc(path, text)
            self.docs.append(doc)
            self._is_now(doc, path, text)
        for path, doc in self.shown.items():
            doc.stamp = self.stamps[path] if path in readable else doc.stamp

    def _by_content(self, arrived: dict[str, Text], lost: list[Doc], missing: list[Doc]) -> list[tuple[str, Doc]]:
        found = []
        for text in set(arrived.values()):
            paths = [path for path in arrived if arrived[path] == text]
            same = [doc for doc in lost if doc.text == text] or [doc for doc in missing if doc.text == text]
            if len(paths) == len(same) == 1 and len(str(text)) >= 64:
                found.append((paths[0], same[0]))
        return found

    def _is_now(self, doc: Doc, path: str, text: Text) -> None:
        doc.path, doc.text, doc.state = path, text, "active"
        doc.history.append((path, text))
        doc.born = self.crawls
        self.shown[path] = doc

    # Actual results

    async def _compare(self) -> None:
        found = {
            file_path(url)[len(str(self.root)) + 1 :]: pair for url, pair in (await shown(self.db, self.source)).items()
        }
        assert found.keys() == self.shown.keys(), f"after {self.crawls} crawls"
        hashes = {
            text: (await read_plainly(str(text).encode(), "", "")).content.hash
            for text in {doc.text for doc in self.docs}
        }
        ids = self.ids
        for path, (id, hash) in found.items():
            doc = self.shown[path]
            assert hash == hashes[doc.text], path
            assert ids.setdefault(id, doc) is doc, f"{path} is another document after {self.crawls} crawls"
        async with self.db.snapshot() as snapshot:
            rows = await run_sql(snapshot, "SELECT id, lifecycle FROM documents")
            states = {str(id): state for id, state in rows}
            assert {id: doc.state for id, doc in ids.items()} == states
            for id in self.chance.sample(sorted(ids), min(3, len(ids))):
                versions = await documents.versions_of(snapshot, id)
                urls = [file_path(row.url)[len(str(self.root)) + 1 :] for row in versions]
                assert urls == [path for path, _ in ids[id].history]


async def scenario(url: str, operations: int, seed: str, folder: Path) -> Folders:
    async with database_at(url) as db:
        root = folder / "docs"
        source = await make_source(db, "docs", root=file_url(str(root)), kind=SourceKind.FOLDER)
        folders = Folders(db, source, root, random.Random(seed))
        await folders.run(operations)
        return folders


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=int, default=10_000)
    parser.add_argument("--seed", default=new_id())
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}")
    server = PostgresServer(os.environ.get("KEPT_TEST_POSTGRES"))
    try:
        if not os.environ.get("KEPT_TEST_POSTGRES"):
            server.start()
        for store in ("sqlite", "postgres"):
            with tempfile.TemporaryDirectory() as folder:
                url = f"sqlite:///{Path(folder, 'kept.db')}" if store == "sqlite" else server.create_database()
                done = asyncio.run(scenario(url, arguments.operations, arguments.seed, Path(folder)))
                counts = f"{done.operations} operations, {done.crawls} crawls, {len(done.docs)} documents"
                print(f"{store}: {counts}: as foreseen")
    finally:
        server.close()


if __name__ == "__main__":
    main()
