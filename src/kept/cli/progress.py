"""The progress of a crawl: a bar on a terminal, one line in a pipe. A spinner for everything else that is slow."""

import asyncio
import time
from types import TracebackType
from typing import TYPE_CHECKING

from kept.cli.screen import Screen, strip_control_characters
from kept.model.job import CrawlJob, JobStatus
from kept.service.formatting import format_counts, format_duration

if TYPE_CHECKING:  # heavy: a pipe never needs it
    from rich.progress import Progress
    from rich.status import Status


class CrawlProgressBar:
    """Shows the progress of a job on standard error while it is open. Call it with the job after each batch."""

    def __init__(self, screen: Screen, label: str, root: str, *, live: bool) -> None:
        self._screen = screen
        self._title = f"{label}: reading {root}"
        self._bar = _bar(screen) if live and screen.is_terminal else None
        self._warned = ""
        self._first: tuple[float, int] | None = None  # when, and how much was done before

    def __enter__(self) -> "CrawlProgressBar":
        self._screen.line((self._title, "bold"))
        self._screen.stream.flush()
        if self._bar:
            self._bar.start()
        return self

    def __call__(self, job: CrawlJob) -> None:
        if job.error and job.error != self._warned and job.status is JobStatus.PROCESSING:
            self._warned = job.error
            self._screen.line(f"{job.error}.")
        if self._bar is None:
            return
        progress = job.progress
        started, before = self._first = self._first or (time.monotonic(), progress.done)
        rate = (progress.done - before) / max(time.monotonic() - started, 0.001)
        status = [f"{progress.done:,} of {progress.discovered:,} pages"]
        if rate and progress.done < progress.discovered:
            status += [f"{rate:,.0f} a second", f"{format_duration((progress.discovered - progress.done) / rate)} left"]
        self._bar.update(
            self._bar.task_ids[0],
            total=progress.discovered or None,
            completed=progress.done,
            status=", ".join(status),
            counts=format_counts(progress.tally),
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar:
            self._bar.stop()


def _bar(screen: Screen) -> "Progress":
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    bar = Progress(
        BarColumn(bar_width=24),
        TaskProgressColumn(),
        TextColumn("{task.fields[status]}", markup=False),
        TextColumn("{task.fields[counts]}", style="dim", markup=False),
        console=screen.console,
        transient=True,
    )
    bar.add_task("", total=None, status="", counts="")
    return bar


SPINNER_DELAY_SECONDS = 1.0  # seconds


class DelayedSpinner:
    """Shows a message on a terminal after a second of waiting, until something else is printed."""

    def __init__(self, screen: Screen, message: str) -> None:
        self._screen = screen
        self._message = message
        self._timer: asyncio.TimerHandle | None = None
        self._status: Status | None = None

    def __enter__(self) -> "DelayedSpinner":
        if self._screen.is_terminal:
            self._timer = asyncio.get_running_loop().call_later(SPINNER_DELAY_SECONDS, self._show)
        return self

    def _show(self) -> None:
        from rich.text import Text

        self._status = self._screen.console.status(Text(strip_control_characters(self._message)))
        self._status.start()

    def stop(self) -> None:
        if self._timer:
            self._timer.cancel()
        if self._status:
            self._status.stop()
        self._timer = self._status = None

    def __exit__(self, *error: object) -> None:
        self.stop()
