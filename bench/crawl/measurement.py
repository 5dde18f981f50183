"""Run a program and measure it, with all the processes it starts."""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

EVERY = 0.05
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Measured:
    pages: int
    seconds: float
    cpu: float  # seconds, of the program and the children it waited for
    memory: int  # bytes, the peak of all its processes together

    @property
    def rate(self) -> float:
        return self.pages / self.seconds


def measure(command: Sequence[str], pages: Callable[[str], int]) -> Measured:
    before, began = _cpu_of_children(), time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        with _Watch(program.pid) as watch:
            printed, errors = program.communicate()
        seconds = time.monotonic() - began
    if program.returncode:
        sys.exit(f"{' '.join(command)} ended with {program.returncode}:\n{errors[-2000:]}")
    return Measured(pages(printed), seconds, _cpu_of_children() - before, watch.largest)


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class _Watch:
    """Poll the memory of a process and its descendants."""

    def __init__(self, pid: int) -> None:
        self.largest = 0
        self._pid = pid
        self._over = Event()
        self._thread = Thread(target=self._look)

    def __enter__(self) -> "_Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(EVERY):
            self.largest = max(self.largest, sum(map(_resident, _family(self._pid))))


def _family(pid: int) -> list[int]:
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        children = [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:  # it has just ended
        return [pid]
    return [pid, *(one for child in children for one in _family(child))]


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
    except OSError:
        return 0
