"""How often things change, learned from what crawls saw. Pure: history in, intervals out.

Changes are taken to come at random at a steady rate (a Poisson process). A look after an interval says only whether
something changed, not how often, so the rate is the one that makes what was seen most likely. A prior of half a
change in half a week stands for what is not known yet: the first looks soon outweigh it.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from kept.model.document import Validators
from kept.model.frontier import ListedUrl
from kept.model.generation import Generation

DAY_SECONDS = 86_400.0
PRIOR_INTERVAL_SECONDS = 7 * DAY_SECONDS  # seconds between changes, of a source that nothing is known of
PRIOR_WEIGHT = 0.5  # of that belief, in changes
MAX_SAMPLES = 30  # looks: what a site was like before that says little of today
REFRESHES_PER_CHANGE = 3  # so that what is kept is seldom older than a third of the time between two changes
EVEN_ODDS = math.log(2)

_HOUR = timedelta(hours=1)
ROUND_INTERVALS = (
    *(_HOUR * hours for hours in (1, 2, 3, 6, 12)),
    *(24 * _HOUR * days for days in (1, 2, 3, 7, 14, 30)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshBounds:
    """How often a source may be refreshed, whatever was learned."""

    shortest: timedelta = _HOUR
    longest: timedelta = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class ChangeSample:
    """A crawl that could have seen a change."""

    interval: timedelta  # since the one before
    changed: bool


def change_samples(generations: Iterable[Generation]) -> list[ChangeSample]:
    """What the generations of a source, in their order, tell of it. Repairs and rollbacks tell nothing."""
    made = [one for one in generations if one.activated_at and one.mode != "failed"]
    found = []
    for before, one in pairwise(made):
        if before.mode is None or one.mode is None:
            continue  # a rollback, and the crawl that undid it
        tally = one.tally
        changed = tally.new + tally.changed + tally.moved + tally.gone > 0
        found.append(ChangeSample(one.created_at - before.created_at, changed))
    return found[-MAX_SAMPLES:]


def estimate_change_interval(samples: Sequence[ChangeSample]) -> timedelta:
    """How much time passes between two changes, most likely."""
    changed = [max(1.0, one.interval.total_seconds()) for one in samples if one.changed]
    quiet = sum(one.interval.total_seconds() for one in samples if not one.changed)

    def slope(rate: float) -> float:
        """Of the logarithm of the probability; it falls, and is zero where that is highest."""
        seen = sum(time / math.expm1(min(rate * time, 700.0)) for time in changed)
        return seen - quiet + PRIOR_WEIGHT / rate - PRIOR_WEIGHT * PRIOR_INTERVAL_SECONDS

    slow, fast = 1 / (10_000 * DAY_SECONDS), 1.0
    for _ in range(60):
        middle = math.sqrt(slow * fast)
        slow, fast = (middle, fast) if slope(middle) > 0 else (slow, middle)
    return timedelta(seconds=1 / slow)


def suggest_refresh_interval(samples: Sequence[ChangeSample], bounds: RefreshBounds) -> timedelta:
    """How often to refresh: a few times between two changes, in round numbers, within bounds."""
    wanted = estimate_change_interval(samples) / REFRESHES_PER_CHANGE
    nearest = min(ROUND_INTERVALS, key=lambda one: abs(math.log(one / wanted)))
    return max(bounds.shortest, min(bounds.longest, nearest))


# Pages, for a quick crawl --------------------------------------------------------------------------------------------


def is_due(*, changes: int, known_since: datetime, visited_at: datetime, now: datetime) -> bool:
    """Whether a page that changed so often is as likely as not to have changed again since it was last visited."""
    known = max(1.0, (visited_at - known_since).total_seconds())
    rate = (changes + PRIOR_WEIGHT) / (known + PRIOR_WEIGHT * PRIOR_INTERVAL_SECONDS)
    return rate * (now - visited_at).total_seconds() >= EVEN_ODDS


def is_modified_since(listed: ListedUrl, visited_at: datetime) -> bool:
    """Whether the origin says that a page was modified after it was last visited. A day says nothing of the hour."""
    modified = listed.modified_at
    if modified is None:
        return False
    is_day = (modified.hour, modified.minute, modified.second) == (0, 0, 0)
    return modified + (timedelta(days=1) if is_day else timedelta()) > visited_at


# Hints ---------------------------------------------------------------------------------------------------------------

MIN_CLAIMS = 10
MAX_FALSE_SHARE = 0.9


def is_sitemap_wrong(*, claims: int, confirmed: int) -> bool | None:
    """Whether a sitemap is wrong, by how many pages it called modified and how many of them were; None: who knows.

    Many a site dates every page anew whenever it is built. One that is right about half of them is worth a look.
    """
    if claims >= MIN_CLAIMS and confirmed < claims * (1 - MAX_FALSE_SHARE):
        return True
    return False if claims and confirmed >= claims / 2 else None


# Validators ----------------------------------------------------------------------------------------------------------


def is_validator_wrong(before: Validators, after: Validators) -> bool:
    """Whether a page that changed has the validators it had: its server would have denied the change."""
    return bool(before) and before == after
