"""Keeping: ``add``, ``set`` and ``refresh``.

What they do is loaded when they are called (``adding``, ``crawl``). ``add`` has its readers started before that: they
load what they need while the crawl does.
"""

from contextlib import nullcontext

import typer

from kept.cli import options
from kept.cli.command import CliContext
from kept.cli.source_options import with_source_options
from kept.errors import InvalidInput
from kept.service.source_options import SourceOptions


@with_source_options
async def add(
    context: typer.Context,
    root: options.RootArgument,
    name: options.SourceNameOption = None,
    version: options.VersionLabelOption = None,
    priority: options.PriorityOption = 0,
    as_: options.RootKindOption = None,
    dry_run: options.DryRunOption = False,
    no_wait: options.NoWaitOption = False,
    *,
    given: SourceOptions,
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
        from kept.cli import add_source
        from kept.service.source_request import parse_source_request

        wish = parse_source_request(root, given, as_=as_)
        if dry_run:
            await add_source.show_scope(cli, wish)
            return None
        return await add_source.add_and_crawl(cli, wish, name, version, priority, readers)


@with_source_options
async def set_(context: typer.Context, name: options.SourceArgument, *, given: SourceOptions) -> None:
    """Change settings of a source, from its next crawl on.

    An empty text clears a setting: --include '', --header 'Authorization:'.

    \b
    kept set django@5.2 --exclude 'releases/*'
    kept set wiki --header 'Authorization: Bearer env:TOKEN'
    """
    from kept.service import keeping, sources

    cli: CliContext = context.obj
    if not given:
        raise InvalidInput("Say what to change. See 'kept set --help'.")
    async with cli.open_runtime() as runtime:
        await keeping.check_and_update_settings(runtime.services, name, given)
        view = await sources.show_source(runtime.db, name, runtime.services.schedule_policy)
    if cli.as_json:
        from kept.service import serializers

        cli.print_json(serializers.source(view))
    else:
        cli.out.line(f"{view.source.label} is set; it holds from the next crawl on.")


async def refresh(
    context: typer.Context,
    name: options.SourceArgument,
    full: options.FullOption = False,
    failed_only: options.FailedOnlyOption = False,
    quick: options.QuickOption = False,
    priority: options.PriorityOption = 0,
    no_wait: options.NoWaitOption = False,
) -> int:
    """Bring a source up to date: its next generation.

    \b
    kept refresh django@5.2
    kept refresh django@5.2 --failed-only
    kept refresh django@5.2 --quick
    """
    from kept.cli.run_crawl import crawl_source
    from kept.model.job import CrawlMode
    from kept.service import sources

    cli: CliContext = context.obj
    asked = {"--full": full, "--failed-only": failed_only, "--quick": quick}
    if sum(asked.values()) > 1:
        said = " and ".join(name for name, given in asked.items() if given)
        raise InvalidInput(f"{said} exclude each other: say which of them you want.")
    mode = CrawlMode.FULL if full else CrawlMode.FAILED if failed_only else CrawlMode.REFRESH
    mode = CrawlMode.QUICK if quick else mode
    async with cli.open_runtime() as runtime:
        source = (await sources.show_source(runtime.db, name)).source
        return await crawl_source(cli, runtime, source, mode=mode, priority=priority, wait=not no_wait)
