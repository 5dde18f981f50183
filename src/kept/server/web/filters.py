"""Filters of the templates."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from markupsafe import Markup, escape

from kept.model.duration import format_short_duration
from kept.model.url import file_path
from kept.service import formatting

_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*\)")
_MARK = re.compile(r"\*\*(.+?)\*\*")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_FENCE = re.compile(r"```[\w+#.-]*")
_NOISE = re.compile(r"(?:^|(?<=\s))#+ |\|[\s|:-]*")


def highlight(snippet: str) -> Markup:
    """Return a snippet as HTML with its matches marked, without Markdown syntax."""
    plain = _NOISE.sub(" ", _LINK.sub(r"\1", _ESCAPED.sub(r"\1", _FENCE.sub("", snippet)))).replace("`", "")
    return Markup(_MARK.sub(r"<mark>\1</mark>", str(escape(" ".join(plain.split())))))


def ago(then: datetime | str | None) -> Markup:
    """Return '3 minutes ago' as HTML, with the exact time as its title."""
    if then is None:
        return Markup("never")
    at = datetime.fromisoformat(then) if isinstance(then, str) else then
    exact = at.astimezone(UTC)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        exact.isoformat(timespec="seconds"), f"{exact:%Y-%m-%d %H:%M} UTC", _relative_time(at)
    )


def _relative_time(at: datetime) -> str:
    seconds = (at - datetime.now(UTC)).total_seconds()
    return f"in {formatting.format_duration(round(seconds))}" if seconds > 0 else formatting.format_ago(at)


def short_url(url: str) -> str:
    """Return a URL without its scheme; a file URL as a path."""
    if url.startswith("file:"):
        file, hash_sign, anchor = url.partition("#")
        return file_path(file) + hash_sign + anchor
    return unquote(url.partition("://")[2].rstrip("/")) or url


def url_path(url: str) -> str:
    """Return path and query of a URL."""
    split = urlsplit(url)
    return unquote(split.path + (f"?{split.query}" if split.query else "")) or "/"


def size(number: int | float) -> str:
    for unit in ("B", "kB", "MB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if number >= 10 or unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} GB"


def segment(text: Any) -> str:
    """Quote a text as one segment of a path, or one value of a query."""
    return quote(str(text), safe="")


def quoted(text: str) -> str:
    """Return a query whose words are searched as they are spelled: each in quotes."""
    return " ".join(word if '"' in word else f'"{word}"' for word in text.split())


def including(text: str, word: str) -> str:
    """Return a query without the exclusion of a word."""
    return " ".join(one for one in text.split() if one.lstrip("-").lower() != word or not one.startswith("-"))


def lines(values: Sequence[str]) -> str:
    return "\n".join(values)


FILTERS = {
    "marked": highlight,
    "ago": ago,
    "short": short_url,
    "in_site": url_path,
    "size": size,
    "segment": segment,
    "quoted": quoted,
    "including": including,
    "lines": lines,
    "plural": formatting.pluralize,
    "duration": formatting.format_duration,
    "short_duration": format_short_duration,
    "count": formatting.format_count,
    "thousands": lambda number: f"{number:,}",
    "web": lambda url: url if url.startswith(("http://", "https://")) else None,
}
