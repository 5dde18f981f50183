"""What ``kept add`` does with a wish: looks whether anybody is there, makes the source, has it crawled."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from kept.cli.command import CliContext
from kept.model.source import SourceKind
from kept.runtime.origin_factory import check_source
from kept.runtime.preview import preview_scope, probe_root
from kept.runtime.readers import preload_crawl_modules
from kept.service.source_request import SourceRequest

if TYPE_CHECKING:
    from kept.runtime.readers import ReaderPool


async def show_scope(cli: CliContext, request: SourceRequest) -> None:
    """Shows what a crawl would begin with."""
    check_source(request.kind, request.root, request.settings, cli.settings)
    with cli.spinner(f"reading {request.root} …"):
        found = await preview_scope(cli.settings, request.kind, request.root, request.settings)
    if cli.as_json:
        from kept.service import serializers

        cli.print_json(serializers.scope_preview(request.root, found))
    else:
        from kept.cli.views import previews

        previews.print_scope_preview(cli.out, request.root, found)


async def add_and_crawl(
    cli: CliContext,
    request: SourceRequest,
    name: str | None,
    version: str | None,
    priority: int,
    readers: "ReaderPool | None",
) -> int:
    """Makes the source. With readers, it is crawled here; without, a worker may do that. The exit code."""
    check_source(request.kind, request.root, request.settings, cli.settings)
    if readers or request.kind is SourceKind.FOLDER:
        with cli.spinner(f"looking at {request.root} …"):
            await probe_root(cli.settings, request.kind, request.root, request.settings)
    loading = asyncio.to_thread(_import_crawl_modules, request.kind) if readers else asyncio.sleep(0)
    async with _in_background(loading), cli.open_runtime(create=True, readers=readers) as runtime:
        from kept.cli.run_crawl import crawl_source, watch_folder
        from kept.service import keeping

        source, is_new = await keeping.upsert_source(runtime.services, request, name=name, version=version)
        if not is_new and name and name != source.name:
            cli.err.line(f"{source.root} is kept already, as '{source.label}'.")
        waits = readers is not None
        code = await crawl_source(cli, runtime, source, priority=priority, wait=waits)
        return await watch_folder(cli, runtime, source) if request.options.watch and waits else code


def _import_crawl_modules(kind: SourceKind) -> None:
    """What a crawl needs, and nothing before it."""
    preload_crawl_modules(kind)
    import kept.cli.run_crawl
    import kept.service.keeping  # noqa: F401


@asynccontextmanager
async def _in_background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """What is done while the database is opened."""
    doing = asyncio.create_task(work)
    try:
        yield
    finally:
        await doing
