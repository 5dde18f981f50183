"""What ``kept add`` does with a wish: looks whether anybody is there, makes the source, has it crawled."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from kept.cli.command import Call
from kept.model.source import SourceKind
from kept.runtime.looking import look_at_root, prepare, survey
from kept.runtime.origins import check
from kept.service.wishing import Wish

if TYPE_CHECKING:
    from kept.runtime.readers import ReaderPool


async def look(call: Call, wish: Wish) -> None:
    """Shows what a crawl would begin with."""
    check(wish.kind, wish.root, wish.settings, call.settings)
    with call.waiting(f"reading {wish.root} …"):
        found = await survey(call.settings, wish.kind, wish.root, wish.settings)
    if call.as_json:
        from kept.service import shapes

        call.answer(shapes.survey(wish.root, found))
    else:
        from kept.cli.show import looks

        looks.survey(call.out, wish.root, found)


async def add(
    call: Call, wish: Wish, name: str | None, version: str | None, priority: int, readers: "ReaderPool | None"
) -> int:
    """Makes the source. With readers, it is crawled here; without, a worker may do that. The exit code."""
    check(wish.kind, wish.root, wish.settings, call.settings)
    if readers or wish.kind is SourceKind.FOLDER:
        with call.waiting(f"looking at {wish.root} …"):
            await look_at_root(call.settings, wish.kind, wish.root, wish.settings)
    loading = asyncio.to_thread(_load, wish.kind) if readers else asyncio.sleep(0)
    async with _meanwhile(loading), call.open(create=True, readers=readers) as runtime:
        from kept.cli.crawl import crawl, stay
        from kept.service import keeping

        source, is_new = await keeping.keep(runtime, wish, name=name, version=version)
        if not is_new and name and name != source.name:
            call.err.line(f"{source.root} is kept already, as '{source.label}'.")
        waits = readers is not None
        code = await crawl(call, runtime, source, priority=priority, wait=waits)
        return await stay(call, runtime, source) if wish.given.watch and waits else code


def _load(kind: SourceKind) -> None:
    """What a crawl needs, and nothing before it."""
    prepare(kind)
    import kept.cli.crawl
    import kept.service.keeping  # noqa: F401


@asynccontextmanager
async def _meanwhile(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """What is done while the database is opened."""
    doing = asyncio.create_task(work)
    try:
        yield
    finally:
        await doing
