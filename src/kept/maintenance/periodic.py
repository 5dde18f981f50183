"""The small clocks that keep house beside workers: each is one pass that is safe to run twice, anywhere, at any time.

The loop around them is here, and only here. Another clock is another line in ``runtime``.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from kept.log import Log

log = Log(__name__)


@dataclass(frozen=True, slots=True)
class PeriodicTask:
    """A pass, and how often it is due. It gives a small report, which is a dataclass of numbers."""

    name: str
    interval_seconds: float
    run_once: Callable[[], Awaitable[Any]]


async def run_tasks(tasks: Sequence[PeriodicTask], stop: asyncio.Event) -> None:
    """Lets them all tick until ``stop`` is set. What goes wrong is logged, and tried again when it is due."""
    await asyncio.gather(*(_run_task(clock, stop) for clock in tasks))


async def _run_task(task: PeriodicTask, stop: asyncio.Event) -> None:
    wait = task.interval_seconds * random.random()  # many processes that start at once should not tick at once
    while True:
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), wait)
            return
        try:
            report = asdict(await task.run_once())
            if any(report.values()):
                log.info(task.name, **report)
        except Exception as error:  # whatever it is: the next pass may do better, and the other clocks go on
            log.warning(f"{task.name} failed", reason=str(error) or type(error).__name__)
        wait = task.interval_seconds * random.uniform(0.9, 1.1)
