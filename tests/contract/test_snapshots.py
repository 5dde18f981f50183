"""Every answer shows one whole generation, however many are activated while it is computed.

A writer activates and rolls back generation after generation, in all the ways there are; fifty readers, most of them in
other processes, query all the time. They run between the statements of the writer, so also in the middle of an
activation. The content of every generation is known, and every answer is compared with it: the same pages, the same
words, none missing, none of another generation.

    KEPT_TEST_LONG=1    runs until there are 100,000 answers on each database
"""

import asyncio
import multiprocessing
import os
import random
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import cycle
from multiprocessing.connection import Connection as Pipe
from typing import Any

from kept.crawl.lifecycle import LifecycleRules
from kept.errors import NotFound
from kept.extract.sections import Unreadable
from kept.maintenance.gc import Retention, collect
from kept.model.generation import GenerationState
from kept.model.search_request import SearchRequest
from kept.model.source import Source
from kept.service import documents as documents_service
from kept.service import generations as past
from kept.service import search
from kept.service import sources as kept_sources
from kept.store import documents, sections, sources
from kept.store.database import Connection, Database
from tests.factories import ROOT, Page, Site, crawl, database_at, make_source, read_scripted

LONG = os.environ.get("KEPT_TEST_LONG") == "1"
ACTIVATIONS = 200 if LONG else 40
ANSWERS = 100_000 if LONG else 1_000
SHARE = 1.0 if LONG else 0.25  # of the statements that give a turn
READERS_HERE = 10
READERS_ELSEWHERE = (20, 20)
PAGES = 30
ALWAYS = range(12)  # these pages are always there; the others come and go
GROUPS = 3
RETAINED = 20  # generations

Told = tuple[str, int, list[tuple[str, str]]]
Answer = tuple[str, int, tuple[tuple[str, str], ...]]  # the query, the generation, url -> text


# What is shown -------------------------------------------------------------------------------------------------


def url(page: int) -> str:
    return f"{ROOT}{page:02}"


def words(page: int, state: int) -> str:
    return f"Page {page} of group{page % GROUPS} in state {state}: a needle in a haystack, page{page} among its like."


def site(pages: dict[int, int], wanderer: tuple[str, int]) -> Site:
    """Return pages in their states, and one that has another URL every time."""
    where, state = wanderer
    texts = {url(page): words(page, at) for page, at in pages.items()} | {where: words(99, state)}
    linked = [*map(url, range(PAGES)), *(f"{ROOT}wanderer-{number}" for number in range(4))]
    root = Page(text=words(98, 0), links=tuple(linked))
    return Site({ROOT: root} | {where: Page(text=text) for where, text in texts.items()})


async def documents_of(site: Site) -> dict[str, tuple[str, str]]:
    """Return the contents of a generation of this site: url -> (words, content hash)."""
    contents = {}
    for where, page in site.pages.items():
        read = await read_scripted(page.body, "text/plain", where)
        assert not isinstance(read, Unreadable)
        contents[where] = (page.text, read.content.hash)
    return contents


