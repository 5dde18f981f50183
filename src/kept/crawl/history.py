"""How often things change, learned from what crawls saw. Pure: history in, intervals out.

Changes are taken to come at random at a steady rate (a Poisson process). A look after an interval says only whether
something changed, not how often, so the rate is the one that makes what was seen most likely. A prior of half a
change in half a week stands for what is not known yet: the first looks soon outweigh it.
"""

import math
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import pairwise

from kept.model.document import Validators
from kept.model.frontier import Listed
from kept.model.generation import Generation
from kept.model.nouns import dataclass

DAY = 86_400.0
USUAL = 7 * DAY  # seconds between changes, of a source that nothing is known of
WEIGHT = 0.5  # of that belief, in changes
REMEMBERED = 30  # looks: what a site was like before that says little of today
LOOKS_PER_CHANGE = 3  # so that what is kept is seldom older than a third of the time between two changes
AS_LIKELY_AS_NOT = math.log(2)

_HOUR = timedelta(hours=1)
ROUND = (*(_HOUR * hours for hours in (1, 2, 3, 6, 12)), *(24 * _HOUR * days for days in (1, 2, 3, 7, 14, 30)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How often a source may be refreshed, whatever was learned."""

    shortest: timedelta = _HOUR
    longest: timedelta = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Look:
    """A crawl that could have seen a change."""

    after: timedelta  # since the one before
    changed: bool


def looks(generations: Iterable[Generation]) -> list[Look]:
    """What the generations of a source, in their order, tell of it. Repairs and rollbacks tell nothing."""
    made = [one for one in generations if one.activated_at and one.mode != "failed"]
    found = []
    for before, one in pairwise(made):
        if before.mode is None or one.mode is None:
            continue  # a rollback, and the crawl that undid it
        tally = one.tally
        changed = tally.new + tally.changed + tally.moved + tally.gone > 0
        found.append(Look(one.created_at - before.created_at, changed))
    return found[-REMEMBERED:]


def change_interval(looks: Sequence[Look]) -> timedelta:
    """How much time passes between two changes, most likely."""
    changed = [max(1.0, one.after.total_seconds()) for one in looks if one.changed]
    quiet = sum(one.after.total_seconds() for one in looks if not one.changed)

    def slope(rate: float) -> float:
        """Of the logarithm of the probability; it falls, and is zero where that is highest."""
        seen = sum(time / math.expm1(min(rate * time, 700.0)) for time in changed)
        return seen - quiet + WEIGHT / rate - WEIGHT * USUAL

    slow, fast = 1 / (10_000 * DAY), 1.0
    for _ in range(60):
        middle = math.sqrt(slow * fast)
        slow, fast = (middle, fast) if slope(middle) > 0 else (slow, middle)
    return timedelta(seconds=1 / slow)


def refresh_interval(looks: Sequence[Look], bounds: Bounds) -> timedelta:
    """How often to refresh: a few times between two changes, in round numbers, within bounds."""
    wanted = change_interval(looks) / LOOKS_PER_CHANGE
    nearest = min(ROUND, key=lambda one: abs(math.log(one / wanted)))
    return max(bounds.shortest, min(bounds.longest, nearest))


# Pages, for a quick crawl --------------------------------------------------------------------------------------------


def is_due(*, changes: int, known_since: datetime, visited_at: datetime, now: datetime) -> bool:
    """Whether a page that changed so often is as likely as not to have changed again since it was last visited."""
    known = max(1.0, (visited_at - known_since).total_seconds())
    rate = (changes + WEIGHT) / (known + WEIGHT * USUAL)
    return rate * (now - visited_at).total_seconds() >= AS_LIKELY_AS_NOT


def is_newer(listed: Listed, visited_at: datetime) -> bool:
    """Whether the origin says that a page was modified after it was last visited. A day says nothing of the hour."""
    modified = listed.modified_at
    if modified is None:
        return False
    is_day = (modified.hour, modified.minute, modified.second) == (0, 0, 0)
    return modified + (timedelta(days=1) if is_day else timedelta()) > visited_at


# Hints ---------------------------------------------------------------------------------------------------------------

FEW_CLAIMS = 10
MOSTLY_FALSE = 0.9


def judge_claims(*, made: int, true: int) -> bool | None:
    """Whether a sitemap is wrong, by how many pages it called modified and how many of them were; None: who knows.

    Many a site dates every page anew whenever it is built. One that is right about half of them is worth a look.
    """
    if made >= FEW_CLAIMS and true < made * (1 - MOSTLY_FALSE):
        return True
    return False if made and true >= made / 2 else None


# Validators ----------------------------------------------------------------------------------------------------------


def is_wrong(before: Validators, after: Validators) -> bool:
    """Whether a page that changed has the validators it had: its server would have denied the change."""
    return bool(before) and before == after
