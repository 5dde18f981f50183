"""Keeping: ``add``, ``set`` and ``refresh``.

What they do is loaded when they are called (``adding``, ``crawl``). ``add`` has its readers started before that: they
load what they need while the crawl does.
"""

from contextlib import nullcontext

import typer

from kept.cli import options
from kept.cli.command import Call
from kept.cli.setting import takes_settings
from kept.errors import WrongCall
from kept.service.given import Given


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
    from kept.runtime.readers import started_readers

    call: Call = context.obj
    async with nullcontext() if dry_run or no_wait else started_readers() as readers:
        from kept.cli import adding
        from kept.service.wishing import understand

        wish = understand(root, given, as_=as_)
        if dry_run:
            await adding.look(call, wish)
            return None
        return await adding.add(call, wish, name, version, priority, readers)


@takes_settings
async def set_(context: typer.Context, name: options.Name, *, given: Given) -> None:
    """Change settings of a source, from its next crawl on.

    An empty text clears a setting: --include '', --header 'Authorization:'.

    \b
    kept set django@5.2 --exclude 'releases/*'
    kept set wiki --header 'Authorization: Bearer env:TOKEN'
    """
    from kept.service import keeping, sources

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
    from kept.cli.crawl import crawl
    from kept.model.job import CrawlMode
    from kept.service import sources

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
