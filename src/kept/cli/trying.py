"""Trying: ``try``."""

import typer

from kept.cli import options
from kept.cli.command import Call
from kept.cli.setting import takes_settings
from kept.cli.show import looks as show
from kept.errors import WrongCall
from kept.model.source import SourceKind
from kept.runtime.looking import try_page
from kept.runtime.origins import check
from kept.service import shapes, wishing
from kept.service.given import Given


@takes_settings
async def try_(context: typer.Context, page: options.Page, *, given: Given) -> None:
    """Show one page as it would be kept: its sections, text and links. Keeps nothing.

    \b
    kept try https://docs.example.com/guide/pool.html
    kept try https://docs.example.com/guide/ --select main --drop .toc
    kept try docs/pool.md --json
    """
    call: Call = context.obj
    if page.startswith("@"):
        raise WrongCall("'kept try' looks at one page. 'kept add @urls.txt --dry-run' looks at a list.")
    wish = wishing.understand(page, given, as_="web")
    if wish.kind is SourceKind.PACKAGE:
        raise WrongCall(f"'kept try' looks at one page. 'kept add {page} --dry-run' lists the files of a package.")
    check(wish.kind, wish.root, wish.settings, call.settings)
    with call.waiting(f"reading {wish.root} …"):
        found = await try_page(call.settings, wish.kind, wish.root, wish.settings)
    if call.as_json:
        call.answer(shapes.look(found))
    else:
        show.look(call.out, found)
