"""``read`` and ``history``."""

import typer

from kept.cli import options
from kept.cli.command import CliContext
from kept.cli.views import documents as show
from kept.service import documents, serializers


async def read(
    context: typer.Context,
    what: options.DocumentArgument,
    generation: options.AtGenerationOption = None,
    section: options.SectionOption = None,
) -> None:
    """Print a document, or a section of it, as markdown.

    \b
    kept read docs/pool.md
    kept read docs/pool.md#timeouts
    kept read file:///srv/docs/pool.md --generation 3
    """
    cli: CliContext = context.obj
    async with cli.open_runtime() as runtime:
        page = await documents.read_document(
            runtime.db, what, section=section, generation=generation, rules=runtime.services.lifecycle_rules
        )
    if cli.as_json:
        cli.print_json(serializers.document(page))
        return
    if cli.err.is_terminal:
        show.print_document_header(cli.err, page)
    cli.out.text(page.markdown)


async def history(context: typer.Context, what: options.DocumentArgument) -> None:
    """Tell what became of a document: its versions and moves.

    \b
    kept history docs/pool.md
    kept history https://docs.example.com/guide/pool.html
    """
    cli: CliContext = context.obj
    async with cli.open_runtime() as runtime:
        story = await documents.read_history(runtime.db, what)
    if cli.as_json:
        cli.print_json(serializers.history(story))
    else:
        show.print_history(cli.out, story)
