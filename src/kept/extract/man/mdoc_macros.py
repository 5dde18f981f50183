"""The macros of mdoc(7), in which the manuals of the BSDs are written: macros that mean something, not fonts.

A macro may call others on its line (`.Op Fl a Ar file`), and some open a group that a later line closes (`.Oo`, `.Oc`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from kept.extract.man.characters import BOLD, ITALIC, ROMAN, FontRun, plain, split_runs
from kept.extract.man.man_macros import NATIVE, ManWriter
from kept.extract.man.page import ManualPage, plain_text
from kept.extract.man.roff import RoffLine, split_arguments

_FONTS: Final = {
    **dict.fromkeys(("Ic", "Cm", "Li", "Ev", "Dv", "Fn", "Cd", "Sy", "Er", "Tn", "Ms", "Cmd", "Ql", "Vt", "Ft"), BOLD),
    **dict.fromkeys(("Ar", "Em", "Pa", "Va", "Fa", "Ad", "Bt"), ITALIC),
    **dict.fromkeys(("An", "Sx", "No", "Ux", "%A", "%T", "%B", "%D", "%J", "%N", "%O", "%P", "%Q", "%R", "%U", "%V"),
                    ROMAN),
    "%I": ROMAN, "%C": ROMAN, "Mt": ROMAN, "Lb": ROMAN, "Hf": ROMAN,
}  # fmt: skip
_ENCLOSED: Final = {
    "Op": ("[", "]"), "Bq": ("[", "]"), "Pq": ("(", ")"), "Aq": ("<", ">"), "Brq": ("{", "}"), "Dq": ("“", "”"),
    "Sq": ("‘", "’"), "Qq": ('"', '"'), "Eq": ("", ""),
}  # fmt: skip
_OPENED: Final = {
    "Oo": "[", "Bo": "[", "Po": "(", "Ao": "<", "Bro": "{", "Do": "“", "So": "‘", "Qo": '"', "Xo": "", "Eo": "",
}  # fmt: skip
_CLOSED: Final = {
    "Oc": "]", "Bc": "]", "Pc": ")", "Ac": ">", "Brc": "}", "Dc": "”", "Sc": "’", "Qc": '"', "Xc": "", "Ec": "",
}  # fmt: skip
_SYSTEMS: Final = {
    "Bx": "BSD", "Fx": "FreeBSD", "Nx": "NetBSD", "Ox": "OpenBSD", "Dx": "DragonFly", "Bsx": "BSD/OS",
    "At": "AT&T UNIX", "Ux": "UNIX",
}  # fmt: skip
_OTHER: Final = frozenset({"Fl", "Nm", "Xr", "Ns", "Ap", "Pf", "Lk", "St", "Nd", "In", "Fd", "Fo", "Fc", "Ta"})
_MACROS: Final = frozenset({*_FONTS, *_ENCLOSED, *_OPENED, *_CLOSED, *_SYSTEMS, *_OTHER})
_CLOSING: Final = frozenset(".,:;)]?!")
_OPENING: Final = frozenset("([|")
_LIST_KINDS: Final = frozenset({"tag", "bullet", "dash", "hyphen", "item", "enum", "column", "diag", "hang", "ohang",
                                "inset"})  # fmt: skip
_STANDARD = re.compile(r"-(.+)")


class _OpenMdocList:
    __slots__ = ("kind", "number", "rows")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.number = 0
        self.rows: list[list[str]] = []  # of a table


class MdocWriter(ManWriter):
    """Reads a page line by line."""

    def __init__(self, page: ManualPage) -> None:
        super().__init__(page)
        self._name = ""  # of the page, as .Nm gives it
        self._lists: list[_OpenMdocList] = []
        self._displays: list[bool] = []  # whether it is code
        self._no_space = False  # .Ns, or an opening bracket, was last
        self._spacing = True  # .Sm
        self._is_extended = False  # the term goes on until .Xc

    def _request(self, line: RoffLine, lines: Iterator[RoffLine]) -> None:
        name, text = line.name, line.text
        if handler := _BLOCKS.get(name):
            if name != "Sm":
                self._is_extended = False
                self._write_terms()
            handler(self, text)
        elif name in _MACROS:
            self._inline([name, *split_arguments(text)])
        else:
            super()._request(line, lines)

    # Text inside lines

    def _add(self, runs: list[FontRun], *, goes_on: bool = False) -> None:
        if self._is_extended and self._terms:
            self._terms[-1] += [FontRun(" ", ROMAN), *runs]
        else:
            super()._add(runs, goes_on=goes_on)

    def _inline(self, words: list[str]) -> None:
        page = self.page
        if words[0] == "Nm" and self.section == "SYNOPSIS" and page.runs and page.code is None and not self._awaits:
            self._break("")
        if words[0] in ("Ft", "In", "Fd", "Fo", "Fn") and self.section == "SYNOPSIS" and not self._awaits:
            self._break("")
        runs: list[FontRun] = []
        self._no_space = False
        self._phrase(words, runs)
        ends_term = self._is_extended and "Xc" in words
        if self._is_extended and self._terms:
            self._terms[-1] += [*([FontRun(" ", ROMAN)] if self._spacing or len(self._terms[-1]) == 1 else []), *runs]
            runs = []
        if ends_term:
            self._is_extended = False
            self._write_terms()
        if not runs:
            return
        starts_closed = runs[0].text == "\b"
        runs = [run for run in runs if run.text != "\b"]
        glues_next = self._no_space
        if starts_closed:
            page.glue = True
        self._add(runs, goes_on=glues_next)

    def _phrase(self, words: list[str], runs: list[FontRun]) -> None:
        """Write the words of a line from left to right; a backspace glues what follows to what was before."""
        font, is_flag, wrote = ROMAN, False, True
        closers: list[str] = []
        index = 0
        while index < len(words):
            word = words[index]
            index += 1
            if word in _MACROS:
                if is_flag and not wrote:
                    self._put(runs, "-", BOLD)
                font, is_flag, wrote = _FONTS.get(word, ROMAN), word == "Fl", True
                if word == "Fl":
                    font, wrote = BOLD, False
                elif word == "Ns":
                    self._glue(runs)
                elif word == "Ap":
                    self._glue(runs)
                    self._put(runs, "'", ROMAN)
                    self._no_space = True
                elif word in _ENCLOSED:
                    self._put(runs, _ENCLOSED[word][0], ROMAN)
                    self._no_space = True
                    closers.append(_ENCLOSED[word][1])
                elif word in _OPENED:
                    if _OPENED[word]:
                        self._put(runs, _OPENED[word], ROMAN)
                        self._no_space = True
                elif word in _CLOSED:
                    self._close(closers, runs)
                    if _CLOSED[word]:
                        self._glue(runs)
                        self._put(runs, _CLOSED[word], ROMAN)
                elif word in _SYSTEMS:
                    version = words[index] if index < len(words) and words[index][:1].isdigit() else ""
                    index += bool(version)
                    self._put(runs, f"{version}{_SYSTEMS[word]}" if word == "Bx" else f"{_SYSTEMS[word]} {version}"
                              .strip(), ROMAN)  # fmt: skip
                elif word == "Nm":
                    index = self._name_word(words, index, runs)
                elif word == "Xr":
                    index = self._cross_reference(words, index, runs)
                elif word == "Pf" and index < len(words):
                    self._put(runs, plain(words[index]), ROMAN)
                    self._no_space = True
                    index += 1
                elif word in ("Ar", "Pa") and (index >= len(words) or words[index] in _MACROS
                                               or words[index] in _CLOSING):  # fmt: skip
                    self._put(runs, "file ..." if word == "Ar" else "~", ITALIC)
                elif word in ("Lk", "Mt") and index < len(words):
                    href = plain(words[index])
                    label = plain(words[index + 1]) if index + 1 < len(words) and word == "Lk" else href
                    index += 2 if label != href else 1
                    self.page.writer.hrefs.append(href if word == "Lk" else f"mailto:{href}")
                    self._put(runs, label if label == href or label in _CLOSING else f"{label}: {href}", ROMAN)
                elif word == "In":
                    index = self._include(words, index, runs)
                elif word in ("Fn", "Fo"):
                    index = self._function(words, index, runs, is_open=word == "Fo")
                elif word == "Fc":
                    self._glue(runs)
                    self._put(runs, ")", ROMAN)
                elif word == "Nd":
                    self._put(runs, "–", ROMAN)
                elif word == "St" and index < len(words):
                    self._put(
                        runs, _STANDARD.sub(r"\1", plain(words[index])).upper().replace("P1003", "POSIX 1003"), ROMAN
                    )
                    index += 1
                continue
            if word in _CLOSING and index >= len(words):
                self._close(closers, runs)
            if word in _CLOSING:
                if is_flag and not wrote:
                    self._put(runs, "-", BOLD)
                    wrote = True
                self._glue(runs)
                self._put(runs, word, ROMAN)
            elif word in _OPENING:
                self._put(runs, word, ROMAN)
                self._no_space = word != "|"
            else:
                pieces, _ = split_runs(f"\\-{word}" if is_flag else word, font, ROMAN)
                if pieces:
                    self._put_runs(runs, pieces)
                wrote = True
        if is_flag and not wrote:
            self._put(runs, "-", BOLD)
        self._close(closers, runs)

    def _close(self, closers: list[str], runs: list[FontRun]) -> None:
        while closers:
            self._glue(runs)
            self._put(runs, closers.pop(), ROMAN)

    def _glue(self, runs: list[FontRun]) -> None:
        if not runs:
            runs.append(FontRun("\b", ROMAN))
        self._no_space = True

    def _put(self, runs: list[FontRun], text: str, font: str) -> None:
        self._put_runs(runs, [FontRun(text, font)])

    def _put_runs(self, runs: list[FontRun], pieces: list[FontRun]) -> None:
        if runs and runs[-1].text != "\b" and not self._no_space and self._spacing:
            runs.append(FontRun(" ", ROMAN))
        self._no_space = False
        runs += pieces

    def _name_word(self, words: list[str], index: int, runs: list[FontRun]) -> int:
        if index < len(words) and words[index] not in _MACROS and words[index] not in _CLOSING:
            name = plain(words[index])
            self._name = self._name or name
            self._put(runs, name, BOLD)
            return index + 1
        self._put(runs, self._name, BOLD)
        return index

    def _cross_reference(self, words: list[str], index: int, runs: list[FontRun]) -> int:
        if index < len(words):
            name = plain(words[index])
            section = words[index + 1] if index + 1 < len(words) and words[index + 1][:1].isdigit() else ""
            self._put(runs, f"{name}({section})" if section else name, ROMAN)
            return index + (2 if section else 1)
        return index

    def _include(self, words: list[str], index: int, runs: list[FontRun]) -> int:
        if index < len(words):
            is_synopsis = self.section == "SYNOPSIS"
            self._put(runs, f"{'#include ' if is_synopsis else ''}<{plain(words[index])}>", BOLD)
            return index + 1
        return index

    def _function(self, words: list[str], index: int, runs: list[FontRun], *, is_open: bool) -> int:
        arguments = []
        while index < len(words) and words[index] not in _CLOSING and words[index] not in _MACROS:
            arguments.append(plain(words[index]))
            index += 1
        if arguments:
            self._put(runs, f"{arguments[0]}({', '.join(arguments[1:])}", BOLD)
            self._no_space = True
            if not is_open:
                self._put(runs, ")", BOLD)
        return index

    # Blocks

    def _document_title(self, text: str) -> None:
        words = [plain(each) for each in split_arguments(text)]
        if words:
            self.page.title = f"{words[0]}({words[1]})" if len(words) > 1 else words[0]

    def _new_paragraph(self, text: str) -> None:
        if self._lists:
            self._space("")
        else:
            self._paragraph("")

    def _section(self, level: int, text: str) -> None:
        runs: list[FontRun] = []
        self._lists.clear()
        self._phrase(split_arguments(text), runs)
        runs = [run for run in runs if run.text != "\b"]
        self._no_space = False
        self._heading(level, runs)

    def _begin_list(self, text: str) -> None:
        words = split_arguments(text)
        kind = next((word[1:] for word in words if word[:1] == "-" and word[1:] in _LIST_KINDS), "tag")
        self.page.flush()
        if self._lists or self.page.code is not None:
            self.page.indent()
        self._lists.append(_OpenMdocList(kind))

    def _end_list(self, text: str) -> None:
        if not self._lists:
            return
        ended = self._lists.pop()
        if ended.kind == "column":
            self.page.take_runs()
            self.page.writer.add_table(ended.rows, has_header=False)
        elif not self._lists:
            self.page.begin_paragraph()
        if self._lists:
            self.page.outdent()

    def _item(self, text: str) -> None:
        if not self._lists:
            return
        current = self._lists[-1]
        page = self.page
        if current.kind == "column":
            cells: list[str] = []
            words: list[str] = []
            for word in [*split_arguments(text.replace("\t", " Ta ")), "Ta"]:
                if word == "Ta":
                    runs: list[FontRun] = []
                    self._phrase(words, runs)
                    self._no_space = False
                    cells.append(plain_text([run for run in runs if run.text != "\b"]))
                    words = []
                else:
                    words.append(word)
            current.rows.append(cells)
        elif current.kind in ("tag", "diag", "hang", "ohang", "inset"):
            runs = []
            self._phrase(split_arguments(text), runs)
            self._no_space = False
            runs = [run for run in runs if run.text != "\b"]
            if runs:
                self._terms.append(runs)
                self._is_extended = text.split()[-1:] == ["Xo"]
                if not self._is_extended:
                    self._write_terms()
            else:
                page.begin_item([])
        else:
            current.number += 1
            page.begin_item([FontRun(f"{current.number}." if current.kind == "enum" else "•", ROMAN)])

    def _begin_display(self, text: str) -> None:
        is_code = "-literal" in text or "-unfilled" in text
        self._displays.append(is_code)
        if is_code:
            self.page.open_code()
        else:
            self.page.add_space()

    def _end_display(self, text: str) -> None:
        if self._displays and self._displays.pop():
            self.page.close_code()
        else:
            self.page.add_space()

    def _line_of_code(self, text: str) -> None:
        was_code = self.page.code is not None
        self.page.open_code()
        self._inline(["No", *split_arguments(text)])
        if not was_code:
            self.page.close_code()

    def _indented_line(self, text: str) -> None:
        self.page.add_space()
        self._inline(["No", *split_arguments(text)])
        self.page.add_space()

    def _space_mode(self, text: str) -> None:
        self._spacing = text.strip() == "on" or (not text.strip() and not self._spacing)

    def _ignored(self, text: str) -> None:
        """Ignore a macro that writes nothing."""


_BLOCKS: Final[dict[str, Callable[[MdocWriter, str], None]]] = {
    "Dt": MdocWriter._document_title, "Pp": MdocWriter._new_paragraph, "Lp": MdocWriter._new_paragraph,
    "Sh": lambda writer, text: writer._section(2, text), "Ss": lambda writer, text: writer._section(3, text),
    "Bl": MdocWriter._begin_list, "El": MdocWriter._end_list, "It": MdocWriter._item,
    "Bd": MdocWriter._begin_display, "Ed": MdocWriter._end_display, "Dl": MdocWriter._line_of_code,
    "D1": MdocWriter._indented_line, "Sm": MdocWriter._space_mode, "Rs": MdocWriter._new_paragraph,
    **dict.fromkeys(("Dd", "Os", "Bk", "Ek", "Re", "Bf", "Ef", "Rv", "Ex", "Db", "Tg", "Ud"), MdocWriter._ignored),
}  # fmt: skip

MDOC_NATIVE: Final = frozenset({*NATIVE, *_MACROS, *_BLOCKS})
