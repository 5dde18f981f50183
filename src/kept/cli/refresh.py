"""``refresh``. Its module has no options of a source, which take longer to load than a small refresh."""

import typer

from kept.cli import options as opt
from kept.cli.command import CliContext
from kept.errors import InvalidInput


async def refresh(
    context: typer.Context,
    name: opt.SourceArgument,
    full: opt.FullOption = False,
    failed_only: opt.FailedOnlyOption = False,
    quick: opt.QuickOption = False,
    priority: opt.PriorityOption = 0,
    no_wait: opt.NoWaitOption = False,
) -> int:
    """Bring a source up to date: its next generation.

    \b
    kept refresh django@5.2
    kept refresh django@5.2 --failed-only
    kept refresh django@5.2 --quick
    """
    from kept.cli.run_crawl import configure_logging, follow_crawl
    from kept.model.job import CrawlMode
    from kept.runtime.readers import preload_crawl_modules
    from kept.service.access import OWNER
    from kept.service.lookup import load_source
    from kept.service.sources import refresh_source

    cli: CliContext = context.obj
    modes = {"--full": full, "--failed-only": failed_only, "--quick": quick}
    if sum(modes.values()) > 1:
        chosen = " and ".join(name for name, is_given in modes.items() if is_given)
        raise InvalidInput(f"{chosen} exclude each other: say which of them you want.")
    mode = CrawlMode.FULL if full else CrawlMode.FAILED if failed_only else CrawlMode.REFRESH
    mode = CrawlMode.QUICK if quick else mode
    async with cli.open_runtime() as runtime:
        source = await load_source(runtime.db, name)
        configure_logging(verbose=cli.verbose)
        if not no_wait:
            preload_crawl_modules(source.kind)
        job = await refresh_source(runtime.services, OWNER, source.label, mode=mode, priority=priority)
        return await follow_crawl(cli, runtime, source, job, wait=not no_wait)
