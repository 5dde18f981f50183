"""Output: in colour on a terminal, plain in a pipe.

Crawled text is not trusted: on a terminal it is printed without control characters.
"""

import os
import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TextIO, TypeAlias

if TYPE_CHECKING:  # heavy: a pipe never needs it
    from rich.console import Console

StyledText: TypeAlias = str | tuple[str, str]  # a text, or a text and its style

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

    def table(self, rows: Sequence[Sequence[StyledText]], *, align_right: Sequence[int] = ()) -> None:
        """Print rows in columns; ``align_right`` names the columns of numbers."""
        plain = [[part if isinstance(part, str) else part[0] for part in row] for row in rows]
        widths = [max(map(len, column)) for column in zip(*plain, strict=True)]
        for row in rows:
            parts: list[StyledText] = []
            for column, part in enumerate(row):
                text, style = (part, "") if isinstance(part, str) else part
                blanks = " " * (widths[column] - len(text))
                parts += [blanks, (text, style), "  "] if column in align_right else [(text, style), blanks, "  "]
            self.line(*parts)

    def text(self, text: str) -> None:
        """Print a whole text, without control characters on a terminal."""
        self.before_write()
        self.stream.write(strip_control_characters(text) if self.is_terminal else text)
        if not text.endswith("\n"):
            self.stream.write("\n")


def make_streams_lenient() -> None:
    """Replace characters that the encoding of a stream lacks, and write to nowhere where it is closed."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the parent process
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
