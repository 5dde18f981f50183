"""``add``: starts its reader processes first of all, and imports the crawler while it probes the site."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import typer

from kept.cli import options as opt
from kept.cli.command import CliContext
from kept.cli.source_options import with_source_options
from kept.service.source_options import SourceOptions

if TYPE_CHECKING:  # imported when they are needed
    from kept.model.source import SourceKind
    from kept.runtime.readers import ReaderPool
    from kept.service.source_request import SourceRequest


@with_source_options
async def add(
    context: typer.Context,
    root: opt.RootArgument,
    name: opt.SourceNameOption = None,
    version: opt.VersionLabelOption = None,
    priority: opt.PriorityOption = 0,
    as_: opt.RootKindOption = None,
    dry_run: opt.DryRunOption = False,
    no_wait: opt.NoWaitOption = False,
    *,
    options: SourceOptions,
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
    from kept.runtime.readers import started_reader_pool

    cli: CliContext = context.obj
    async with nullcontext() if dry_run or no_wait else started_reader_pool() as readers:
        from kept.service.source_request import SourceRequest

        request = SourceRequest(root=root, options=options, name=name, version=version, priority=priority, as_=as_)
        if dry_run:
            await _show_scope(cli, request)
            return None
        return await _add_and_crawl(cli, request, readers)


async def _show_scope(cli: CliContext, request: "SourceRequest") -> None:
    """Show the pages that a crawl would begin with."""
    from kept.runtime.preview import preview_scope
    from kept.service.source_request import resolve_request

    source = resolve_request(request)
    with cli.spinner(f"reading {source.root} …"):
        found = await preview_scope(cli.settings, source.kind, source.root, source.settings)
    if cli.as_json:
        from kept.service import serializers

        cli.print_json(serializers.scope_preview(source.root, found))
    else:
        from kept.cli.views import previews

        previews.print_scope_preview(cli.out, source.root, found)


async def _add_and_crawl(cli: CliContext, request: "SourceRequest", readers: "ReaderPool | None") -> int:
    """Add the source. With readers it is crawled here, otherwise by a worker. Returns the exit code."""
    from kept.service.source_request import resolve_request

    resolved = resolve_request(request)
    loading = asyncio.to_thread(_import_crawl_modules, resolved.kind) if readers else asyncio.sleep(0)
    async with _in_background(loading), cli.open_runtime(deferred=True, readers=readers) as runtime:
        from kept.service.access import OWNER
        from kept.service.sources import add_source

        with cli.spinner(f"looking at {resolved.root} …"):
            added = await add_source(runtime.services, OWNER, request)
        source = added.source
        if not added.is_new and request.name and request.name != source.name:
            cli.err.line(f"{source.root} is kept already, as '{source.label}'.")

        from kept.cli.run_crawl import configure_logging, follow_crawl, watch_folder

        configure_logging(verbose=cli.verbose)
        if readers:
            _import_crawl_modules(source.kind)  # waits for those that are still loading
        code = await follow_crawl(cli, runtime, source, added.job, wait=readers is not None)
        return await watch_folder(cli, runtime, source) if request.options.watch and readers else code


def _import_crawl_modules(kind: "SourceKind") -> None:
    from kept.runtime.readers import preload_crawl_modules

    preload_crawl_modules(kind)
    import kept.cli.run_crawl  # noqa: F401


@asynccontextmanager
async def _in_background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Do the work while the database is opened and the site is probed."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        await task
