"""The macros of man(7), of pod2man, DocBook and Tcl's manual, and the requests for spacing and fonts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from kept.extract.man.characters import BOLD, ITALIC, ROMAN, FontRun, plain, split_runs
from kept.extract.man.page import LINE_BREAK, ManualPage, render_runs
from kept.extract.man.roff import RoffLine, split_arguments
from kept.extract.man.tables import read_table

_FONT_PAIRS: Final = {
    "BI": (BOLD, ITALIC), "BR": (BOLD, ROMAN), "IB": (ITALIC, BOLD), "IR": (ITALIC, ROMAN), "RB": (ROMAN, BOLD),
    "RI": (ROMAN, ITALIC),
}  # fmt: skip
_DOCBOOK_MARK: Final = re.compile(r"\\h'-0\d' ?(\S{1,8}?)\\h'\+0\d'\\c")  # how DocBook's pages write list items
_ONE_FONT: Final = {"B": BOLD, "I": ITALIC, "SB": BOLD, "SM": ROMAN, "R": ROMAN}


class ManWriter:
    """Reads a page line by line."""

    def __init__(self, page: ManualPage) -> None:
        self.page = page
        self.section = ""  # the text of the last heading
        self._awaits: Callable[[list[FontRun]], None] | None = None  # what the next line of text is for
        self._next_font = ""  # of the next line of text, after .B without arguments
        self._terms: list[list[FontRun]] = []  # of .TP and .TQ, until their text comes
        self._link: tuple[int, str] | None = None  # start and target of .UR
        self._outer_code = False

    def read(self, lines: Iterator[RoffLine]) -> None:
        for line in lines:
            if line.name:
                self._request(line, lines)
            else:
                self._text(line.text)
        self._write_terms()
        self.page.finish()

    def _text(self, text: str) -> None:
        if not text.strip():
            if self._awaits is None:
                self._write_terms()
                self.page.add_space()
            return
        page = self.page
        if page.code is None and (mark := _DOCBOOK_MARK.match(text)):
            page.begin_item([FontRun(plain(mark[1]), ROMAN)])
            page.glue = True
            return
        if page.code is None and text[0] in " \t" and self._awaits is None:
            page.break_line()
        runs, page.font = split_runs(text, self._next_font or page.font)
        if self._next_font:
            page.font = ROMAN
        self._next_font = ""
        self._add(runs, goes_on=text.endswith("\\c"))

    def _add(self, runs: list[FontRun], *, goes_on: bool = False) -> None:
        page = self.page
        if self._awaits is not None:
            awaits, self._awaits = self._awaits, None
            awaits(runs)
            return
        self._write_terms()
        page.add_runs(runs)
        page.glue = goes_on
        page.end_line()

    def _write_terms(self) -> None:
        if not self._terms:
            return
        terms, self._terms = self._terms, []
        tag: list[FontRun] = []
        for term in terms:
            tag += [*([FontRun(", ", ROMAN)] if tag else []), *term]
        self.page.begin_item(tag)

    def _request(self, line: RoffLine, lines: Iterator[RoffLine]) -> None:
        name = line.name
        if name in _ONE_FONT:
            self._one_font(_ONE_FONT[name], line.text)
        elif name in _FONT_PAIRS:
            self._two_fonts(_FONT_PAIRS[name], line.text)
        elif name in ("TS", "EQ", "PS"):
            self._embedded(name, lines)
        elif name in ("SH", "SS", "Sh", "Ss"):
            self._flush_terms()
            self._with_text(line.text, partial(self._heading, 2 if name in ("SH", "Sh") else 3))
        elif handler := _HANDLERS.get(name):
            handler(self, line.text)

    def _flush_terms(self) -> None:
        self._awaits = None
        self._write_terms()
        if self._link:
            self._end_link("")

    def _with_text(self, text: str, use: Callable[[list[FontRun]], None]) -> None:
        words = " ".join(split_arguments(text))
        if words:
            use(split_runs(words)[0])
        else:
            self._awaits = use

    def _heading(self, level: int, runs: list[FontRun]) -> None:
        self.section = "".join([run.text for run in runs]).strip().upper() if level == 2 else self.section
        self.page.add_heading(level, runs)

    def _one_font(self, font: str, text: str) -> None:
        words = " ".join(split_arguments(text))
        if not words:
            self._next_font = font
            return
        runs, _ = split_runs(words, font, ROMAN)
        self._add(runs, goes_on=words.endswith("\\c"))

    def _two_fonts(self, fonts: tuple[str, str], text: str) -> None:
        runs: list[FontRun] = []
        arguments = split_arguments(text)
        for index, word in enumerate(arguments):
            runs += split_runs(word, fonts[index % 2], ROMAN)[0]
        if runs:
            self._add(runs, goes_on=arguments[-1].endswith("\\c"))

    def _embedded(self, name: str, lines: Iterator[RoffLine]) -> None:
        """Read a table up to its end; equations and pictures are left out or kept as text."""
        self._flush_terms()
        end = {"TS": "TE", "EQ": "EN", "PS": "PE"}[name]
        inside: list[str] = []
        for line in lines:
            if line.name == end or line.name in ("SH", "SS"):
                break
            inside.append(f".{line.name} {line.text}" if line.name else line.text)
        self.page.flush()
        if name == "TS":
            rows, has_header = read_table(inside)
            cells = [[render_runs(split_runs(cell)[0]) for cell in row] for row in rows]
            self.page.writer.add_table(cells, has_header=has_header)
        elif name == "EQ":
            self.page.writer.add_code("\n".join(inside))
        if line.name in ("SH", "SS"):
            self._request(line, lines)

    # Paragraphs and lists

    def _title(self, text: str) -> None:
        arguments = [plain(each) for each in split_arguments(text)]
        if arguments and not self.page.title:
            name, section = arguments[0], arguments[1] if len(arguments) > 1 else ""
            self.page.title = f"{name}({section})" if section else name

    def _paragraph(self, text: str) -> None:
        self._flush_terms()
        self.page.begin_paragraph()

    def _space(self, text: str) -> None:
        self._flush_terms()
        self.page.add_space()

    def _break(self, text: str) -> None:
        if self._awaits is None:
            self._write_terms()
            self.page.break_line()

    def _tagged(self, text: str) -> None:
        self._flush_terms()
        self._awaits = self._terms.append

    def _another_tag(self, text: str) -> None:
        if not self._terms:
            self._flush_terms()
        self._awaits = self._terms.append

    def _indented(self, text: str) -> None:
        arguments = split_arguments(text)
        self._flush_terms()
        if arguments and plain(arguments[0]).strip():
            self._terms.append(split_runs(arguments[0])[0])
            self._write_terms()
        else:
            self.page.add_space()

    def _indent(self, text: str) -> None:
        self._flush_terms()
        self.page.indent()

    def _outdent(self, text: str) -> None:
        self._flush_terms()
        self.page.outdent()

    # Code

    def _no_fill(self, text: str) -> None:
        self._flush_terms()
        self.page.open_code("c" if self.section == "SYNOPSIS" and self.page.title[-2:-1] in ("2", "3") else "")

    def _fill(self, text: str) -> None:
        self._flush_terms()
        self.page.close_code()

    # Fonts, links, synopses

    def _font(self, text: str) -> None:
        self.page.font = {"B": BOLD, "2": ITALIC, "3": BOLD, "I": ITALIC, "CB": BOLD}.get(text.strip(), ROMAN)

    def _start_link(self, text: str) -> None:
        self._write_terms()
        arguments = split_arguments(text)
        self._link = (len(self.page.runs), plain(arguments[0])) if arguments else None

    def _start_mail(self, text: str) -> None:
        self._start_link(f"mailto:{text.strip()}" if text.strip() else "")

    def _end_link(self, text: str) -> None:
        if self._link and self.page.code is None:
            start, href = self._link
            self.page.add_link(min(start, len(self.page.runs)), href)
            if text.strip():
                self.page.add_text(text.strip(), glue=True)
        self._link = None

    def _url(self, text: str) -> None:
        arguments = [plain(each) for each in split_arguments(text)]
        if arguments:
            self._start_link(f'"{arguments[0]}"')
            if len(arguments) > 1 and arguments[1]:
                self.page.add_runs([FontRun(arguments[1], ROMAN)])
            self._end_link(arguments[2] if len(arguments) > 2 else "")

    def _mail_to(self, text: str) -> None:
        self._url(f"mailto:{text.strip()}")

    def _synopsis(self, text: str) -> None:
        self._paragraph("")
        self._one_font(BOLD, text)

    def _option(self, text: str) -> None:
        arguments = split_arguments(text)
        if arguments:
            runs = [FontRun("[", ROMAN), *split_runs(arguments[0], BOLD)[0]]
            for word in arguments[1:]:
                runs += [FontRun(" ", ROMAN), *split_runs(word, ITALIC)[0]]
            self._add([*runs, FontRun("]", ROMAN)])

    def _quoted(self, text: str) -> None:
        arguments = split_arguments(text)
        self._add([FontRun("“", ROMAN), *split_runs("”".join([*arguments[:1], "".join(arguments[1:])]))[0]])

    def _argument(self, text: str) -> None:
        """Read an argument of a C function in Tcl's manual: type, name, direction."""
        kind, name, direction = [*split_arguments(text)[:3], "", "", ""][:3]
        self._flush_terms()
        self._terms.append([FontRun(f"{plain(kind)} {plain(name)}".strip(), BOLD)])
        if direction:
            self._add([FontRun(f"({plain(direction)})", ROMAN), LINE_BREAK])


