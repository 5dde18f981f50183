"""Change rates of sources and pages, estimated from past crawls. Pure: history in, intervals out.

Changes are modelled as a Poisson process with a constant rate. A crawl after an interval only shows whether something
changed, not how often, so the estimate is the rate that makes the observations most likely. The prior, half a change in
half a week, is soon outweighed by the first observations.
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
PRIOR_INTERVAL_SECONDS = 7 * DAY_SECONDS  # between changes, of a source without history
PRIOR_WEIGHT = 0.5  # in changes
MAX_SAMPLES = 30  # older crawls say little about today
MIN_OBSERVED_SECONDS = DAY_SECONDS  # an estimate from less says more about the prior than about the source
REFRESHES_PER_CHANGE = 3  # the copy is seldom older than a third of the time between two changes
EVEN_ODDS = math.log(2)

_HOUR = timedelta(hours=1)
ROUND_INTERVALS = (
    *(_HOUR * hours for hours in (1, 2, 3, 6, 12)),
    *(24 * _HOUR * days for days in (1, 2, 3, 7, 14, 30)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshBounds:
    """How often a source may be refreshed, whatever its change rate."""

    shortest: timedelta = _HOUR
    longest: timedelta = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class ChangeSample:
    """A crawl that could have seen a change."""

    interval: timedelta  # since the previous crawl
    changed: bool


def change_samples(generations: Iterable[Generation]) -> list[ChangeSample]:
    """Return the samples of a source, from its generations in order. Repairs and rollbacks are left out."""
    crawled = [one for one in generations if one.activated_at and one.mode != "failed"]
    samples = []
    for previous, current in pairwise(crawled):
        if previous.mode is None or current.mode is None:
            continue  # a rollback, and the crawl that undid it
        tally = current.tally
        changed = tally.new + tally.changed + tally.moved + tally.gone > 0
        samples.append(ChangeSample(current.created_at - previous.created_at, changed))
    return samples[-MAX_SAMPLES:]


def is_observed_enough(samples: Sequence[ChangeSample]) -> bool:
    """Whether the samples cover enough time to tell people how often the source changes."""
    return sum(one.interval.total_seconds() for one in samples) >= MIN_OBSERVED_SECONDS


def estimate_change_interval(samples: Sequence[ChangeSample]) -> timedelta:
    """Return the most likely time between two changes."""
    changed = [max(1.0, one.interval.total_seconds()) for one in samples if one.changed]
    unchanged_seconds = sum(one.interval.total_seconds() for one in samples if not one.changed)

    def slope(rate: float) -> float:
        """Return the derivative of the log likelihood: it decreases, and is zero at the maximum."""
        from_changes = sum(time / math.expm1(min(rate * time, 700.0)) for time in changed)
        return from_changes - unchanged_seconds + PRIOR_WEIGHT / rate - PRIOR_WEIGHT * PRIOR_INTERVAL_SECONDS

    low, high = 1 / (10_000 * DAY_SECONDS), 1.0
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if slope(middle) > 0 else (low, middle)
    return timedelta(seconds=1 / low)


def suggest_refresh_interval(samples: Sequence[ChangeSample], bounds: RefreshBounds) -> timedelta:
    """Return a round refresh interval within bounds, a few times shorter than the time between two changes."""
    wanted = estimate_change_interval(samples) / REFRESHES_PER_CHANGE
    nearest = min(ROUND_INTERVALS, key=lambda interval: abs(math.log(interval / wanted)))
    return max(bounds.shortest, min(bounds.longest, nearest))


# Pages, for a quick crawl --------------------------------------------------------------------------------------------


def is_due(*, changes: int, known_since: datetime, visited_at: datetime, now: datetime) -> bool:
    """Whether a page has changed since its last visit with a probability of at least one half."""
    known = max(1.0, (visited_at - known_since).total_seconds())
    rate = (changes + PRIOR_WEIGHT) / (known + PRIOR_WEIGHT * PRIOR_INTERVAL_SECONDS)
    return rate * (now - visited_at).total_seconds() >= EVEN_ODDS


def is_modified_since(listed: ListedUrl, visited_at: datetime) -> bool:
    """Whether a page was modified after its last visit, according to the list. A date without a time means all day."""
    modified = listed.modified_at
    if modified is None:
        return False
    is_day = (modified.hour, modified.minute, modified.second) == (0, 0, 0)
    return modified + (timedelta(days=1) if is_day else timedelta()) > visited_at


# Sitemaps ------------------------------------------------------------------------------------------------------------

MIN_CLAIMS = 10
MAX_FALSE_SHARE = 0.9


def is_sitemap_wrong(*, claims: int, confirmed: int) -> bool | None:
    """Whether a sitemap's dates are wrong, from the number of pages it called modified and of those that were.

    Many sites date every page anew with each build. Dates that are right for half of the pages are useful. Returns None
    when there is too little evidence.
    """
    if claims >= MIN_CLAIMS and confirmed < claims * (1 - MAX_FALSE_SHARE):
        return True
    return False if claims and confirmed >= claims / 2 else None


# Validators ----------------------------------------------------------------------------------------------------------


def is_validator_wrong(before: Validators, after: Validators) -> bool:
    """Whether a changed page kept its validators: a conditional request would have missed the change."""
    return bool(before) and before == after
