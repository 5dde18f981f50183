"""What a page asks of robots, in its head (`<meta name=robots>`) or in a header (X-Robots-Tag): one rule for both."""

from collections.abc import Iterable
from typing import NamedTuple


class RobotsDirectives(NamedTuple):
    """Not to be kept; not to be followed. Whoever asks in two places has asked for both."""

    noindex: bool = False
    nofollow: bool = False

    def __or__(self, other: "RobotsDirectives") -> "RobotsDirectives":
        return RobotsDirectives(noindex=self.noindex or other.noindex, nofollow=self.nofollow or other.nofollow)


def parse_robots_directives(values: Iterable[str]) -> RobotsDirectives:
    """What lists of rules ask, such as 'noindex, nofollow' or 'none'. Rules about other things ask nothing of us."""
    rules = {rule.strip().lower() for value in values for rule in value.split(",")}
    return RobotsDirectives(noindex=bool(rules & {"noindex", "none"}), nofollow=bool(rules & {"nofollow", "none"}))