def expected(question: str, contents: dict[str, tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return the correct answer of a generation."""
    kind, _, about = question.partition(" ")
    match kind:
        case "list":
            return tuple(sorted((where, hash) for where, (_, hash) in contents.items()))
        case "count":
            return (("documents", str(len(contents))), ("sections", str(len(contents))))
        case "search":
            return tuple(
                sorted((where, text) for where, (text, _) in contents.items() if re.search(rf"\b{about}\b", text))
            )
        case _:
            return ((about, contents[about][0]),)


# Readers ---------------------------------------------------------------------------------------------------------


@dataclass
class Reader:
    """Sends one query after the other and records the answers."""

    db: Database
    source: str
    chance: random.Random
    answers: Counter[Answer] = field(default_factory=Counter)

    async def query(self) -> None:
        ways = [
            self._list,
            self._list_in_parts,
            self._count,
            self._search,
            self._search_older,
            self._read,
            self._sections,
        ]
        if answer := await self.chance.choice(ways)():
            question, generation, contents = answer
            self.answers[question, generation, tuple(sorted(contents))] += 1

    async def _list(self) -> Told:
        async with self.db.snapshot() as snapshot:
            number = await self._active(snapshot)
            rows = await documents.of_generation(snapshot, self.source, number)
        return "list", number, [(one.url, one.content_hash) for one in rows]

    async def _list_in_parts(self) -> Told:
        """List in parts: the cursor has the generation, so all parts belong to the same one."""
        rows: list[Any] = []
        number = 0
        while True:
            async with self.db.snapshot() as snapshot:
                number = number or await self._active(snapshot)
                after = rows[-1].url if rows else ""
                part = await documents.of_generation(snapshot, self.source, number, after=after, limit=10)
            if not part:
                break
            rows += part
        return "list", number, [(one.url, one.content_hash) for one in rows]

    async def _count(self) -> Told:
        view = await kept_sources.show_source(self.db, "docs")
        assert view.generation is not None
        assert view.generation.number == view.source.active_generation
        assert view.generation.state is GenerationState.ACTIVE
        return "count", view.generation.number, [("documents", str(view.documents)), ("sections", str(view.sections))]

    async def _search(self, generation: int | None = None) -> Told:
        word = self.chance.choice([*(f"group{group}" for group in range(GROUPS)), "page5"])
        hits = await search.search_sections(
            self.db, SearchRequest(text=word, labels=("docs",), limit=PAGES + 2, generation=generation)
        )
        numbers = {hit.generation for hit in hits}
        assert len(numbers) == 1, "an answer stands on one generation"
        return f"search {word}", numbers.pop(), [(hit.url, hit.text) for hit in hits]

    async def _search_older(self) -> Told | None:
        async with self.db.snapshot() as snapshot:
            number = await self._active(snapshot) - self.chance.randrange(RETAINED // 2)
        try:
            return await self._search(number)
        except NotFound:  # it was discarded, or is not retained any more
            return None

    async def _read(self) -> Told:
        where = url(self.chance.choice(ALWAYS))
        page = await documents_service.read_document(self.db, where)
        return f"read {where}", page.generation, [(page.url, page.markdown)]

    async def _sections(self) -> Told:
        where = url(self.chance.choice(ALWAYS))
        async with self.db.snapshot() as snapshot:
            [shown] = await documents.visible_by_url(snapshot, where)
            active = await self._active(snapshot)
            version = await documents.version_in_generation(snapshot, shown.document_id, active)
            assert version is not None
            [section] = await sections.of_content(snapshot, version.content_id)
        return f"sections {where}", active, [(where, section.text)]

    async def _active(self, snapshot: Connection) -> int:
        source = await sources.get(snapshot, self.source)
        assert source is not None
        assert source.active_generation is not None
        return source.active_generation


class Readers:
    """Several readers on their own databases. Each turn is one query of one of them."""

    def __init__(self, databases: list[Database], source: str, seed: int, how_many: int) -> None:
        self._readers = [
            Reader(databases[at % len(databases)], source, random.Random(seed + at)) for at in range(how_many)
        ]
        self._turns = asyncio.Semaphore(0)
        self._tasks = [asyncio.create_task(self._query(reader)) for reader in self._readers]

    def give_turns(self, turns: int) -> None:
        for _ in range(turns):
            self._turns.release()

    @property
    def answers(self) -> Counter[Answer]:
        return sum((reader.answers for reader in self._readers), Counter())

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        for ended in await asyncio.gather(*self._tasks, return_exceptions=True):
            if not isinstance(ended, asyncio.CancelledError):
                raise ended

    async def _query(self, reader: Reader) -> None:
        while True:
            await self._turns.acquire()
            await reader.query()


def read_elsewhere(database_url: str, source: str, seed: int, how_many: int, pipe: Pipe) -> None:
    """Run readers in a process: receive numbers of turns, send numbers of answers, and in the end the answers."""

    async def scenario() -> None:
        async with AsyncExitStack() as stack:
            databases = [await stack.enter_async_context(database_at(database_url)) for _ in range(2)]
            readers = Readers(databases, source, seed, how_many)
            loop, stopping = asyncio.get_running_loop(), asyncio.Event()

            def on_message() -> None:
                try:
                    match pipe.recv():
                        case int(turns):
                            readers.give_turns(turns)
                        case "how many?":
                            pipe.send(readers.answers.total())
                        case "stop":
                            stopping.set()
                except (EOFError, OSError):  # the other process has ended
                    loop.remove_reader(pipe.fileno())
                    stopping.set()

            loop.add_reader(pipe.fileno(), on_message)
            pipe.send("ready")
            await stopping.wait()
            await readers.stop()
            pipe.send(readers.answers)

    asyncio.run(scenario())


# The one that writes -------------------------------------------------------------------------------------------


@dataclass
class Writer:
    """Activates generations in all possible ways, and records the documents of each."""

    db: Database
    source: Source
    chance: random.Random
    shows: dict[int, dict[str, tuple[str, str]]] = field(default_factory=dict)
    pages: dict[int, int] = field(default_factory=lambda: dict.fromkeys(range(PAGES), 0))
    wanderer: tuple[str, int] = (f"{ROOT}wanderer-0", 0)
    state: int = 0
    activated: Counter[str] = field(default_factory=Counter)

    async def next(self) -> None:
        """Activate a dozen generations, and sometimes collect older ones."""
        await self.crawl()
        await self.crawl_and_hold()
        for _ in range(10):
            await self.roll_back()
        if self.chance.random() < 0.3:
            await collect(self.db, Retention(generations=RETAINED, younger_than=timedelta()))

    async def crawl(self) -> None:
        self._change(self.chance.sample(range(PAGES), 6))
        absent = self.chance.sample(range(len(ALWAYS), PAGES), 3)
        await self._crawl(self._site(without=absent), LifecycleRules(brake_share=1.0))
        self.activated["crawl"] += 1

    async def crawl_and_hold(self) -> None:
        """Hold a generation that lost too much, then activate or discard it."""
        self._change(self.chance.sample(ALWAYS, 3))
        lost = self._site(without=list(range(len(ALWAYS), PAGES)))
        job = await self._crawl(lost, LifecycleRules())
        assert job.held
        if self.chance.random() < 0.7:
            assert await past.activate_held(self.db, "docs", LifecycleRules()) == job.generation
            self.activated["held"] += 1
        else:
            await past.discard_held(self.db, "docs")
            del self.shows[job.generation or 0]

    async def roll_back(self) -> None:
        _, generations = await past.list_generations(self.db, "docs")
        before = [one.number for one in generations if one.state is GenerationState.RETIRED]
        target = self.chance.choice(before)
        number = await past.roll_back(self.db, "docs", target)
        self.shows[number] = self.shows[target]
        self.activated["rollback"] += 1

    def _change(self, pages: Iterable[int]) -> None:
        self.state += 1
        self.pages |= dict.fromkeys(pages, self.state)
        if self.chance.random() < 0.5:
            self.wanderer = (f"{ROOT}wanderer-{self.state % 4}", self.wanderer[1])

    def _site(self, *, without: list[int]) -> Site:
        return site({page: state for page, state in self.pages.items() if page not in without}, self.wanderer)

    async def _crawl(self, site: Site, rules: LifecycleRules) -> Any:
        job = await crawl(self.db, self.source, site, rules=rules)
        assert job.generation is not None, job.error
        self.shows[job.generation] = await documents_of(site)
        return job


# The promise ---------------------------------------------------------------------------------------------------


class Watched:
    """A database with a callback in transactions, before some statements and after the last."""

    def __init__(self, db: Database, call: Callable[[], None]) -> None:
        self._db = db
        self._call = call

    @asynccontextmanager
    async def transaction(self, *, durable: bool = False) -> AsyncIterator[Connection]:
        async with self._db.transaction(durable=durable) as tx:
            # Whatever changes what is shown is durable: most questions are asked meanwhile.
            yield WatchedConnection(tx, self._call) if durable or random.random() < 0.05 else tx
        self._call()

    def snapshot(self) -> AbstractAsyncContextManager[Connection]:
        return self._db.snapshot()

    async def close(self) -> None:
        await self._db.close()


class WatchedConnection:
    def __init__(self, tx: Connection, call: Callable[[], None]) -> None:
        self._tx = tx
        self._call = call

    def __getattr__(self, name: str) -> Any:
        if random.random() < SHARE:
            self._call()
        return getattr(self._tx, name)


async def start_elsewhere(stack: AsyncExitStack, database_url: str, source: str, seed: int) -> list[Pipe]:
    """Start processes of readers and yield the connections to them."""
    context = multiprocessing.get_context("spawn")
    pipes = []
    for number, how_many in enumerate(READERS_ELSEWHERE, start=1):
        here, there = context.Pipe()
        arguments = (database_url, source, seed + 1000 * number, how_many, there)
        process = context.Process(target=read_elsewhere, args=arguments, daemon=True)
        process.start()
        there.close()
        stack.callback(process.join)
        stack.callback(process.kill)
        pipes.append(here)
    assert [await asyncio.to_thread(pipe.recv) for pipe in pipes] == ["ready"] * len(pipes)
    return pipes


def test_every_answer_is_one_whole_generation(database_url: str) -> None:
    seed = int(os.environ["KEPT_TEST_SEED"])

    async def scenario() -> None:
        async with AsyncExitStack() as stack:
            db, beside = [await stack.enter_async_context(database_at(database_url)) for _ in range(2)]

            def turns() -> None:
                if give := next(givers, None):
                    give(1)

            async def replies(question: str) -> list[Any]:
                for pipe in pipes:
                    pipe.send(question)
                return [await asyncio.to_thread(pipe.recv) for pipe in pipes]

            async def answered() -> int:
                return readers.answers.total() + sum(await replies("how many?"))

            givers: Iterator[Callable[[int], None]] = iter([])
            writer = Writer(Watched(db, turns), await make_source(db), random.Random(seed))
            await writer.crawl()
            pipes = await start_elsewhere(stack, database_url, writer.source.id, seed)
            readers = Readers([db, beside], writer.source.id, seed, READERS_HERE)
            givers = cycle([readers.give_turns, *(pipe.send for pipe in pipes)])
            while writer.activated.total() < ACTIVATIONS or await answered() < ANSWERS:
                await writer.next()
            await readers.stop()
            check(writer, sum(await replies("stop"), readers.answers))

    asyncio.run(scenario())


def check(writer: Writer, answers: Counter[Answer]) -> None:
    mixed = [
        (question, number, set(contents) ^ set(expected(question, writer.shows[number])))
        for question, number, contents in answers
        if contents != expected(question, writer.shows[number])
    ]
    kinds = Counter[str]()
    for (question, _, _), times in answers.items():
        kinds[question.partition(" ")[0]] += times
    seen = len({number for _, number, _ in answers})
    print(f"{answers.total():,} answers {dict(kinds)} from {seen} generations, activated {dict(writer.activated)}")
    assert mixed == [], f"{len(mixed)} answers are not one whole generation"
    assert answers.total() > ANSWERS
    assert seen > ACTIVATIONS / 2
    assert min(kinds.values()) > ANSWERS / 50
    assert min(writer.activated.values()) >= ACTIVATIONS / 30
