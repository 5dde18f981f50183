"""Trying: ``try``."""

import typer

from kept.cli import options, show
from kept.cli.command import Call
from kept.cli.keeping import first_settings
from kept.cli.setting import Given, takes_settings
from kept.errors import WrongCall
from kept.model.root import parse_root
from kept.runtime import check, try_page
from kept.service import shapes


@takes_settings
async def try_(context: typer.Context, page: options.Page, *, given: Given) -> None:
    """Show one page as it would be kept: its sections, text and links. Keeps nothing.

    \b
    kept try https://docs.example.com/guide/pool.html
    kept try https://docs.example.com/guide/ --select main --drop .toc
    kept try docs/pool.md --json
    """
    call: Call = context.obj
    kind, url = parse_root(page)
    if page.startswith("@"):
        raise WrongCall("'kept try' looks at one page. 'kept add @urls.txt --dry-run' looks at a list.")
    asked = given.over(first_settings(page, kind, url))
    check(kind, url, asked)
    found = await try_page(call.settings, kind, url, asked)
    if call.as_json:
        call.answer(shapes.look(found))
    else:
        show.look(call.out, found)
