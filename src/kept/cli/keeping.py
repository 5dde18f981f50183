"""Keeping: ``add``, ``set`` and ``refresh``."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import typer

from kept.cli import options
from kept.cli.command import Call
from kept.cli.crawl import crawl, stay
from kept.cli.setting import takes_settings
from kept.cli.show import looks as show
from kept.errors import WrongCall
from kept.model.job import CrawlMode
from kept.model.source import SourceKind
from kept.runtime.looking import look_at_root, prepare, survey
from kept.runtime.origins import check
from kept.runtime.readers import started_readers
from kept.service import keeping, sources
from kept.service.given import Given

if TYPE_CHECKING:
    from kept.runtime.readers import ReaderPool


@takes_settings
async def add(
    context: typer.Context,
    root: options.Root,
    name: options.Called = None,
    version: options.Label = None,
    priority: options.Priority = 0,
    as_: options.As = None,
    dry_run: options.DryRun = False,
    no_wait: options.NoWait = False,
    *,
    given: Given,
) -> int | None:
    """Keep a web site, a git repository, a package, a folder or a file of documentation.

    \b
    kept add https://docs.example.com/guide/
    kept add https://wiki.example.com/ --header 'Authorization: Bearer env:TOKEN'
    kept add github:django/django@stable/5.2.x
    kept add pypi:httpx
    kept add @urls.txt --name clippings
    kept add ~/src/django/docs --name django --version 5.2
    kept add notes --include '*.md' --exclude 'drafts/*'

    The same root again is a refresh; settings that are given again are changed.
    """
    call: Call = context.obj
    wish = keeping.understand(root, given, as_=as_)
    if dry_run:
        check(wish.kind, wish.root, wish.settings, call.settings)
        with call.waiting(f"reading {wish.root} …"):
            found = await survey(call.settings, wish.kind, wish.root, wish.settings)
        if call.as_json:
            from kept.service import shapes

            call.answer(shapes.survey(wish.root, found))
        else:
            show.survey(call.out, wish.root, found)
        return None
    if no_wait:
        return await _add(call, wish, name, version, priority)
    async with started_readers() as readers:
        return await _add(call, wish, name, version, priority, readers)


async def _add(
    call: Call,
    wish: keeping.Wish,
    name: str | None,
    version: str | None,
    priority: int,
    readers: "ReaderPool | None" = None,
) -> int:
    check(wish.kind, wish.root, wish.settings, call.settings)
    if readers or wish.kind is SourceKind.FOLDER:
        with call.waiting(f"looking at {wish.root} …"):
            await look_at_root(call.settings, wish.kind, wish.root, wish.settings)
    loading = asyncio.to_thread(prepare, wish.kind) if readers else asyncio.sleep(0)
    async with _meanwhile(loading), call.open(create=True, readers=readers) as runtime:
        source, is_new = await keeping.keep(runtime, wish, name=name, version=version)
        if not is_new and name and name != source.name:
            call.err.line(f"{source.root} is kept already, as '{source.label}'.")
        waits = readers is not None
        code = await crawl(call, runtime, source, priority=priority, wait=waits)
        return await stay(call, runtime, source) if wish.given.watch and waits else code


@asynccontextmanager
async def _meanwhile(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """What is done while the database is opened."""
    doing = asyncio.create_task(work)
    try:
        yield
    finally:
        await doing


@takes_settings
async def set_(context: typer.Context, name: options.Name, *, given: Given) -> None:
    """Change settings of a source, from its next crawl on.

    An empty text clears a setting: --include '', --header 'Authorization:'.

    \b
    kept set django@5.2 --exclude 'releases/*'
    kept set wiki --header 'Authorization: Bearer env:TOKEN'
    """
    call: Call = context.obj
    if not given:
        raise WrongCall("Say what to change. See 'kept set --help'.")
    async with call.open() as runtime:
        await keeping.change(runtime, name, given)
        view = await sources.show_source(runtime.db, name, runtime.rhythm)
    if call.as_json:
        from kept.service import shapes

        call.answer(shapes.source(view))
    else:
        call.out.line(f"{view.source.label} is set; it holds from the next crawl on.")


async def refresh(
    context: typer.Context,
    name: options.Name,
    full: options.Full = False,
    failed_only: options.FailedOnly = False,
    quick: options.Quick = False,
    priority: options.Priority = 0,
    no_wait: options.NoWait = False,
) -> int:
    """Bring a source up to date: its next generation.

    \b
    kept refresh django@5.2
    kept refresh django@5.2 --failed-only
    kept refresh django@5.2 --quick
    """
    call: Call = context.obj
    asked = {"--full": full, "--failed-only": failed_only, "--quick": quick}
    if sum(asked.values()) > 1:
        said = " and ".join(name for name, given in asked.items() if given)
        raise WrongCall(f"{said} exclude each other: say which of them you want.")
    mode = CrawlMode.FULL if full else CrawlMode.FAILED if failed_only else CrawlMode.REFRESH
    mode = CrawlMode.QUICK if quick else mode
    async with call.open() as runtime:
        source = (await sources.show_source(runtime.db, name)).source
        return await crawl(call, runtime, source, mode=mode, priority=priority, wait=not no_wait)
