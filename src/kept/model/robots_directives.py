"""Robots directives of a page, from `<meta name=robots>` or the X-Robots-Tag header."""

from collections.abc import Iterable
from typing import NamedTuple


class RobotsDirectives(NamedTuple):
    """Whether a page must not be stored, and whether its links must not be followed. ``|`` combines two."""

    noindex: bool = False
    nofollow: bool = False

    def __or__(self, other: "RobotsDirectives") -> "RobotsDirectives":
        return RobotsDirectives(noindex=self.noindex or other.noindex, nofollow=self.nofollow or other.nofollow)


def parse_robots_directives(values: Iterable[str]) -> RobotsDirectives:
    """Return the directives in lists such as 'noindex, nofollow' or 'none'. Others are ignored."""
    rules = {rule.strip().lower() for value in values for rule in value.split(",")}
    return RobotsDirectives(noindex=bool(rules & {"noindex", "none"}), nofollow=bool(rules & {"nofollow", "none"}))
