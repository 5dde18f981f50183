"""The part of roff that is a programming language: strings, registers, conditions and macros that a page defines.

    read_lines          the text of a page -> its lines, with everything expanded
    split_arguments     the arguments of a request

Nothing outside of the page is read. The number of lines and characters that expansion may produce is limited, so a page
cannot grow without end.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

MAX_EXPANSION = 4
"""How many times longer than the page, plus MIN_EXPANSION, the expanded page may be, in characters and in lines."""

MIN_EXPANSION = 200_000
MAX_DEPTH = 40  # macros in macros
MAX_LINE_LENGTH = 100_000

_REFERENCE = re.compile(
    r"\\(\*|n[-+]?|\$)(?:\(([^\s]{2})|\[([^\]\s\\]{1,80})[^\]]{0,200}\]|(.))|\\[\"#].*|\\(.)", re.DOTALL
)
_ARGUMENT = re.compile(r'\s*(?:"((?:[^"]|"")*)(?:"|$)|((?:[^\s\\]|\\.)(?:[^\s\\]|\\.)*\\?))', re.DOTALL)
_REQUEST = re.compile(r"([.'])[ \t]*([^\s\\]*)(?:[ \t]+(.*))?")
_NUMBER = re.compile(r"[-+]?\d+")
_COMPARISON = re.compile(r"([-+]?\d+)\D?\s*(>=|<=|==|=|>|<)\s*([-+]?\d+)")

STRINGS: Final = {
    "Aq": "'", "lq": "“", "rq": "”", "R": "®", "Tm": "™", "L\"": "“", "R\"": "”", "C`": "", "C'": "", "--": "—",
    "PI": "π", "``": "“", "''": "”", "Lt": "<", "Gt": ">", "Le": "≤", "Ge": "≥", "Ba": "|", "Am": "&", "ua": "↑",
    "q": '"', "Ne": "≠", "Pm": "±", "Pi": "π", "If": "∞", "Na": "NaN", ".T": "utf8", "S": "", "Am;": "&",
}  # fmt: skip
_REGISTERS: Final = {".g": 1, ".$": 0, ".H": 24, ".V": 40, ".l": 78, ".x": 1, ".y": 22, ".i": 0, ".u": 1, "rF": 0}


class RoffLine(NamedTuple):
    """A request with its arguments as they are written, or, without a name, a line of text."""

    name: str
    text: str


class _Frame:
    __slots__ = ("arguments", "at", "lines")

    def __init__(self, lines: list[str], arguments: list[str]) -> None:
        self.lines = lines
        self.at = 0
        self.arguments = arguments


class _Interpreter:
    def __init__(self, text: str, native: Collection[str]) -> None:
        lines = text.split("\n")
        self._native = native
        self._frames = [_Frame(lines, [])]
        self._macros: dict[str, list[str]] = {}
        self._aliases: dict[str, str] = {}
        self._strings = dict(STRINGS)
        self._registers = dict(_REGISTERS)
        self._else: list[bool] = []  # whether the .el of an .ie is to be read
        self._lines_left = MAX_EXPANSION * len(lines) + MIN_EXPANSION // 10
        self._characters_left = MAX_EXPANSION * len(text) + MIN_EXPANSION

    def run(self) -> Iterator[RoffLine]:
        while (line := self._next_line()) is not None:
            self._lines_left -= 1
            self._characters_left -= len(line)
            if self._lines_left < 0 or self._characters_left < 0:
                return
            if "\\" in line and not (line := self._interpolate(line)):
                continue  # nothing but a comment
            if line[:1] not in (".", "'"):
                yield RoffLine("", line)
                continue
            match = _REQUEST.match(line)
            if match is None or (match[1] == "'" and not match[2]):
                continue
            name, rest = self._aliases.get(match[2], match[2]), match[3] or ""
            if handler := _HANDLERS.get(name):
                handler(self, rest)
            elif name in self._macros and name not in self._native:
                self._call(name, rest)
            elif name and name[0] not in '\\"':
                yield RoffLine(name, rest)

    def _next_line(self) -> str | None:
        frames = self._frames
        while frames:
            frame = frames[-1]
            if frame.at < len(frame.lines):
                line = frame.lines[frame.at]
                frame.at += 1
                while line.endswith("\\") and not line.endswith("\\\\") and frame.at < len(frame.lines):
                    if len(line) > MAX_LINE_LENGTH:
                        break
                    line = line[:-1] + frame.lines[frame.at]
                    frame.at += 1
                return line
            frames.pop()
        return None

    def _interpolate(self, line: str) -> str:
        for _ in range(4):  # strings may refer to strings
            changed = False

            def replace(match: re.Match[str]) -> str:
                nonlocal changed
                kind, name = match[1], match[2] or match[3] or match[4]
                if not kind:
                    return "" if match[5] is None else match[0]
                changed = True
                if kind == "*":
                    return self._strings.get(name, "")
                if kind == "$":
                    arguments = self._frames[-1].arguments if self._frames else []
                    if name in ("*", "@"):
                        return " ".join(arguments if name == "*" else [f'"{each}"' for each in arguments])
                    return arguments[int(name) - 1] if name.isdigit() and 0 < int(name) <= len(arguments) else ""
                if kind == "n+":
                    self._registers[name] = self._registers.get(name, 0) + 1
                return str(self._registers.get(name, 0))

            line = _REFERENCE.sub(replace, line)
            if len(line) > MAX_LINE_LENGTH and changed:
                return line[:MAX_LINE_LENGTH]
            if not changed or ("\\*" not in line and "\\n" not in line):
                break
        return line

    def _call(self, name: str, rest: str) -> None:
        if len(self._frames) < MAX_DEPTH:
            arguments = split_arguments(rest)
            self._frames.append(_Frame(self._macros[name], arguments))
            self._registers[".$"] = len(arguments)

    # Requests

    def _define(self, rest: str) -> None:
        name, _, end = rest.strip().partition(" ")
        body = self._body_until(end.strip() or ".")
        if name:
            self._macros[name] = body

    def _append(self, rest: str) -> None:
        name, _, end = rest.strip().partition(" ")
        self._macros[name] = [*self._macros.get(name, []), *self._body_until(end.strip() or ".")]

    def _ignore(self, rest: str) -> None:
        self._body_until(rest.strip() or ".")

    def _body_until(self, end: str) -> list[str]:
        body: list[str] = []
        frame = self._frames[-1] if self._frames else None
        if frame is None:
            return body
        pattern = re.compile(rf"[.'][ \t]*{re.escape(end)}(?:[ \t].*)?$")
        while frame.at < len(frame.lines):
            line = frame.lines[frame.at]
            frame.at += 1
            if pattern.match(line):
                break
            body.append(line.replace("\\\\", "\\"))
        return body

    def _define_string(self, rest: str) -> None:
        name, _, value = rest.lstrip().partition(" ")
        if name:
            self._strings[name] = value.lstrip().removeprefix('"')[:MAX_LINE_LENGTH]

    def _append_string(self, rest: str) -> None:
        name, _, value = rest.lstrip().partition(" ")
        if name:
            self._strings[name] = (self._strings.get(name, "") + value.removeprefix('"'))[:MAX_LINE_LENGTH]

    def _set_register(self, rest: str) -> None:
        words = rest.split()
        if len(words) > 1 and (number := _NUMBER.match(words[1])):
            value = int(number[0][:9])
            relative = words[1][0] in "+-"
            self._registers[words[0]] = (self._registers.get(words[0], 0) if relative else 0) + value

    def _remove(self, rest: str) -> None:
        for name in rest.split():
            self._strings.pop(name, None)
            self._macros.pop(name, None)

    def _alias(self, rest: str) -> None:
        words = rest.split()
        if len(words) == 2 and words[0] not in _HANDLERS:
            self._aliases[words[0]] = self._aliases.get(words[1], words[1])

    def _if(self, rest: str) -> None:
        holds, rest = self._condition(rest)
        self._branch(holds, rest)

    def _if_else(self, rest: str) -> None:
        holds, rest = self._condition(rest)
        if len(self._else) < 1_000:
            self._else.append(not holds)
        self._branch(holds, rest)

    def _otherwise(self, rest: str) -> None:
        self._branch(self._else.pop() if self._else else False, rest)

    def _branch(self, holds: bool, rest: str) -> None:
        rest = rest.strip()
        opens = rest.startswith("\\{")
        if holds:
            rest = rest.removeprefix("\\{").removesuffix("\\").strip()
            if rest and len(self._frames) < MAX_DEPTH:
                arguments = self._frames[-1].arguments if self._frames else []
                self._frames.append(_Frame([rest], arguments))
        elif opens:
            self._skip_block(rest.count("\\{") - rest.count("\\}"))

    def _skip_block(self, depth: int) -> None:
        while depth > 0 and self._frames:
            frame = self._frames[-1]
            if frame.at >= len(frame.lines):
                if len(self._frames) == 1:
                    return
                self._frames.pop()
                continue
            line = frame.lines[frame.at]
            frame.at += 1
            depth += line.count("\\{") - line.count("\\}")

    def _condition(self, rest: str) -> tuple[bool, str]:
        rest = rest.lstrip()
        negated = False
        while rest.startswith("!"):
            negated, rest = not negated, rest[1:].lstrip()
        first = rest[:1]
        if first in ("n", "o", "t", "e", "v") and rest[1:2] in ("", " ", "\\", "."):
            return (first in ("n", "o")) != negated, rest[1:]
        if first in ("d", "r", "m", "c", "F", "S") and (name := re.match(r".\s*(\S+)", rest)):
            known = self._strings.keys() | self._macros.keys() if first == "d" else self._registers.keys()
            return (name[1] in known) != negated, rest[name.end() :]
        if first in ("'", '"') or (first and not first.isalnum() and first not in "(-+\\"):
            parts = rest[1:].split(first, 2)
            if len(parts) == 3:
                return (parts[0] == parts[1]) != negated, parts[2]
            return negated, ""
        word, _, after = rest.partition(" ")
        expression = word.strip("()")
        if comparison := _COMPARISON.match(expression):
            left, operator, right = int(comparison[1][:9]), comparison[2], int(comparison[3][:9])
            holds = {
                ">=": left >= right, "<=": left <= right, ">": left > right, "<": left < right,
            }.get(operator, left == right)  # fmt: skip
            return holds != negated, after
        number = _NUMBER.match(expression)
        return (bool(number) and int(number[0][:9] if number else 0) > 0) != negated, after

    def _return(self, rest: str) -> None:
        if len(self._frames) > 1:
            self._frames.pop()

    def _shift(self, rest: str) -> None:
        if self._frames:
            del self._frames[-1].arguments[:1]


def _skip(self: _Interpreter, rest: str) -> None:
    """Ignore a request that only concerns layout."""


_HANDLERS = {
    "de": _Interpreter._define, "de1": _Interpreter._define, "am": _Interpreter._append, "ig": _Interpreter._ignore,
    "ds": _Interpreter._define_string, "ds1": _Interpreter._define_string, "as": _Interpreter._append_string,
    "nr": _Interpreter._set_register, "rm": _Interpreter._remove, "rr": _Interpreter._remove,
    "als": _Interpreter._alias, "if": _Interpreter._if, "ie": _Interpreter._if_else, "el": _Interpreter._otherwise,
    "while": _skip, "return": _Interpreter._return, "shift": _Interpreter._shift,
    **dict.fromkeys(
        ("ad", "na", "hy", "nh", "ne", "bp", "ll", "lt", "pl", "po", "ps", "vs", "ss", "cs", "fam", "tr", "mso", "do",
         "tm", "wh", "ev", "cp", "it", "ta", "mk", "rt", "ns", "rs", "lg", "ul", "cu", "pm", "rn", "UC", "hw", "warn",
         "hla", "hpf", "AT", "PD", "DT", "IX", "nop", "kern", "pdfhref", "psbb", "device", "color", "defcolor", "nx",
         "chop", "substring", "length", "break", "continue", "uf", "ftr", "char", "fchar", "schar", "rchar", "tkf",
         "LINKSTYLE", "BB", "BE", "VS", "VE", "BS", "AS", "HS", "ex", "ab", "eo", "ec", "cc", "c2", "nroff"),
        _skip,
    ),
}  # fmt: skip


def split_arguments(text: str) -> list[str]:
    """Return the arguments of a request: words, or texts in quotation marks."""
    arguments: list[str] = []
    for match in _ARGUMENT.finditer(text):
        arguments.append(match[1].replace('""', '"') if match[1] is not None else match[2])
    return arguments


def read_lines(text: str, native: Collection[str]) -> Iterator[RoffLine]:
    """Yield the lines of a page with strings, conditions and its own macros expanded, but not the `native` ones."""
    return _Interpreter(text, native).run()
