"""The command line: each command parses, calls one of the product's verbs and shows the answer.

Whatever is heavy is imported inside the commands: a search has to answer at once.
"""

import gc
import sys
from typing import Annotated

import typer

from kept.cli.command import Call, Command, Group, report
from kept.cli.screen import make_streams_lenient

Name = Annotated[str, typer.Argument(metavar="NAME", help="A source: its name, or name@version.", show_default=False)]
Number = Annotated[int, typer.Argument(metavar="N", min=1, help="The number of a generation.", show_default=False)]
What = Annotated[
    str, typer.Argument(metavar="URL|PATH|ID", help="A document, as search results name it.", show_default=False)
]
AsOf = Annotated[
    int | None, typer.Option("--generation", metavar="N", min=1, help="As of this generation.")
]
Priority = Annotated[
    int, typer.Option(metavar="N", min=-1000, max=1000, help="Which of the waiting crawls goes first: the highest.")
]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Only ask for the crawl; a worker, or 'kept refresh', runs it.")]

app = typer.Typer(
    name="kept",
    cls=Group,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def main() -> None:
    """Runs one command, to its exit code."""
    gc.set_threshold(50_000)  # starting makes much and leaves no garbage: looking for it costs a tenth of a search
    make_streams_lenient()
    try:
        code = app(prog_name="kept", standalone_mode=False)
    except Exception as error:
        code = report(error, verbose="--verbose" in sys.argv)
    sys.exit(code)


@app.callback(invoke_without_command=True)
def kept(
    context: typer.Context,
    database: Annotated[
        str | None,
        typer.Option(metavar="URL", help="sqlite:///file.db or postgresql://user@host/name.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Answer with one JSON value.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Tell everything, on standard error.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Say which Kept this is.")] = False,
) -> None:
    """Keeps documentation: a complete, current, searchable copy of it, and every version it had.

    \b
    kept add docs                        keep a folder
    kept search "connection pool"        find the sections about it
    kept read docs/pool.md               read a page as it is kept
    kept refresh docs                    bring it up to date
    kept history docs/pool.md            what became of a page

    Data is in one SQLite file unless --database or KEPT_DATABASE says otherwise; 'kept config' shows where.
    """
    call = context.obj = Call()
    call.database, call.as_json, call.verbose = database, as_json, verbose
    if version:
        from kept import __version__

        typer.echo(f"kept {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


# Keeping -------------------------------------------------------------------------------------------------------


@app.command(cls=Command)
async def add(
    context: typer.Context,
    root: Annotated[str, typer.Argument(metavar="ROOT", help="A folder or a file.", show_default=False)],
    name: Annotated[str | None, typer.Option(metavar="NAME", help="What to call it.")] = None,
    version: Annotated[str, typer.Option(metavar="LABEL", help="Which version of it this is, as in name@LABEL.")] = "",
    max_pages: Annotated[int | None, typer.Option(metavar="N", min=1, help="Keep no more than these.")] = None,
    max_depth: Annotated[int | None, typer.Option(metavar="N", min=0, help="Go no deeper.")] = None,
    max_time: Annotated[str | None, typer.Option(metavar="TIME", help="After 90s, 15m, 2h: nothing new.")] = None,
    include: Annotated[list[str] | None, typer.Option(metavar="GLOB", help="Only these paths. May be repeated.")] = None,
    exclude: Annotated[list[str] | None, typer.Option(metavar="GLOB", help="Not these paths. May be repeated.")] = None,
    priority: Priority = 0,
    no_wait: NoWait = False,
) -> int:
    """Keep a folder or a file of documentation.

    \b
    kept add docs
    kept add ~/src/django/docs --name django --version 5.2
    kept add notes --include '*.md' --exclude 'drafts/*'

    The same root again is a refresh; settings that are given again are changed.
    """
    from kept.cli import adding

    given = adding.Given(max_pages, max_depth, max_time, include, exclude)
    return await adding.add(context.obj, root, name, version, given, priority=priority, wait=not no_wait)


@app.command(cls=Command)
async def refresh(
    context: typer.Context,
    name: Name,
    full: Annotated[bool, typer.Option("--full", help="Read everything again, changed or not.")] = False,
    failed_only: Annotated[bool, typer.Option("--failed-only", help="Only what could not be read last time.")] = False,
    priority: Priority = 0,
    no_wait: NoWait = False,
) -> int:
    """Bring a source up to date: its next generation.

    \b
    kept refresh django@5.2
    kept refresh django@5.2 --failed-only
    """
    from kept import service
    from kept.cli.crawl import crawl
    from kept.errors import WrongCall
    from kept.model.job import CrawlMode

    if full and failed_only:
        raise WrongCall("--full and --failed-only exclude each other: say which of them you want.")
    call: Call = context.obj
    mode = CrawlMode.FULL if full else CrawlMode.FAILED if failed_only else CrawlMode.REFRESH
    async with call.open() as runtime:
        source = (await service.show_source(runtime.db, name)).source
        return await crawl(call, runtime, source, mode=mode, priority=priority, wait=not no_wait)


@app.command("list", cls=Command)
async def list_sources(context: typer.Context) -> None:
    """List what is kept, and how fresh it is."""
    from kept import service
    from kept.cli import shapes, show

    call: Call = context.obj
    async with call.open() as runtime:
        views = await service.list_sources(runtime.db)
    if call.as_json:
        call.answer({"sources": [shapes.source(view) for view in views]})
    else:
        show.sources(call.out, views)


@app.command("show", cls=Command)
async def show_source(context: typer.Context, name: Name) -> None:
    """Show one source: its state, its settings, its last crawl."""
    from kept import service
    from kept.cli import shapes, show

    call: Call = context.obj
    async with call.open() as runtime:
        view = await service.show_source(runtime.db, name)
    if call.as_json:
        call.answer(shapes.source(view))
    else:
        show.source(call.out, view)


@app.command(cls=Command)
async def remove(context: typer.Context, name: Name) -> None:
    """Remove a source. The files it was made from stay."""
    from kept import service

    call: Call = context.obj
    async with call.open() as runtime:
        source = await service.remove_source(runtime.db, name)
    if call.as_json:
        call.answer({"source": source.label, "removed": True})
    else:
        call.out.line(f"{source.label} is removed.")


# Finding -------------------------------------------------------------------------------------------------------


@app.command(cls=Command)
async def search(
    context: typer.Context,
    query: Annotated[list[str], typer.Argument(metavar="QUERY", help="Words to find.", show_default=False)],
    source: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Only here. May be repeated.")] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="How many hits at most.")] = 10,
    generation: AsOf = None,
) -> None:
    """Find sections, best first.

    \b
    kept search connection pool
    kept search '"connection pool" -mysql' --source django@5.2
    kept search timeout --source django@5.2 --generation 3
    """
    from kept import service

    call: Call = context.obj
    text = " ".join(query)
    async with call.open() as runtime:
        hits = await service.search(runtime.db, text, labels=source or (), limit=limit, generation=generation)
    if call.as_json:
        call.answer({"query": text, "hits": [hit.as_json() for hit in hits]})
    else:
        from kept.cli import show

        show.hits(call.out, hits, text)


@app.command(cls=Command)
async def read(
    context: typer.Context,
    what: What,
    generation: AsOf = None,
    section: Annotated[str | None, typer.Option(metavar="ANCHOR", help="Only this section.", show_default=False)] = None,
) -> None:
    """Print a document, or a section of it, as markdown.

    \b
    kept read docs/pool.md
    kept read docs/pool.md#timeouts
    kept read file:///srv/docs/pool.md --generation 3
    """
    from kept import service
    from kept.cli import shapes, show

    call: Call = context.obj
    async with call.open() as runtime:
        page = await service.read(runtime.db, what, section=section, generation=generation)
    if call.as_json:
        call.answer(shapes.page(page))
        return
    if call.err.is_terminal:
        show.page_origin(call.err, page)
    call.out.text(page.markdown)


@app.command(cls=Command)
async def history(context: typer.Context, what: What) -> None:
    """Tell what became of a document: its versions and moves."""
    from kept import service
    from kept.cli import shapes, show

    call: Call = context.obj
    async with call.open() as runtime:
        story = await service.history(runtime.db, what)
    if call.as_json:
        call.answer(shapes.history(story))
    else:
        show.history(call.out, story)


# Generations ---------------------------------------------------------------------------------------------------


@app.command(cls=Command)
async def generations(context: typer.Context, name: Name) -> None:
    """List a source's generations."""
    from kept import service
    from kept.cli import shapes, show

    call: Call = context.obj
    async with call.open() as runtime:
        source, found = await service.list_generations(runtime.db, name)
    if call.as_json:
        call.answer(shapes.generations(source, found))
    else:
        show.generations(call.out, source, found)


@app.command(cls=Command)
async def diff(context: typer.Context, name: Name, a: Number, b: Number) -> None:
    """Show what differs between two generations.

    \b
    kept diff django@5.2 3 4
    """
    from kept import service
    from kept.cli import shapes, show

    call: Call = context.obj
    async with call.open() as runtime:
        difference = await service.diff(runtime.db, name, a, b)
    if call.as_json:
        call.answer(shapes.diff(difference))
    else:
        show.diff(call.out, difference)


@app.command(cls=Command)
async def rollback(context: typer.Context, name: Name, number: Number) -> None:
    """Go back to what an earlier generation showed.

    It becomes a new generation, so this can be undone in the same way.

    \b
    kept rollback django@5.2 3
    """
    from kept import service

    call: Call = context.obj
    async with call.open() as runtime:
        made = await service.roll_back(runtime.db, name, number)
    if call.as_json:
        call.answer({"source": name, "generation": made, "rolled_back_to": number})
    else:
        call.out.line(f"{name}: generation {made} is live: it shows what generation {number} showed.")


@app.command(cls=Command)
async def activate(context: typer.Context, name: Name) -> None:
    """Make a held generation live: its losses are right."""
    from kept import service

    call: Call = context.obj
    async with call.open() as runtime:
        number = await service.activate_held(runtime.db, name, runtime.rules)
    if call.as_json:
        call.answer({"source": name, "generation": number, "state": "active"})
    else:
        call.out.line(f"{name}: generation {number} is live.")


@app.command(cls=Command)
async def discard(context: typer.Context, name: Name) -> None:
    """Give a held generation up: what was live stays live."""
    from kept import service

    call: Call = context.obj
    async with call.open() as runtime:
        number = await service.discard_held(runtime.db, name)
    if call.as_json:
        call.answer({"source": name, "generation": number, "state": "abandoned"})
    else:
        call.out.line(f"{name}: generation {number} is discarded.")


# Settings ------------------------------------------------------------------------------------------------------


@app.command(cls=Command)
async def config(context: typer.Context) -> None:
    """Show every setting, and where its value came from."""
    from kept.cli.words import without_password

    call: Call = context.obj
    settings = call.settings
    effective = settings.effective() | {"database": without_password(settings.database)}
    if call.as_json:
        call.answer({name: {"value": value, "from": settings.came_from[name]} for name, value in effective.items()})
    else:
        call.out.table([[(name, "bold"), str(value), (settings.came_from[name], "dim")] for name, value in effective.items()])
