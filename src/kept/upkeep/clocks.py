"""The small clocks that keep house beside workers: each is one pass that is safe to run twice, anywhere, at any time.

The loop around them is here, and only here. Another clock is another line in ``runtime``.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from kept.log import Log
from kept.model.nouns import dataclass

log = Log(__name__)


@dataclass(frozen=True, slots=True)
class Clock:
    """A pass, and how often it is due. It gives a small report, which is a dataclass of numbers."""

    name: str
    seconds: float
    tick: Callable[[], Awaitable[Any]]


async def run(clocks: Sequence[Clock], stop: asyncio.Event) -> None:
    """Lets them all tick until ``stop`` is set. What goes wrong is logged, and tried again when it is due."""
    await asyncio.gather(*(_run(clock, stop) for clock in clocks))


async def _run(clock: Clock, stop: asyncio.Event) -> None:
    wait = clock.seconds * random.random()  # many processes that start at once should not tick at once
    while True:
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), wait)
            return
        try:
            report = asdict(await clock.tick())
            if any(report.values()):
                log.info(clock.name, **report)
        except Exception as error:  # whatever it is: the next pass may do better, and the other clocks go on
            log.warning(f"{clock.name} failed", reason=str(error) or type(error).__name__)
        wait = clock.seconds * random.uniform(0.9, 1.1)
