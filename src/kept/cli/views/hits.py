"""Prints search hits."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kept.cli.screen import Screen, StyledText
from kept.service.formatting import format_ago

if TYPE_CHECKING:
    from kept.service.search import Hit


def print_hits(screen: Screen, found: Sequence["Hit"], query: str, did_you_mean: str | None = None) -> None:
    if not found:
        screen.line(f"Nothing was found for: {query}" + (f". Did you mean: {did_you_mean}?" if did_you_mean else ""))
    for number, hit in enumerate(found):
        if number:
            screen.line()
        title = () if hit.headings and hit.headings[0] == hit.title else (hit.title,)
        label = f"{hit.source}@{hit.version}" if hit.version else hit.source
        partial = ", partial" if hit.partial else ""
        about = f"  {label}, {format_ago(hit.verified_at)}{partial}"
        screen.line((" › ".join((*title, *hit.headings)), "bold"), (about, "dim"))
        screen.line((hit.url, "cyan"), indent=2)
        screen.line(*_highlight_matches(hit.snippet), indent=2, wrap=True)
        for other in hit.also:
            screen.line(
                (f"also in {other['source']}{'@' if other['version'] else ''}{other['version']}: ", "dim"),
                other["url"],
                indent=2,
            )
        if hit.context:
            screen.line()
            screen.line(hit.context, indent=4)


def _highlight_matches(snippet: str) -> Iterator[StyledText]:
    """Split a snippet at its asterisks: matches are bold on a terminal, plain in a pipe."""
    for number, part in enumerate(snippet.replace("****", "**").split("**")):
        yield (part, "bold") if number % 2 else part
