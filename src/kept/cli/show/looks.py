"""How what would be kept reads for people."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kept.cli.screen import Screen
from kept.cli.words import plural

if TYPE_CHECKING:
    from kept.runtime.looking import Look, Survey


_SHOWN = 20  # URLs of each kind


def look(screen: Screen, look: "Look") -> None:
    """One page as it would be kept."""
    content = look.reading.content
    screen.line((content.title or look.url, "bold"))
    status = f"{look.status}, " if look.status else ""
    screen.line((f"{look.url} ({status}{look.content_type})", "dim"))
    screen.line()
    screen.line(("Sections", "bold"))
    for section in content.sections:
        anchor = f"  #{section.anchor}" if section.anchor else ""
        screen.line(section.heading or "(before the first heading)", (anchor, "dim"), indent=2 * max(1, section.level))
    inside = [url for url, why in look.links.items() if why is None]
    screen.line()
    screen.line((f"Links: {len(inside):,} in scope, {len(look.links) - len(inside):,} not", "bold"))
    for url in inside[:_SHOWN]:
        screen.line(url, indent=2)
    _rest(screen, len(inside))
    _grouped(screen, {url: why for url, why in look.links.items() if why is not None})
    screen.line()
    screen.line(("Markdown", "bold"))
    screen.text(content.markdown)


def survey(screen: Screen, root: str, survey: "Survey") -> None:
    """What a source would begin with."""
    more = ", of those that were looked at" if survey.more else ""
    screen.line((f"{root}: {plural(len(survey.included), 'page')} to begin with{more}", "bold"))
    for url in survey.included[:_SHOWN]:
        screen.line(("+ ", "green"), url)
    _rest(screen, len(survey.included))
    _grouped(screen, survey.left_out)
    for url, why in survey.unread.items():
        screen.line(("? ", "yellow"), f"{url}: {why}")
    screen.line(("Nothing is kept yet. The pages it begins with lead to others.", "dim"))


def _grouped(screen: Screen, left_out: Mapping[str, str]) -> None:
    """URLs that are not taken, by reason."""
    for reason in dict.fromkeys(left_out.values()):
        urls = [url for url, why in left_out.items() if why == reason]
        screen.line((f"{reason}: {plural(len(urls), 'URL')}", "yellow"), indent=2)
        for url in urls[:_SHOWN]:
            screen.line(("- ", "red"), url, indent=2)
        _rest(screen, len(urls))


def _rest(screen: Screen, number: int) -> None:
    if number > _SHOWN:
        screen.line((f"… and {number - _SHOWN:,} more (--json has them)", "dim"), indent=2)
