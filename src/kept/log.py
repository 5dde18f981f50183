"""Structured logging: one line for each event, with its fields.

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

    def debug(self, event: str, **fields: Any) -> None:
        self._write(logging.DEBUG, event, fields)

    def info(self, event: str, **fields: Any) -> None:
        self._write(logging.INFO, event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        self._write(logging.WARNING, event, fields)

    def exception(self, event: str, **fields: Any) -> None:
        """Log the exception that is being handled, with its traceback."""
        self._write(logging.ERROR, event, fields, with_error=True)

    def _write(self, level: int, event: str, fields: Mapping[str, Any], *, with_error: bool = False) -> None:
        if self._logger.isEnabledFor(level):
            values = " ".join(f"{name}={_format_value(value)}" for name, value in fields.items())
            self._logger.log(level, "%s", f"{event:<30} {values}".rstrip(), exc_info=with_error)


def log_to_stderr(level: int) -> None:
    """Send events from this level on to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(message)s", "%Y-%m-%d %H:%M:%S"))
    logger = logging.getLogger("kept")
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(level)


def _format_value(value: Any) -> str:
    """Return a single word unchanged, anything else in quotes."""
    text = str(value)
    return text if text and text.isprintable() and not any(one in text for one in ' "=') else repr(text)
