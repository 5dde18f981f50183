"""What people say and read at the command line, besides the words that every door has."""

import re
from datetime import datetime

from kept.model.duration import parse_duration as parse_duration
from kept.service.formatting import format_ago as format_ago
from kept.service.formatting import format_counts as format_counts
from kept.service.formatting import format_duration as format_duration
from kept.service.formatting import pluralize as pluralize


def format_local_time(then: datetime | None) -> str:
    """A time on the reader's own clock."""
    return f"{then.astimezone():%Y-%m-%d %H:%M}" if then else ""


def mask_password(url: str) -> str:
    """A database's URL that may be shown."""
    shown = re.sub(r"(://[^@/:]*:)[^@]*@", r"\1***@", url)
    return re.sub(r"(password=)[^&]*", r"\1***", shown)
