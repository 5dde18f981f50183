"""Embedding: every section gets the vector of what it says, beside the crawls and never in their way.

    1. contents that wait    a trigger puts each new one on the list; a new model puts all of them there
    2. their texts           by hash: a text that has a vector already, from wherever, needs no other
    3. taken                 each text by one process, for as long as embedding it may take
    4. embedded, kept        in batches, each in a transaction of its own
    5. settled               a content that has all of its vectors waits no longer; if none waits, a wanted model serves

Any process may do this, any number of them, and may be killed anywhere: what was kept stays, what was taken lapses.
"""

import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from kept.embed.embedder import Embedder, hash_of, text_of
from kept.errors import EmbedderUnavailable, TextRefused
from kept.log import Log
from kept.model.nouns import dataclass
from kept.store import vectors
from kept.store.database import Connection, Database, moment
from kept.store.vectors import Model, ModelState

if TYPE_CHECKING:
    from kept.store.database import Vector

log = Log(__name__)

AT_ONCE = 200  # contents
LEASE = timedelta(minutes=2)  # longer than any embedder tries
LATER = timedelta(seconds=10)  # for what another process is about to embed
MANY = 10_000  # vectors that are worth an index
SHORTEST_REST, LONGEST_REST = 2.0, 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    embedded: int = 0  # texts
    refused: int = 0
    contents: int = 0  # that have all their vectors now


