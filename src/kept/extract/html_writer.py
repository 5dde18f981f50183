"""Writes a piece of HTML as Markdown, in one walk over its tags, and notes where its sections begin.

    Writer.write    well-formed HTML, as a parser writes it -> its parts: one before any heading, then one a heading

The walk takes one tag after the other and never looks back, so it takes time in proportion to the page, however that is
nested. Every tag that is opened puts on a stack what is to be done when it is closed. Words gather in a paragraph;
the paragraph is written when a block begins or ends, behind the prefix of all the lists and quotations around it.

A heading ends whatever lists and tables are open around it: they were there to arrange the page. A name that can be
linked to (the signature of a function, a term with an id) is a heading too: it is what people search for. Words that
follow its description belong to the section around it again, so they continue that section as a part of their own.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from textwrap import dedent
from typing import ClassVar, TypeAlias

from kept.extract.html_rules import DROPPED_IDS, IDS_OF_NOTHING, NAVIGATION, SILENT, Role, language, role_of
from kept.extract.html_tables import Table
from kept.extract.html_words import code_span, fenced, link_target, paragraph_start, unescaped, written
from kept.extract.sections import LONGEST_HEADING

DEEPEST = 30
"""Lists in lists, and tables in tables; what is deeper is written without them, as no person would follow it."""

Token: TypeAlias = tuple[str, str, str]  # tag name (or /name), attributes, the words behind it
Closer: TypeAlias = Callable[[], None] | None

_TOKENS = re.compile(r'<(?:(/?[a-zA-Z][^\s/>]*+)([^>"]*+(?:"[^"]*+"[^>"]*+)*+)|!--(?s:.*?)--)>([^<]*+)')
_VOID = frozenset({
    "area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "img", "input", "keygen",
    "link", "meta", "param", "source", "track", "wbr",
})  # fmt: skip
_DESCRIBED = frozenset({
    "py", "c", "cpp", "js", "std", "rst", "class", "function", "method", "attribute", "data", "exception",
    "module", "describe", "option", "cmdoption", "envvar",
})  # fmt: skip
_BREAK = "\0"  # a line break inside a paragraph: no page that gets here has a NUL in it
_MARKS = frozenset({"", "¶", "#", "§", "🔗", "link", "Link", "Anchor", "anchor", "permalink", "Permalink"})
_TAB_ROLES = (('role="tabpanel"', Role.PANEL), ('role="tablist"', Role.TABS))
_LOOKS_LIKE_MATH = re.compile(r"^\\[(\[](.*)\\[)\]]$", re.DOTALL)
_ATTRIBUTE = re.compile(r' ([a-zA-Z:-]+)="([^"]*)"')


@dataclass(slots=True)
class Part:
    """A heading and what stands under it, as Markdown, the heading's own line included."""

    heading: str = ""
    level: int = 0
    anchor: str | None = None
    text: str = ""
    continues: bool = False  # the section of that heading, taken up again
    start: int = 0


@dataclass(slots=True, eq=False)
class _Frame:
    """Something around paragraphs that puts a prefix before their lines: an item of a list, a quotation."""

    first: str  # before the very first line
    rest: str  # before all others
    list: _List | None = None
    used: bool = False
    soft: bool = False  # a <blockquote>: often there only to indent code, and then it is not one
    blocks: int = 0


@dataclass(slots=True, eq=False)
class _List:
    ordered: bool
    number: int
    around: _Frame | None
    arranges: bool = False
    items: int = 0
    last: _Frame | None = None


@dataclass(slots=True, eq=False)
class _Definitions:
    kind: str
    nested: bool
    owner: Part
    depth: int
    item: _Frame | None = None
    named: bool = False  # its terms are headings


@dataclass(slots=True)
class _Heading:
    level: int
    anchor: str | None
    inside: str | None = None
    permalink: str | None = None
    code: bool = False
    words: list[str] = field(default_factory=list)


def _leave_out() -> None:
    """Stands, among what is to be done at the end of an element, for: nothing that is in it is said."""


def _done() -> None:
    """Likewise for: all of it was taken already, up to its end."""


def _attribute(attributes: str, name: str) -> str | None:
    start = attributes.find(f' {name}="')
    if start < 0:
        return None
    start += len(name) + 3
    return unescaped(attributes[start : attributes.find('"', start)])


def _is_tight(item: _Frame) -> bool:
    """Whether an item of a list stands right below what is before it, without a blank line."""
    around = item.list
    if around is None:
        return False
    if around.last is not None:
        return around.last.blocks <= 1
    return around.around is not None and around.around.list is not None and around.around.blocks == 1


