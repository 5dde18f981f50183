"""Output: in colour on a terminal, plain in a pipe.

Crawled text is not trusted: on a terminal it is printed without control characters.
"""

import os
import sys
import textwrap
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TextIO, TypeAlias

if TYPE_CHECKING:  # heavy: a pipe never needs it
    from rich.console import Console

StyledText: TypeAlias = str | tuple[str, str]  # a text, or a text and its style

FACT_INDENT = 4  # blanks around the names of facts
MIN_FACT_WIDTH = 20
MIN_CUT_WIDTH = 12  # a column is cut to no less than this

_ALLOWED_CONTROLS = "\n\t"
_BIDI_CONTROLS = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))  # they reorder the text of a line
_REMOVED_CHARACTERS = {
    code: None for code in (*range(0x20), *range(0x7F, 0xA0), *_BIDI_CONTROLS) if chr(code) not in _ALLOWED_CONTROLS
}


def strip_control_characters(text: str) -> str:
    """Return a text without escape sequences, control characters and changes of direction."""
    return text.translate(_REMOVED_CHARACTERS)


_ESCAPED_CHARACTERS = {
    code: f"\\u{code:04x}"
    for code in (
        *range(0x7F, 0xA0),
        *(0x061C, 0x200E, 0x200F, *_BIDI_CONTROLS),
        *(0x200B, 0x200C, 0x200D, 0x2028, 0x2029, *range(0x2060, 0x2066), *range(0x206A, 0x2070), 0xFEFF),
    )
}


def escape_invisible_characters(json_text: str) -> str:
    """Return the same JSON with escapes for control characters, changes of direction and what has no width."""
    return json_text.translate(_ESCAPED_CHARACTERS)  # outside of its strings JSON has none of them


class Screen:
    """Standard output or standard error."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.is_terminal = stream.isatty()
        self.before_write: Callable[[], None] = lambda: None  # called before each output

    @cached_property
    def console(self) -> "Console":
        from rich.console import Console

        return Console(file=self.stream, highlight=False)

    def line(self, *parts: StyledText, indent: int = 0, wrap: bool = False) -> None:
        """Print one line. ``wrap``: a long one is wrapped and indented on a terminal."""
        self.before_write()
        cleaned = [
            (strip_control_characters(part), "")
            if isinstance(part, str)
            else (strip_control_characters(part[0]), part[1])
            for part in parts
        ]
        if not self.is_terminal:
            self.stream.write(" " * indent + "".join(text for text, _ in cleaned).rstrip() + "\n")
            return
        from rich.padding import Padding
        from rich.text import Text

        text = Text.assemble(*cleaned)
        if wrap:
            self.console.print(Padding(text, (0, 0, 0, indent), expand=False))
        else:
            self.console.print(Text(" " * indent) + text, soft_wrap=True)

    def table(
        self, rows: Sequence[Sequence[StyledText]], *, align_right: Sequence[int] = (), optional: Sequence[int] = ()
    ) -> None:
        """Print rows in columns; ``align_right`` names the columns of numbers.

        On a terminal that is too narrow, ``optional`` columns are left out, the first of them first, then the widest
        column is narrowed: sentences in the last column go on below, other texts are cut. No word is broken.
        """
        plain = [[part if isinstance(part, str) else part[0] for part in row] for row in rows]
        widths = dict(enumerate(max(map(len, column)) for column in zip(*plain, strict=True)))
        if self.is_terminal:
            _fit_columns(widths, optional, self.console.width)
        last = max(widths)
        for row in rows:
            parts: list[StyledText] = []
            below: list[str] = []
            for column, width in widths.items():
                part = row[column]
                text, style = (part, "") if isinstance(part, str) else part
                if len(text) > width:
                    text, *below = _wrap(text, width) if column == last else [text]
                    text = text if len(text) <= width else f"{text[: width - 1]}…"
                blanks = " " * (width - len(text))
                parts += [blanks, (text, style), "  "] if column in align_right else [(text, style), blanks, "  "]
            self.line(*parts)
            indent = sum(widths.values()) - widths[last] + 2 * (len(widths) - 1)
            for text in below:
                self.line(text, indent=indent)

    def facts(self, facts: Sequence[tuple[str, str]]) -> None:
        """Print names and what is to be said about each; on a terminal, long texts go on below where they began."""
        width = max((len(name) for name, _ in facts), default=0)
        for name, value in facts:
            lines = [value]
            if self.is_terminal:
                available = max(MIN_FACT_WIDTH, self.console.width - width - FACT_INDENT)
                lines = _wrap(value, available)
            for number, line in enumerate(lines):
                shown = name if number == 0 else ""
                self.line((f"  {shown}", "dim"), " " * (width - len(shown) + 2), line)

    def text(self, text: str) -> None:
        """Print a whole text, without control characters on a terminal."""
        self.before_write()
        self.stream.write(strip_control_characters(text) if self.is_terminal else text)
        if not text.endswith("\n"):
            self.stream.write("\n")


def _wrap(text: str, width: int) -> list[str]:
    """Return the lines of a text; a word that is longer than a line stays whole."""
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) or [""]


def _fit_columns(widths: dict[int, int], optional: Sequence[int], available: int) -> None:
    """Leave out optional columns, then narrow the last one, then the widest, until all fit with two blanks between."""
    left_out = [column for column in optional if column in widths]
    while (excess := sum(widths.values()) + 2 * (len(widths) - 1) - available) > 0:
        if left_out:
            del widths[left_out.pop(0)]
            continue
        last = max(widths)
        narrowed = last if widths[last] > MIN_CUT_WIDTH else max(widths, key=lambda column: widths[column])
        if widths[narrowed] <= MIN_CUT_WIDTH:
            return
        widths[narrowed] = max(MIN_CUT_WIDTH, widths[narrowed] - excess)


def make_streams_lenient() -> None:
    """Replace characters that the encoding of a stream lacks, and write to nowhere where it is closed."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the parent process
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
