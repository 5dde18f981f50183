"""Prints previews of pages and sources."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kept.cli.screen import Screen
from kept.service.formatting import pluralize

if TYPE_CHECKING:
    from kept.runtime.preview import PagePreview, ScopePreview


_MAX_URLS = 20  # URLs of each kind


def print_page_preview(screen: Screen, preview: "PagePreview") -> None:
    """Print one page as it would be kept."""
    content = preview.page.content
    screen.line((content.title or preview.url, "bold"))
    status = f"{preview.status}, " if preview.status else ""
    screen.line((f"{preview.url} ({status}{preview.content_type})", "dim"))
    screen.line()
    screen.line(("Sections", "bold"))
    for section in content.sections:
        anchor = f"  #{section.anchor}" if section.anchor else ""
        screen.line(section.heading or "(before the first heading)", (anchor, "dim"), indent=2 * max(1, section.level))
    inside = [url for url, why in preview.links.items() if why is None]
    screen.line()
    screen.line((f"Links: {len(inside):,} in scope, {len(preview.links) - len(inside):,} not", "bold"))
    for url in inside[:_MAX_URLS]:
        screen.line(url, indent=2)
    _print_remainder(screen, len(inside))
    _print_by_reason(screen, {url: why for url, why in preview.links.items() if why is not None})
    screen.line()
    screen.line(("Markdown", "bold"))
    screen.text(content.markdown)


def print_scope_preview(screen: Screen, root: str, preview: "ScopePreview") -> None:
    """Print the pages that a crawl would begin with."""
    more = ", of those that were looked at" if preview.more else ""
    screen.line((f"{root}: {pluralize(len(preview.included), 'page')} to begin with{more}", "bold"))
    for url in preview.included[:_MAX_URLS]:
        screen.line(("+ ", "green"), url)
    _print_remainder(screen, len(preview.included))
    _print_by_reason(screen, preview.left_out)
    for url, why in preview.unread.items():
        screen.line(("? ", "yellow"), f"{url}: {why}")
    screen.line(("Nothing is kept yet. The pages it begins with lead to others.", "dim"))


def _print_by_reason(screen: Screen, left_out: Mapping[str, str]) -> None:
    """Print the URLs that are left out, by reason."""
    for reason in dict.fromkeys(left_out.values()):
        urls = [url for url, why in left_out.items() if why == reason]
        screen.line((f"{reason}: {pluralize(len(urls), 'URL')}", "yellow"), indent=2)
        for url in urls[:_MAX_URLS]:
            screen.line(("- ", "red"), url, indent=2)
        _print_remainder(screen, len(urls))


def _print_remainder(screen: Screen, number: int) -> None:
    if number > _MAX_URLS:
        screen.line((f"… and {number - _MAX_URLS:,} more (--json has them)", "dim"), indent=2)
