"""Events for whoever runs Kept: what happened, and the facts of it, in one line each.

log = Log(__name__)
log.info("worker reaped", worker=id, job=job)
"""

import logging
import sys
from collections.abc import Mapping
from typing import Any


class Log:
    """Events of one module."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def debug(self, event: str, **facts: Any) -> None:
        self._write(logging.DEBUG, event, facts)

    def info(self, event: str, **facts: Any) -> None:
        self._write(logging.INFO, event, facts)

    def warning(self, event: str, **facts: Any) -> None:
        self._write(logging.WARNING, event, facts)

    def exception(self, event: str, **facts: Any) -> None:
        """With the error that is being handled, and where it came from."""
        self._write(logging.ERROR, event, facts, with_error=True)

    def _write(self, level: int, event: str, facts: Mapping[str, Any], *, with_error: bool = False) -> None:
        if self._logger.isEnabledFor(level):
            told = " ".join(f"{name}={_format_value(value)}" for name, value in facts.items())
            self._logger.log(level, "%s", f"{event:<30} {told}".rstrip(), exc_info=with_error)


def log_to_stderr(level: int) -> None:
    """Events of Kept from this level on go to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(message)s", "%Y-%m-%d %H:%M:%S"))
    events = logging.getLogger("kept")
    events.handlers, events.propagate = [handler], False
    events.setLevel(level)


def _format_value(value: Any) -> str:
    """As it is if it is one word, else in quotes."""
    text = str(value)
    return text if text and text.isprintable() and not any(one in text for one in ' "=') else repr(text)