_HANDLERS: Final[dict[str, Callable[[ManWriter, str], None]]] = {
    "TH": ManWriter._title,
    **dict.fromkeys(("PP", "LP", "P", "HP"), ManWriter._paragraph),
    **dict.fromkeys(("sp", "Sp", "SP"), ManWriter._space),
    **dict.fromkeys(("br", "ti", "in", "ce"), ManWriter._break),
    "TP": ManWriter._tagged, "TQ": ManWriter._another_tag, "IP": ManWriter._indented,
    "RS": ManWriter._indent, "RE": ManWriter._outdent,
    **dict.fromkeys(("nf", "EX", "Vb", "CS", "DS", "SO"), ManWriter._no_fill),
    **dict.fromkeys(("fi", "EE", "Ve", "CE", "DE", "SE"), ManWriter._fill),
    "ft": ManWriter._font, "UR": ManWriter._start_link, "UE": ManWriter._end_link, "MT": ManWriter._start_mail,
    "ME": ManWriter._end_link, "URL": ManWriter._url, "MTO": ManWriter._mail_to, "SY": ManWriter._synopsis,
    "YS": ManWriter._space, "OP": ManWriter._option, "QW": ManWriter._quoted, "AP": ManWriter._argument,
}  # fmt: skip

NATIVE: Final = frozenset({
    *_HANDLERS, *_FONT_PAIRS, *_ONE_FONT, "SH", "SS", "TS", "TE", "EQ", "EN", "T&", "Sh", "Ss",
})  # fmt: skip