class Filler:
    """One for each process: it says once which model is wanted, and rests while its embedder is away."""

    def __init__(self, embedder: Embedder, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._embedder = embedder
        self._clock = clock
        self._said = False
        self._size = 0  # of the vectors so far
        self._rest = 0.0
        self._rests_until = 0.0

    async def fill(self, db: Database, *, seconds: float = float("inf")) -> Filled:
        """One pass: everything that waits, for about so many seconds at most. Ends early where nobody answers."""
        began, filled = self._clock(), Filled()
        if began < self._rests_until:
            return filled
        model = await self._model(db)
        try:
            while model and self._clock() - began < seconds:
                async with db.snapshot() as snapshot:
                    contents = await vectors.waiting(snapshot, now=await moment(snapshot), limit=AT_ONCE)
                if not contents:
                    break
                done = await self._fill(db, model, contents)
                self._rest = 0.0
                filled = Filled(
                    embedded=filled.embedded + done.embedded,
                    refused=filled.refused + done.refused,
                    contents=filled.contents + done.contents,
                )
        except EmbedderUnavailable as error:
            self._rest = min(LONGEST_REST, max(SHORTEST_REST, 2 * self._rest, error.retry_after))
            self._rests_until = self._clock() + self._rest
            log.warning("embedder away", model=self._embedder.model, reason=str(error), rests=round(self._rest, 1))
        if model and (filled.contents or model.state is ModelState.WANTED):
            await _hand_over(db, model)
        return filled

    async def _model(self, db: Database) -> Model | None:
        """The model to make vectors by; None: by now another one is wanted, or this database cannot have any."""
        if not self._said:
            async with db.transaction() as tx:
                if not await vectors.prepare(tx):
                    log.warning("no vectors", reason="PostgreSQL has no pgvector here; search goes by words alone")
                    return None
                await want(tx, self._embedder.model)
            self._said = True
        async with db.snapshot() as snapshot:
            wanted = await vectors.target(snapshot)
        return wanted if wanted and wanted.name == self._embedder.model else None

    async def _fill(self, db: Database, model: Model, contents: Sequence[int]) -> Filled:
        async with db.snapshot() as snapshot:
            rows = await vectors.texts(snapshot, contents)
        said = {row["id"]: text_of(row["title"], row["headings"], row["text"]) for row in rows}
        hashes = {id: hash_of(text) for id, text in said.items()}
        texts = {hashes[id]: text for id, text in said.items()}
        async with db.transaction() as tx:
            await vectors.note_texts(tx, contents, hashes)
            missing = await vectors.without_vector(tx, model.id, list(texts))
        embedded = refused = 0
        for at in range(0, len(missing), self._embedder.batch):
            batch = {hash: texts[hash] for hash in missing[at : at + self._embedder.batch]}
            made, unwanted = await self._make(db, model, batch)
            embedded, refused = embedded + made, refused + unwanted
        async with db.transaction() as tx:
            settled = await vectors.settle(tx, model.id, contents, put_off=await moment(tx) + LATER)
        return Filled(embedded=embedded, refused=refused, contents=settled)

    async def _make(self, db: Database, model: Model, texts: dict[str, str]) -> tuple[int, int]:
        """How many of these texts were embedded here, and how many were refused. The others are somebody else's."""
        async with db.transaction() as tx:
            now = await moment(tx)
            mine = await vectors.take(tx, model.id, list(texts), now=now, until=now + LEASE)
        if not mine:
            return 0, 0
        refused: dict[str, str] = {}
        try:
            made = await self._embed({hash: texts[hash] for hash in mine}, refused)
            self._check_size(model, made)
        except BaseException:
            async with db.transaction() as tx:
                await vectors.release(tx, model.id, mine)
            raise
        async with db.transaction() as tx:
            await vectors.keep(tx, model.id, made)
            for hash, why in refused.items():
                await vectors.refuse(tx, model.id, hash, why)
        return len(made), len(refused)

    def _check_size(self, model: Model, made: "dict[str, Vector]") -> None:
        for vector in made.values():
            self._size = self._size or model.dimensions or len(vector)
            if len(vector) != self._size:
                raise EmbedderUnavailable(
                    f"The vectors of {model.name} had {self._size} numbers, and now the embedder gives {len(vector)}. "
                    "If it is another model by now, say so with another embed.model or embed.dimensions."
                )

    async def _embed(self, texts: dict[str, str], refused: dict[str, str]) -> "dict[str, Vector]":
        """Vectors by hash. Where some of several are refused, halves are tried until it is clear which."""
        hashes = list(texts)
        try:
            return dict(zip(hashes, await self._embedder.embed(list(texts.values())), strict=True))
        except TextRefused as error:
            if len(texts) == 1:
                log.warning("text refused", model=self._embedder.model, reason=str(error), text=texts[hashes[0]][:80])
                refused[hashes[0]] = str(error)
                return {}
        middle = len(hashes) // 2
        first = await self._embed({hash: texts[hash] for hash in hashes[:middle]}, refused)
        return first | await self._embed({hash: texts[hash] for hash in hashes[middle:]}, refused)


# Models --------------------------------------------------------------------------------------------------------


async def want(tx: Connection, name: str) -> None:
    """From now on vectors are made by this model. Another one that serves goes on serving until they are complete."""
    known = await vectors.models(tx)
    if (target := _target(known)) and target.name == name:
        return
    named = next((model for model in known if model.name == name), None)
    serves = next((model for model in known if model.state is ModelState.SERVING), None)
    for model in known:
        if model.state is ModelState.WANTED:
            await vectors.set_state(tx, model.id, ModelState.FORMER)
    if named is None:
        await vectors.insert_model(tx, name, ModelState.WANTED if serves else ModelState.SERVING)
    elif named is not serves:
        await vectors.set_state(tx, named.id, ModelState.WANTED)
    await vectors.requeue(tx)


def _target(known: Sequence[Model]) -> Model | None:
    """The model that vectors are made by."""
    by_state = {model.state: model for model in known}
    return by_state.get(ModelState.WANTED) or by_state.get(ModelState.SERVING)


async def _hand_over(db: Database, model: Model) -> None:
    """A wanted model serves as soon as nothing waits for it."""
    async with db.transaction() as tx:
        known = await vectors.models(tx)
        if await vectors.anything_waits(tx) or (target := _target(known)) is None or target.id != model.id:
            return
        await vectors.index(tx, model.id, enough=MANY)
        if target.state is ModelState.WANTED:
            for one in known:
                if one.state is ModelState.SERVING:
                    await vectors.set_state(tx, one.id, ModelState.FORMER)
            await vectors.set_state(tx, model.id, ModelState.SERVING)
            log.info("model serves", model=model.name)


# Garbage collection --------------------------------------------------------------------------------------------


async def collect_vectors(db: Database, *, at_once: int = 2_000) -> int:
    """How many vectors were taken away because no section needs them, or their model does not serve any more."""
    after, total = 0, 0
    while True:
        async with db.snapshot() as snapshot:
            unneeded = await vectors.unneeded(snapshot, after=after, limit=at_once)
        async with db.transaction() as tx:
            total += await vectors.delete(tx, unneeded) if unneeded else 0
            if not unneeded:
                await vectors.forget_former_models(tx)
                return total
        after = unneeded[-1]
