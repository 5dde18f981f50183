"""Prints search hits."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kept.cli.screen import Screen, StyledText
from kept.service.formatting import format_ago

if TYPE_CHECKING:
    from kept.service.search import SearchResult


def print_search(screen: Screen, result: "SearchResult") -> None:
    if result.did_you_mean:
        screen.line(f"Searched for: {result.did_you_mean} (a word in quotes is searched as it is)")
    for word in result.without:
        screen.line(f"Without: {word}")
    if not result.hits:
        screen.line(f"Nothing was found for: {result.query}")
    for number, hit in enumerate(result.hits):
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
