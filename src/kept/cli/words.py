"""What people say and read at the command line, besides the words that every door has."""

import re
from datetime import datetime

from kept.model.duration import parse_duration as parse_duration
from kept.service.words import ago as ago
from kept.service.words import counts as counts
from kept.service.words import duration as duration
from kept.service.words import plural as plural


def moment(then: datetime | None) -> str:
    """A time on the reader's own clock."""
    return f"{then.astimezone():%Y-%m-%d %H:%M}" if then else ""


def without_password(url: str) -> str:
    """A database's URL that may be shown."""
    shown = re.sub(r"(://[^@/:]*:)[^@]*@", r"\1***@", url)
    return re.sub(r"(password=)[^&]*", r"\1***", shown)
