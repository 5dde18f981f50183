"""Trying: ``try``."""

import typer

from kept.cli import options as opt
from kept.cli.command import CliContext
from kept.cli.source_options import with_source_options
from kept.cli.views import previews as show
from kept.errors import InvalidInput
from kept.model.source import SourceKind
from kept.runtime.preview import preview_page
from kept.service import serializers
from kept.service.source_options import SourceOptions
from kept.service.source_request import SourceRequest, resolve_request


@with_source_options
async def try_(context: typer.Context, page: opt.PageArgument, *, options: SourceOptions) -> None:
    """Show one page as it would be kept: its sections, text and links. Keeps nothing.

    \b
    kept try https://docs.example.com/guide/pool.html
    kept try https://docs.example.com/guide/ --select main --drop .toc
    kept try docs/pool.md --json
    """
    cli: CliContext = context.obj
    if page.startswith("@"):
        raise InvalidInput("'kept try' looks at one page. 'kept add @urls.txt --dry-run' looks at a list.")
    source = resolve_request(SourceRequest(root=page, options=options, as_="web"))
    if source.kind is SourceKind.PACKAGE:
        raise InvalidInput(f"'kept try' looks at one page. 'kept add {page} --dry-run' lists the files of a package.")
    with cli.spinner(f"reading {source.root} …"):
        found = await preview_page(cli.settings, source.kind, source.root, source.settings)
    if cli.as_json:
        cli.print_json(serializers.page_preview(found))
    else:
        show.print_page_preview(cli.out, found)
