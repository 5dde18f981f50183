"""An outage of the origin: no request is answered any more. It is reported early; after a while the crawl gives up.

A crawl that went on would wait for every page in turn, several times, and end with all of them failed.
"""

import time
from collections.abc import Callable, Iterable

from kept.crawl.decide import NotKept, RetryLater, VisitResult
from kept.errors import SourceUnavailable
from kept.model.frontier import Outcome
from kept.model.generation import Tally

MIN_FAILURES = 3  # visits without an answer before anything is said


class OutageWatch:
    """Watches the visits of one run. ``give_up_seconds``: how long it may last; 0: for ever."""

    def __init__(self, root: str, *, give_up_seconds: float, now: Callable[[], float] = time.monotonic) -> None:
        self._root = root
        self._give_up_seconds = give_up_seconds
        self._now = now
        self._since: float | None = None  # the first visit without an answer after the last answer
        self._failures = 0
        self._reason = ""

    def record(self, results: Iterable[VisitResult]) -> None:
        for result in results:
            decision = result.decision
            if _is_unanswered(result):
                assert isinstance(decision, RetryLater | NotKept), "only these have a reason"
                self._since = self._now() if self._since is None else self._since
                self._failures += 1
                self._reason = decision.reason
            elif not (isinstance(decision, NotKept) and decision.status is None):  # that needed no request
                self._since, self._failures = None, 0

    @property
    def warning(self) -> str | None:
        """Return the warning to show while no request is answered; None while they are."""
        if self._failures < MIN_FAILURES:
            return None
        rule = f"; giving up after {self._give_up_seconds:g} s" if self._give_up_seconds else ""
        return f"{self._root} does not answer: {self._reason}{rule}"

    def check(self) -> None:
        """Raise SourceUnavailable when it has lasted too long."""
        if self._since is None or self._failures < MIN_FAILURES or not self._give_up_seconds:
            return
        if self._now() - self._since >= self._give_up_seconds:
            raise SourceUnavailable(
                f"{self._root} has not answered for {self._give_up_seconds:g} s: {self._reason}. "
                "Check the address, and that the site is up; crawl.give_up_seconds sets how long to wait."
            )

    def check_end(self, tally: Tally) -> None:
        """Raise SourceUnavailable if a crawl got no answer at all."""
        if self._failures and tally.failed and not sum(tally.as_json().values()) - tally.failed - tally.skipped:
            raise SourceUnavailable(
                f"{self._root} cannot be reached: {self._reason}. Check the address, and that the site is up."
            )


def _is_unanswered(result: VisitResult) -> bool:
    match result.decision:
        case RetryLater(status=None) | NotKept(outcome=Outcome.FAILED, status=None):
            return True
        case _:
            return False