class Writer:
    """One page being written. Made for one call of write()."""

    def __init__(self) -> None:
        self._out: list[str] = []  # what is written: blocks and what is between them
        self._words: list[str] = []  # the paragraph that is being gathered
        self._spans: list[tuple[str, int, str]] = []  # what is open in it: kind, where it begins, target
        self._frames: list[_Frame] = []
        self._lists: list[_List] = []
        self._tables: list[Table] = []
        self._definitions: list[_Definitions] = []
        self._parts = [Part()]
        self._section = self._parts[0]  # the part that words belong to now
        self._resumes = False  # they did not belong to it a moment ago
        self._heading: _Heading | None = None
        self._id: str | None = None  # the last one that no words have followed
        self._code = 0  # how many <code> are open
        self._language = ""
        self._in_member = False  # of Doxygen's
        self._in_group = False  # of VitePress's
        self._labels: deque[str] = deque()  # of the panels to come, and of the code blocks to come
        self._code_labels: deque[str] = deque()
        self._tokens: Iterator[Token] = iter(())
        self._behind = ""  # the words behind the tag at hand

    def write(self, html: str) -> list[Part]:
        """The parts of the page in its order. The first has no heading, and often no words."""
        tokens = self._tokens = iter(_TOKENS.findall(html))
        waiting: list[Closer] = []
        openers, words = self._OPENERS, self._words
        for name, attributes, text in tokens:
            if name[:1] == "/":
                close = waiting.pop() if waiting else None
                if close is not None:
                    close()
            elif name:
                self._behind = text
                opener = openers.get(name)
                if opener is not None:
                    close = opener(self, name, attributes)
                elif attributes and name not in _VOID:
                    close = self._any(name, attributes)
                else:
                    close = None
                if close is _leave_out:
                    text = self._skip() if name not in _VOID else text
                elif close is _done:
                    text = self._behind
                elif name not in _VOID:
                    waiting.append(close)
            if text:
                if text.isspace() and self._heading is None:
                    if words:
                        words.append(" ")
                else:
                    self._say(text)
        while waiting:
            close = waiting.pop()
            if close is not None:
                close()
        self._flush()
        ends = [part.start for part in self._parts[1:]] + [len(self._out)]
        for part, end in zip(self._parts, ends, strict=True):
            part.text = "".join(self._out[part.start : end]).strip("\n")
        return self._parts

    # ── Words ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _say(self, text: str) -> None:
        if text.isspace():
            if self._words:
                self._words.append(" ")
                if self._heading is not None:
                    self._heading.words.append(" ")
            return
        if "&" in text:
            text = unescaped(text)
        if "\u200b" in text:  # a place where a line may break, and no word
            text = text.replace("\u200b", "")
        if self._heading is not None:
            self._heading.words.append(text)
        self._words.append(text if self._code else written(text))

    def _flush(self, mark: str = "") -> None:
        """Writes the paragraph that has been gathered, if there is one."""
        if not self._words:
            return
        text = "".join(self._words)
        self._words.clear()
        self._spans.clear()
        text = " ".join(text.split())
        if _BREAK in text:
            for piece in re.split(r"\0(?: ?\0)+", text):
                lines = [line for line in (line.strip() for line in piece.split(_BREAK)) if line]
                if lines:
                    self._put(mark + "\\\n".join(lines) + mark)
        elif text:
            self._put(f"{mark}{text.replace(mark, '')}{mark}" if mark else paragraph_start(text))

    def _put(self, block: str) -> None:
        """Writes a block behind the prefix of what is around it."""
        self._id = None
        if self._resumes:
            self._resume()
        out = self._out
        if not self._frames:
            if out:
                out.append("\n\n")
            out.append(block)
            return
        first, rest, between = "", "", ""
        tight = new = False
        for frame in self._frames:
            if frame.used:
                first += frame.rest
                between = first
            else:
                if not new:
                    tight, new = _is_tight(frame), True
                first += frame.first
                frame.used = True
                if frame.list is not None:
                    frame.list.items += 1
                    frame.list.last = frame
            rest += frame.rest
        self._frames[-1].blocks += 1
        if out:
            out.append("\n" if tight else f"\n{between.rstrip()}\n")
        if "\n" in block:
            block = block.replace("\n", f"\n{rest}")
            if rest and not rest.isspace():
                block = block.replace(f"\n{rest}\n", f"\n{rest.rstrip()}\n")
            else:
                block = re.sub(r"\n +(?=\n)", "\n", block)
        out.append(first + block)

    def _resume(self) -> None:
        self._resumes = False
        around, last = self._section, self._parts[-1]
        if self._tables:
            return
        if last.continues and (last.heading, last.level, last.anchor) == (around.heading, around.level, around.anchor):
            self._section = last
        elif around is not last:
            part = Part(around.heading, around.level, around.anchor, continues=True, start=len(self._out))
            self._parts.append(part)
            self._section = part

    def _space(self) -> None:
        if self._words:
            self._words.append(" ")

    # ── What is left out ─────────────────────────────────────────────────────────────────────────────────────────────

    def _skip(self) -> str:
        """Goes to the end of the element that was just opened; the words behind it."""
        depth = 1
        for name, _, text in self._tokens:
            if name[:1] == "/":
                depth -= 1
                if not depth:
                    return text
            elif name and name not in _VOID:
                depth += 1
        return ""

    def _drop(self, name: str, attributes: str) -> Closer:
        self._space()
        return _leave_out

    # ── Elements of no particular kind: what their classes say ───────────────────────────────────────────────────────

    def _any(self, name: str, attributes: str) -> Closer:
        role = self._role(attributes)
        if role is None:
            return None
        if role is Role.DROP or role is Role.PERMALINK:
            return _leave_out
        if role is Role.MATH:
            return self._open_math("$")
        if role is Role.TITLE and "filename" in attributes:
            return self._line()
        return None

    def _role(self, attributes: str, *, by_id: bool = True) -> Role | None:
        """What the attributes say the element is. Its id is remembered for the heading that may follow.

        The id of a heading, or of its section, is made of its words: one called "Footer" is no footer.
        """
        role = None
        start = attributes.find(' class="')
        if start >= 0:
            role = role_of(attributes[start + 8 : attributes.find('"', start + 8)])
            if role is Role.DROP:
                return role
        if ' id="' in attributes:
            self._note(_attribute(attributes, "id"))
            if by_id and self._id in DROPPED_IDS:
                self._id = None
                return Role.DROP
        if ' role="' in attributes and any(said in attributes for said in NAVIGATION):
            return Role.DROP
        if ' role="tab' in attributes:
            return next((tab for said, tab in _TAB_ROLES if said in attributes), role)
        if ' hidden=""' in attributes:
            return Role.DROP
        return role

    def _note(self, anchor: str | None) -> None:
        if anchor and anchor not in IDS_OF_NOTHING:
            if self._heading is not None:
                self._heading.inside = self._heading.inside or anchor
            elif not self._words:
                self._id = anchor

    def _block(self, name: str, attributes: str) -> Closer:
        in_link = bool(self._spans) and self._spans[-1][0] == "a" and name in ("div", "p")  # a card is one link
        if in_link or self._heading is not None:
            self._space()
            return _leave_out if attributes and self._role(attributes) is Role.DROP else self._space
        self._flush()
        if not attributes:
            return self._flush
        role = self._role(attributes, by_id=name != "section" and 'class="section' not in attributes)
        if role is None:
            if 'class="' in attributes and name == "div":
                if self._in_group and 'class="tabs"' in attributes:
                    return self._tab_labels(name, attributes)
                return self._around_code(attributes)
            return self._flush
        return self._ROLES[role](self, name, attributes)

    def _around_code(self, attributes: str) -> Closer:
        found = language(_attribute(attributes, "class") or "", attributes)
        if not found:
            return self._flush
        if self._code_labels:
            self._put(f"**{written(self._code_labels.popleft())}**")
        before, self._language = self._language, found

        def close() -> None:
            self._flush()
            self._language = before

        return close

    def _plain_block(self, name: str, attributes: str) -> Closer:
        return self._flush

    def _title_block(self, name: str, attributes: str) -> Closer:
        return self._line()

    def _heading_block(self, name: str, attributes: str) -> Closer:
        return self._open_heading(1, attributes)

    def _line(self, between: str = " ") -> Closer:
        """A line of its own, in bold."""
        self._flush()

        def close() -> None:
            self._words[:] = ["".join(self._words).strip(" \n\t" + _BREAK).replace(_BREAK, between)]
            if self._words and (text := "".join(self._words)).islower() and self._frames:
                self._words[:] = [text.lstrip()[:1].upper() + text.lstrip()[1:]]  # "note", as CSS would have shown it
            self._flush("**")

        return close

    def _math_block(self, name: str, attributes: str) -> Closer:
        return self._open_math("$$")

    def _open_math(self, mark: str) -> Closer:
        """Formulas as TeX has them, between dollars; nothing in them is escaped."""
        self._code += 1
        start = len(self._words)

        def close() -> None:
            self._code -= 1
            text = "".join(self._words[start:]).strip()
            match = _LOOKS_LIKE_MATH.match(text)
            self._words[start:] = [f"{mark}{match[1].strip()}{mark}" if match else text]
            if mark == "$$":
                self._flush()

        return close

    # ── Headings ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _open_heading(self, level: int, attributes: str, *, code: bool = False) -> Closer:
        before = self._id
        own = _attribute(attributes, "id")
        if self._heading is not None:  # a heading in a heading: one of them will do
            return None
        heading = self._heading = _Heading(level, own or before, code=code)
        if code:
            self._code += 1

        def close() -> None:
            self._heading = None
            if code:
                self._code -= 1
            self._write_heading(heading)

        return close

    def _h(self, name: str, attributes: str) -> Closer:
        self._flush()
        if attributes and self._role(attributes, by_id=False) is Role.DROP:
            return _leave_out
        if self._is_quoted():
            return self._line()
        return self._open_heading(int(name[1]), attributes)

    def _is_quoted(self) -> bool:
        return any(not frame.soft and frame.list is None for frame in self._frames)

    def _write_heading(self, heading: _Heading) -> None:
        words = " ".join("".join(heading.words).split())
        text = " ".join("".join(self._words).replace(_BREAK, " ").split())
        self._words.clear()
        self._spans.clear()
        if not words:
            return
        text = code_span(words) if heading.code else text
        self._arrange()
        self._resumes = False
        anchor = heading.permalink or heading.anchor or heading.inside
        part = Part(words[:LONGEST_HEADING], heading.level, anchor, start=len(self._out))
        self._parts.append(part)
        self._section = part
        self._put("#" * heading.level + " " + text)

    def _arrange(self) -> None:
        """The lists and tables around this place turn out to be there for the page's looks: they end here."""
        if self._tables:
            self._dissolve()
        for around in self._lists:
            around.arranges = True
        self._frames.clear()

    # ── Paragraph marks ──────────────────────────────────────────────────────────────────────────────────────────────

    def _inline(self, kind: str, target: str = "") -> Closer:
        if self._code or any(span[0] == kind for span in self._spans):
            return None
        self._spans.append((kind, len(self._words), target))
        return lambda: self._end(kind)

    def _end(self, kind: str) -> None:
        """Puts the marks around what was said since the span began, and none around blanks."""
        while self._spans:
            found, start, target = self._spans.pop()
            if found == kind:
                break
        else:
            return  # a block came between: the paragraph it began in is written already
        text = "".join(self._words[start:])
        core = text.strip()
        if not core:
            self._words[start:] = [" "] if text else []
            return
        before = " " if text[0].isspace() else ""
        behind = " " if text[-1].isspace() else ""
        self._words[start:] = [before, self._marked(kind, core, target), behind]

    def _marked(self, kind: str, core: str, target: str) -> str:
        if kind == "a":
            if self._heading is not None:
                if target.startswith("#") and core in _MARKS:
                    self._heading.permalink = target[1:]
                    del self._heading.words[-1:]
                    return ""
                return core
            return f"[{' '.join(core.replace(_BREAK, ' ').split())}]({link_target(target)})"
        if kind in ("^", "_"):
            return core if core[0] in "[(" else f"{kind}{core}"
        return f"{kind}{core.strip(_BREAK)}{kind}"

    def _em(self, name: str, attributes: str) -> Closer:
        if attributes and self._any(name, attributes) is _leave_out:
            return _leave_out
        return self._inline("*")

    def _strong(self, name: str, attributes: str) -> Closer:
        return self._inline("**") if self._heading is None else None

    def _sup(self, name: str, attributes: str) -> Closer:
        return self._inline("^" if name == "sup" else "_")

    def _a(self, name: str, attributes: str) -> Closer:
        if not attributes:
            return None
        href = _attribute(attributes, "href")
        role = self._role(attributes)
        if role is Role.PERMALINK and href:
            if self._heading is not None and href.startswith("#"):
                self._heading.permalink = href[1:]
            return _leave_out
        if role is Role.DROP or 'class="src' in attributes:  # rustdoc's links to its source
            return _leave_out
        if ' name="' in attributes:
            self._note(_attribute(attributes, "name"))
        if not href or self._code or href.startswith(("javascript:", "data:")):
            return None
        return self._inline("a", href)

    def _code_tag(self, name: str, attributes: str) -> Closer:
        if attributes:
            self._role(attributes)
        if self._code:
            return None
        self._code += 1
        start = len(self._words)
        return lambda: self._end_code(start)

    def _end_code(self, start: int) -> None:
        self._code -= 1
        text = "".join(self._words[start:]).replace(_BREAK, " ")
        if not text.strip():
            self._words[start:] = [" "] if text else []
            return
        before = self._words[start - 1] if start else ""
        core = " ".join(text.split())
        if before[-1:] == "`" and before[-2:] != "``" and "`" not in core:  # two spans that touch are one
            self._words[start - 1 :] = [f"{before[:-1]}{core}`"]
            return
        lead = " " if text[0].isspace() else ""
        behind = " " if text[-1].isspace() else ""
        self._words[start:] = [f"{lead}{code_span(core)}{behind}"]

    def _br(self, name: str, attributes: str) -> Closer:
        if self._words:
            self._words.append(" " if self._code else _BREAK)
            if self._heading is not None:
                self._heading.words.append(" ")
        return None

    def _hr(self, name: str, attributes: str) -> Closer:
        self._flush()
        return None

    def _img(self, name: str, attributes: str) -> Closer:
        found = dict(_ATTRIBUTE.findall(attributes))
        alt = " ".join(unescaped(found.get("alt", "")).split())
        source = unescaped(found.get("src", ""))
        if self._heading is not None or self._code or role_of(found.get("class", "")) is Role.DROP:
            return None
        if source.startswith("data:"):  # megabytes of picture are no words
            source = source.partition(",")[0].partition(";")[0]
        if alt or (source and not source.startswith("data:") and not self._spans):
            self._words.append(f"![{written(alt)}]({link_target(source)})")
        return None

    def _input(self, name: str, attributes: str) -> Closer:
        if 'type="checkbox"' in attributes and self._frames and self._frames[-1].list and not self._frames[-1].used:
            self._words.append("[x] " if ' checked=""' in attributes else "[ ] ")
        return None

    def _math(self, name: str, attributes: str) -> Closer:
        """MathML: as it was written, where the page still says that; else the words in it."""
        said, annotation, inside = [self._behind], [""], False
        depth, self._behind = 1, ""
        for tag, _, text in self._tokens:
            if tag[:1] == "/":
                depth -= 1
                inside = False
                if not depth:
                    self._behind = text
                    break
            elif tag and tag not in _VOID:
                depth += 1
                inside = tag == "annotation"
            (annotation if inside else said).append(text)
        written_as = _attribute(attributes, "alttext") or unescaped("".join(annotation)) or unescaped(" ".join(said))
        mark = "$$" if 'display="block"' in attributes else "$"
        if text := " ".join(written_as.split()):
            self._words.append(f"{mark}{text}{mark}")
            if self._heading is not None:
                self._heading.words.append(text)
        return _done

    # ── Code ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _pre(self, name: str, attributes: str) -> Closer:
        self._flush()
        classes = _attribute(attributes, "class") or ""
        if attributes and self._role(attributes) is Role.DROP:
            return _leave_out
        text, inner = self._verbatim()
        self._put_code(text, language(classes, attributes) or inner or self._language)
        return _done

    def _code_block(self, name: str, attributes: str) -> Closer:
        text, inner = self._verbatim()
        self._put_code(text, inner or self._language)
        return _done

    def _signature(self, name: str, attributes: str) -> Closer:
        text, _ = self._verbatim()
        lines = [" ".join(line.split()) for line in text.strip().split("\n")]
        # Boxes of Doxygen and TypeDoc are cut for their looks; javadoc breaks lines as people do.
        on_one_line = "memproto" in attributes or "tsd-" in attributes
        self._put_code((" " if on_one_line else "\n").join(filter(None, lines)), self._language)
        return _done

    def _verbatim(self) -> tuple[str, str]:
        """The text up to the end of the element that was just opened, as it stands, and the language it names."""
        said = [self._behind]
        found = ""
        depth, self._behind = 1, ""
        closes: list[bool] = []
        for tag, attributes, text in self._tokens:
            if tag[:1] == "/":
                depth -= 1
                if not depth:
                    self._behind = text
                    break
                if closes and closes.pop() and not said[-1].endswith("\n"):
                    said.append("\n")
                    text = text.removeprefix("\n")
            elif tag == "br":
                said.append("\n")
            elif tag and tag not in _VOID:
                role = None
                if 'class="' in attributes:
                    classes = _attribute(attributes, "class") or ""
                    role = role_of(classes)
                    if tag == "code" and not found:
                        found = language(classes, attributes)
                elif tag == "code" and not found and attributes:
                    found = language("", attributes)
                if role is Role.DROP or role is Role.PERMALINK or tag == "button":
                    said.append(self._skip())
                    continue
                depth += 1
                closes.append(tag in ("div", "tr", "p", "li"))
            said.append(text)
        return unescaped("".join(said)), found

    def _put_code(self, text: str, name: str) -> None:
        text = text.replace("\xa0", " ").strip("\n").rstrip()
        if text:
            self._soften()
            self._put(fenced(dedent(text) if text[0] == " " else text, name))

    def _soften(self) -> None:
        if self._frames and self._frames[-1].soft and not self._frames[-1].used:
            self._frames[-1].first = self._frames[-1].rest = ""

    # ── Lists and quotations ─────────────────────────────────────────────────────────────────────────────────────────

    def _list(self, name: str, attributes: str) -> Closer:
        self._flush()
        role = self._role(attributes) if attributes else None
        if role is Role.DROP:
            return _leave_out
        if role is Role.TABS:
            return self._tab_labels(name, attributes)
        self._soften()
        number = _attribute(attributes, "start") or "1"
        made = _List(
            ordered=name == "ol",
            number=int(number) if number.isdecimal() and len(number) < 10 else 1,
            around=self._frames[-1] if self._frames else None,
            arranges=role is Role.LAYOUT,
        )
        self._lists.append(made)

        def close() -> None:
            self._flush()
            if self._lists and self._lists[-1] is made:
                self._lists.pop()

        return close

    def _item(self, name: str, attributes: str) -> Closer:
        self._flush()
        if attributes:
            role = self._role(attributes)
            if role is Role.DROP:
                return _leave_out
            if role is Role.SIGNATURE:
                return self._signature(name, attributes)
        around = self._lists[-1] if self._lists else None
        if around is None or around.arranges:
            return self._flush
        mark = f"{around.number}. " if around.ordered else "- "
        around.number += 1
        frame = _Frame(mark, " " * len(mark), around)
        return self._framed(frame)

    def _framed(self, frame: _Frame) -> Closer:
        if len(self._frames) >= DEEPEST:
            return self._flush
        self._frames.append(frame)

        def close() -> None:
            self._flush()
            self._unframe(frame)

        return close

    def _unframe(self, frame: _Frame) -> None:
        if frame in self._frames:
            del self._frames[self._frames.index(frame) :]

    def _quote(self, name: str, attributes: str) -> Closer:
        return self._framed(_Frame("> ", "> "))

    def _blockquote(self, name: str, attributes: str) -> Closer:
        self._flush()
        if attributes and self._role(attributes) is Role.DROP:
            return _leave_out
        return self._framed(_Frame("> ", "> ", soft=True))

    def _details(self, name: str, attributes: str) -> Closer:
        self._flush()
        role = self._role(attributes) if attributes else None
        if role is Role.DROP:
            return _leave_out
        return self._quote(name, attributes) if role is Role.QUOTE else self._flush

    def _summary(self, name: str, attributes: str) -> Closer:
        if attributes and self._role(attributes) is Role.DROP:
            return _leave_out
        return self._line()

    # ── Definitions ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _dl(self, name: str, attributes: str) -> Closer:
        self._flush()
        classes = _attribute(attributes, "class") or ""
        role = self._role(attributes) if attributes else None
        if role is Role.DROP:
            return _leave_out
        quote = role is Role.QUOTE
        around = self._definitions[-1] if self._definitions else None
        made = _Definitions(
            kind=classes,
            nested=around is not None and not quote and (around.nested or not around.named),
            owner=self._section,
            depth=around.depth + 1 if around is not None else 1,
        )
        self._definitions.append(made)
        frame = _Frame("> ", "> ")
        if quote:
            self._frames.append(frame)

        def close() -> None:
            self._flush()
            self._end_term(made)
            if quote:
                self._unframe(frame)
            if self._definitions and self._definitions[-1] is made:
                self._definitions.pop()
            if made.named:
                self._section, self._resumes = made.owner, True

        return close

    def _dt(self, name: str, attributes: str) -> Closer:
        self._flush()
        around = self._definitions[-1] if self._definitions else None
        if around is None:
            return self._line()
        self._end_term(around)
        anchor = _attribute(attributes, "id")
        # A signature ends lists as a heading does. Other terms may be headings only where they do not break one up.
        free = not self._is_quoted() if "sig" in attributes else not self._frames and not around.nested
        if anchor and free and not self._tables:
            around.named = True
            code = "sig" in attributes or around.kind.split(" ")[0] in _DESCRIBED
            return self._open_heading(min(self._definitions[0].owner.level + around.depth, 6), attributes, code=code)
        if around.nested and len(self._frames) < DEEPEST:
            around.item = _Frame("- ", "  ", _List(False, 1, None))
            self._frames.append(around.item)
        if around.named:
            self._section, self._resumes = around.owner, True
        if "sig" in attributes:
            return self._whole_code()
        return self._line(", ")

    def _whole_code(self) -> Closer:
        self._code += 1

        def close() -> None:
            self._code -= 1
            text = " ".join("".join(self._words).split())
            self._words[:] = [code_span(text)] if text else []
            self._flush("**")

        return close

    def _end_term(self, around: _Definitions) -> None:
        if around.item is not None:
            self._unframe(around.item)
            around.item = None

    def _dd(self, name: str, attributes: str) -> Closer:
        self._flush()
        return self._flush

    # ── Tables ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _table(self, name: str, attributes: str) -> Closer:
        self._flush()
        role = self._role(attributes) if attributes else None
        if role is Role.DROP:
            return _leave_out
        in_quote = bool(self._frames) and self._frames[-1].list is None and not self._frames[-1].soft
        # Admonitions were laid out as a table of one row, a picture beside the words, long before there were others.
        arranges = role is Role.LAYOUT or (in_quote and not self._frames[-1].used) or len(self._tables) >= DEEPEST
        arranges = arranges or 'role="presentation"' in attributes
        means_it = 'class="params"' in attributes or 'class="fieldtable"' in attributes
        table = Table(out=self._out, frames=self._frames, arranges=arranges, means_it=means_it)
        if arranges:
            return self._flush
        self._tables.append(table)
        return lambda: self._end_table(table)

    def _open_table(self) -> Table | None:
        return self._tables[-1] if self._tables and not self._tables[-1].arranges else None

    def _grid(self, name: str, attributes: str) -> Closer:
        table = Table(out=self._out, frames=self._frames, grid=True)
        self._tables.append(table)
        return lambda: self._end_table(table)

    def _row(self, name: str, attributes: str) -> Closer:
        self._flush()
        role = self._role(attributes) if attributes else None
        if role is Role.DROP:
            return _leave_out
        if role is Role.MEMBER:
            return self._member_row(self._framed(_Frame("- ", "  ", self._member_list())))
        if role is Role.ABOUT:
            return self._member_row(self._about)
        table = self._open_table()
        if table is not None:
            table.next_row()
        return self._flush

    def _member_row(self, then: Closer) -> Closer:
        """A row of Doxygen's whose cells are one sentence."""
        self._in_member = True

        def close() -> None:
            self._in_member = False
            if then is not None:
                then()

        return close

    def _member_list(self) -> _List:
        if not self._lists or not self._lists[-1].arranges or self._lists[-1].number != -1:
            self._lists.append(_List(ordered=False, number=-1, around=None, arranges=True))
        return self._lists[-1]

    def _about(self) -> None:
        """What Doxygen says about the member in the row before."""
        text = " ".join("".join(self._words).replace(_BREAK, " ").split())
        self._words.clear()
        self._spans.clear()
        if text and self._out:
            self._out[-1] += f": {text}"

    def _cell(self, name: str, attributes: str) -> Closer:
        table = self._open_table()
        role = self._role(attributes) if attributes else None
        if table is None:
            if role is Role.DROP:
                return _leave_out
            if role is Role.TITLE:
                return self._line()
            if self._in_member:
                return self._space
            self._flush()
            return self._flush
        if role is Role.DROP:
            return _leave_out
        return self._captured(table, attributes, header=name == "th")

    def _captured(self, table: Table, attributes: str, *, header: bool) -> Closer:
        self._flush()
        self._out, self._frames = [], []

        def close() -> None:
            self._flush()
            if table.arranges:  # a heading came up in it
                return
            blocks = "".join(self._out)
            self._out, self._frames = table.out, table.frames
            table.add(blocks, attributes, header=header)

        return close

    def _caption(self, name: str, attributes: str) -> Closer:
        self._flush()
        table = self._open_table()
        if table is None:
            return self._line()

        def close() -> None:
            table.caption = " ".join("".join(self._words).replace(_BREAK, " ").split())
            self._words.clear()
            self._spans.clear()

        return close

    def _end_table(self, table: Table) -> None:
        self._flush()
        if table.arranges or not self._tables or self._tables[-1] is not table:
            return
        self._tables.pop()
        if table.caption:
            self._put(f"**{table.caption.replace('**', '')}**")
        if table.only_arranges():
            self._put_cells([cell for row in table.rows for cell in row if cell])
        elif table.rows:
            self._soften()
            self._put(table.written())

    def _put_cells(self, cells: list[str]) -> None:
        """The cells of a table that is none: a list, if they are short, as they are where columns save space."""
        if len(cells) > 2 and all("\n" not in cell and len(cell) < 200 for cell in cells):
            cells = ["\n".join(f"- {cell}" for cell in cells)]
        for cell in cells:
            self._put(cell)

    def _dissolve(self) -> None:
        """The tables around this place end here: what is in their cells becomes blocks one after the other."""
        tables, self._tables = self._tables, []
        outs = [table.out for table in tables[1:]] + [self._out]
        self._out, self._frames = tables[0].out, tables[0].frames
        for table, unfinished in zip(tables, outs, strict=True):
            table.arranges = True
            for cell in [*(cell for row in table.rows for cell in row), "".join(unfinished)]:
                if cell.strip():
                    self._put(cell.strip("\n"))

    def _div(self, name: str, attributes: str) -> Closer:
        """Most blocks; and the cells of a grid, which javadoc makes of boxes."""
        if self._tables and self._tables[-1].grid and 'class="' in attributes:
            classes = _attribute(attributes, "class") or ""
            if classes.startswith("col-") or "table-header" in classes:
                return self._grid_cell(self._tables[-1], classes, attributes)
            if classes == "caption":
                return self._caption(name, attributes)
        return self._block(name, attributes)

    def _grid_cell(self, table: Table, classes: str, attributes: str) -> Closer:
        self._role(attributes)
        if "col-first" in classes:
            table.next_row()
        return self._captured(table, "", header="table-header" in classes)

    # ── Tabs ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _tab_labels(self, name: str, attributes: str) -> Closer:
        """Remembers the labels, one for each panel that follows."""
        labels = self._code_labels if self._in_group else self._labels
        labels.clear()
        said = [self._behind]
        depth, self._behind = 1, ""
        for tag, _, text in self._tokens:
            if tag[:1] == "/":
                depth -= 1
                if tag in ("/label", "/li", "/button", "/a") and (label := " ".join("".join(said).split())):
                    labels.append(unescaped(label))
                    said.clear()
                if not depth:
                    self._behind = text
                    break
            elif tag and tag not in _VOID:
                depth += 1
            said.append(text)
        return _done

    def _group(self, name: str, attributes: str) -> Closer:
        self._in_group = True

        def close() -> None:
            self._flush()
            self._in_group = False
            self._code_labels.clear()

        return close

    def _panel(self, name: str, attributes: str) -> Closer:
        if self._labels:
            self._put(f"**{written(self._labels.popleft())}**")
        return self._flush

    def _label(self, name: str, attributes: str) -> Closer:
        role = self._role(attributes) if attributes else None
        if role is Role.TITLE:
            return self._line()
        return _leave_out if role is Role.DROP else None

    _ROLES: ClassVar[dict[Role, Callable[[Writer, str, str], Closer]]] = {
        Role.DROP: _drop,
        Role.PERMALINK: _plain_block,
        Role.QUOTE: _quote,
        Role.TITLE: _title_block,
        Role.HEADING: _heading_block,
        Role.CODE: _code_block,
        Role.SIGNATURE: _signature,
        Role.GRID: _grid,
        Role.LAYOUT: _plain_block,
        Role.MATH: _math_block,
        Role.TABS: _tab_labels,
        Role.PANEL: _panel,
        Role.GROUP: _group,
        Role.MEMBER: _plain_block,
        Role.ABOUT: _plain_block,
    }

    _OPENERS: ClassVar[dict[str, Callable[[Writer, str, str], Closer]]] = {
        **dict.fromkeys(("p", "section", "article", "aside", "header", "main", "figure", "address", "center", "body",
                         "fieldset", "form", "hgroup", "menu", "html", "dir", "figcaption"), _block),
        "div": _div,
        **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), _h),
        **dict.fromkeys(("em", "i", "cite", "dfn"), _em),
        **dict.fromkeys(("strong", "b"), _strong),
        **dict.fromkeys(("code", "tt", "kbd", "samp"), _code_tag),
        **dict.fromkeys(("sup", "sub"), _sup),
        **dict.fromkeys(SILENT, _drop),
        **dict.fromkeys(("ul", "ol"), _list),
        **dict.fromkeys(("td", "th"), _cell),
        "a": _a, "br": _br, "hr": _hr, "img": _img, "input": _input, "math": _math, "pre": _pre, "li": _item,
        "blockquote": _blockquote, "details": _details, "summary": _summary, "dl": _dl, "dt": _dt, "dd": _dd,
        "table": _table, "tr": _row, "caption": _caption, "label": _label,
    }  # fmt: skip
