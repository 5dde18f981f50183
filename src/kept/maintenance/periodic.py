"""Runs periodic tasks beside workers. Each is one pass that is safe to repeat, in any process, at any time.

The tasks are listed in ``runtime.worker_host``.
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
    """A pass, and how often it is due. It returns a report, a dataclass of numbers."""

    name: str
    interval_seconds: float
    run_once: Callable[[], Awaitable[Any]]


async def run_tasks(tasks: Sequence[PeriodicTask], stop: asyncio.Event) -> None:
    """Run all tasks until ``stop`` is set. Errors are logged, and the task runs again when it is due."""
    await asyncio.gather(*(_run_task(task, stop) for task in tasks))


async def _run_task(task: PeriodicTask, stop: asyncio.Event) -> None:
    wait = task.interval_seconds * random.random()  # processes that start together should not stay in step
    while True:
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), wait)
            return
        try:
            report = asdict(await task.run_once())
            if any(report.values()):
                log.info(task.name, **report)
        except Exception as error:  # the next pass may succeed, and other tasks must go on
            log.warning(f"{task.name} failed", reason=str(error) or type(error).__name__)
        wait = task.interval_seconds * random.uniform(0.9, 1.1)
