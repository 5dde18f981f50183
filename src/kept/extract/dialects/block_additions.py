"""Turns into plain Markdown what generators add to it: components, admonitions, tabs, directives, roles, wiki links.

    to_plain_markdown    the text of a page in any dialect -> CommonMark; a text without additions is returned unchanged

Understood are MDX (Docusaurus, Starlight, Mintlify, Nextra), MyST, Material for MkDocs, VitePress, Quarto, GitHub and
the tags of GitBook and Hugo. An admonition becomes a quotation under its title, a tab or a step its label in bold; of a
component that is not known, the children are kept. Nothing is executed. One pass, line by line.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple, TypeAlias

from kept.extract.dialects.components import (
    ADMONITIONS,
    MAX_TAG_LENGTH,
    is_block_component,
    read_attributes,
    write_descriptions,
    write_label,
)
from kept.extract.dialects.inline_additions import replace_inline_additions

MAX_BLOCKS: Final = 15
"""Open components and admonitions. Deeper ones are only removed."""

MAX_SCRIPT_LINES: Final = 400  # of one import or export

_ADDITION = re.compile(
    r"^[ \t]*(?:import[ {'\"*]|export[ {]|:{3,}|(?:!!!|\?\?\?\+?)[ ]|===[ !+]|</?[A-Z>]|(?:`{3,}|~{3,})[^\n`]*[{\[=]"
    r"|>[ ]*\[!|\{[%:/]|\{\{[<%]|\([\w.:-]+\)=)"
    r"|(?<!`)\{[a-z][\w:+-]*\}`|\[\[|\{/\*|\{:|<[A-Z][\w.]*[\s/>]|\{%",
    re.MULTILINE,
)
_FENCE = re.compile(r"([ \t>]*)(`{3,}|~{3,})[ \t]*([^`\n]*)$")
_IMPORT = re.compile(r"import\s+(?:['\"]|[\w*{][^'\"]*?\bfrom\s*['\"]|(?:[\w$]+\s*,\s*)?\{[^}'\"]*$)")
_EXPORT = re.compile(r"export\s+(?:const|let|var|default|function|async|class|\{|\*|type|interface)\b|export\s*\{")
_COLONS = re.compile(
    r"(:{3,})[ \t]*(?:\{([^}\n]{1,200})\}|([\w-]+))?[ \t]*(?:\[([^\]\n]{0,300})\])?[ \t]*([^\n]{0,300})$"
)
_MARKS = re.compile(r"(!!!|\?\?\?\+?|===[!+]?)[ \t]+(.*)$")
_ALERT = re.compile(r"((?:[ \t]*>)+[ \t]*)\[!(\w+)\][-+]?[ \t]*(.*)$")
_LABEL = re.compile(r"\(([\w.:/-]{1,200})\)=[ \t]*$")
_OPENING_TAG = re.compile(r"<([A-Z][\w.]*)(?=[\s/>]|$)")
_CLOSING_TAG = re.compile(r"</([A-Z][\w.]*)?\s*>")
_FRAGMENT = re.compile(r"<>|</>")
_SHORTCODE = re.compile(r"\{(?:%|\{[<%])-?\s*(/|end)?([a-zA-Z][\w-]*)((?:[^%>}]|%(?!\})|>(?!\}))*)(?:%|[>%]\})\}$")
_ATTRIBUTE_LINE = re.compile(r"\{:[^{}\n]*\}$")
_TITLE = re.compile(r"\b(?:title|filename|file|caption|label|name)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_BRACKET_LABEL = re.compile(r"\[([^\]]+)\]")
_LANGUAGE = re.compile(r"[\w+#./-]+")
_OPTION = re.compile(r":([\w-]+):[ \t]*(.*)$")

_KINDS: Final = frozenset(
    {"admonition", "callout", "aside", "alert", "details", "dropdown", "block"}
)  # no title of their own
_CODE_DIRECTIVES: Final = frozenset({"code", "code-block", "code-cell", "sourcecode", "parsed-literal",
                                     "literalinclude", "prompt", "ipython", "doctest", "testcode"})  # fmt: skip
_HIDDEN_DIRECTIVES: Final = frozenset(
    {"contents", "index", "image", "meta", "tableofcontents", "bibliography", "highlight"}
)
_Closer: TypeAlias = Literal["tag", "colons", "indent", "fence", "shortcode"]


_SHOWN: Final = frozenset({
    "tab-set", "tab-item", "tab", "tabs", "grid", "grid-item", "grid-item-card", "card", "figure", "list-table",
    "table", "only",
    "epigraph", "sidebar", "topic", "rubric", "glossary", "margin", "exercise", "solution", "proof",
    "div",
    "container", "button-ref", "button-link", "card-carousel", "details", "dropdown",
})  # fmt: skip
_SHORTCODES_WITH_END: Final = frozenset(
    {"endhint", "endtabs", "endtab", "endcolumns", "endcolumn", "endstep", "endstepper"}
)


class _OpenBlock:
    __slots__ = ("closer", "is_quote", "margin", "name", "size", "strip")

    def __init__(self, closer: _Closer, name: str, *, margin: int = 0, is_quote: bool = False, size: int = 0) -> None:
        self.closer = closer
        self.name = name
        self.size = size  # of the fence
        self.margin = margin  # columns before the line that opened it
        self.is_quote = is_quote
        self.strip: int | None = 4 if closer == "indent" else None if closer == "tag" else 0  # of each line inside


class _Tag(NamedTuple):
    name: str
    attributes: dict[str, str]
    is_closed: bool
    source: str  # of its attributes
    rest: str  # of its last line
    lines: int


def to_plain_markdown(text: str) -> str:
    return "\n".join(_DialectReader(text).read()) if _ADDITION.search(text) else text


class _DialectReader:
    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._closed_tags = set(re.findall(r"</([A-Z][\w.]*)\s*>", text))
        self._blocks: list[_OpenBlock] = []
        self._output: list[str] = []
        self._fence = ""  # the mark of the open code block
        self._at = 0
        self._tag_budget = 2 * len(text) + 100_000  # characters of tags that are read; ends those that never close

    def read(self) -> list[str]:
        lines = self._lines
        while self._at < len(lines):
            line = self._inside_blocks(lines[self._at])
            self._at += 1
            if self._fence:
                self._code_line(line)
            else:
                self._line(line)
        return self._output

    def _inside_blocks(self, line: str) -> str:
        """Return a line without the indentation of the blocks that it is in, and end those that it is not in."""
        for index, block in enumerate(self._blocks):
            indent = _indent(line)
            is_blank = not line.strip()
            if block.closer == "indent":
                if not is_blank and indent < block.margin + 4:
                    if self._fence:  # a code block that nothing closed
                        self._emit(self._fence)
                        self._fence = ""
                    del self._blocks[index:]
                    self._separate()
                    return line
            elif block.strip is None and not is_blank and not line.lstrip().startswith("</"):
                block.strip = max(0, indent - block.margin)
            if block.strip:
                margin = line[: block.margin] if not line[: block.margin].strip() else ""
                rest = line[len(margin) :]
                line = margin + rest[min(block.strip, _indent(rest)) :]
        return line

    # Output

    def _emit(self, line: str) -> None:
        line = self._quoted(line)
        if line or self._fence or not self._output or self._output[-1]:
            self._output.append(line)

    def _quoted(self, line: str) -> str:
        for block in reversed(self._blocks):
            if block.is_quote:
                margin = min(block.margin, _indent(line)) if line.strip() else 0
                line = f"{' ' * block.margin if not line.strip() else line[:margin]}> {line[margin:]}".rstrip()
        return line

    def _separate(self) -> None:
        if self._output and self._output[-1] != (blank := self._quoted("")):
            self._output.append(blank)

    def _paragraph(self, line: str) -> None:
        self._separate()
        self._emit(line)
        self._emit("")

    # Lines

    def _code_line(self, line: str) -> None:
        mark = line.strip(" \t>")
        if mark.startswith(self._fence) and not mark.strip(self._fence[0]):
            self._emit(line)
            self._fence = ""
        else:
            self._emit(line)

    def _line(self, line: str) -> None:
        text = line.strip()
        if not text:
            self._emit("")
            return
        margin = _indent(line)
        first = text[0]
        if ((first in "`~>" and "`" in text) or "~~~" in text) and (fence := _FENCE.match(line)):
            self._open_fence(fence, margin)
        elif first == ":" and text.startswith(":::") and (colons := _COLONS.match(text)):
            self._colons(colons, margin)
        elif first in "!?=" and (marks := _MARKS.match(text)):
            self._indented_block(marks, margin)
        elif first == "<" and self._tag_line(line, margin):
            return
        elif first in "ie" and not margin and self._is_script(text):
            self._skip_script(text)
        elif first == "{" and (_ATTRIBUTE_LINE.match(text) or (text.startswith("{/*") and text.endswith("*/}"))):
            return
        elif first == "{" and (shortcode := _SHORTCODE.match(text)):
            self._shortcode(shortcode, margin)
        elif first == "{" and text.startswith("{/*") and "*/" not in text:
            self._skip_comment()
        elif first == "(" and (label := _LABEL.match(text)):
            self._emit(f'{line[:margin]}<a id="{label[1]}"></a>')
        elif first == ">" and (alert := _ALERT.match(line)):
            self._emit(f"{alert[1]}**{alert[3].strip() or alert[2].capitalize()}**")
            self._emit(alert[1].rstrip())
        else:
            self._emit(replace_inline_additions(line, self._closed_tags))

    def _is_script(self, text: str) -> bool:
        return bool(_IMPORT.match(text) or _EXPORT.match(text))

    def _skip_script(self, text: str) -> None:
        """Skip an import or export: up to the blank line after its brackets are closed."""
        depth = 0
        end = min(len(self._lines), self._at + MAX_SCRIPT_LINES)
        start = self._at
        self._at -= 1
        while self._at < end:
            line = self._lines[self._at]
            if depth <= 0 and not line.strip():
                return
            if depth <= 0 and self._at >= start and not self._is_script(line) and line[:1] not in " \t})]|&?:.":
                return
            depth += sum(map(line.count, "{[(")) - sum(map(line.count, "}])"))
            self._at += 1
        if depth > 0:  # not a script after all, or a broken one
            self._at = start

    def _skip_comment(self) -> None:
        end = min(len(self._lines), self._at + MAX_SCRIPT_LINES)
        for at in range(self._at, end):
            if "*/" in self._lines[at]:
                self._at = at + 1
                return

    # Fences: code with a label, directives of MyST

    def _open_fence(self, fence: re.Match[str], margin: int) -> None:
        before, mark, info = fence[1], fence[2], fence[3].strip()
        if not info and self._close("fence", "", len(mark)):
            return
        if info.startswith("{"):
            inside, _, argument = info[1:].partition("}")
            if self._directive(inside.strip(), argument.strip(), mark, margin):
                return
            info = self._language_in_braces(inside, argument)
        label = ""
        if title := _TITLE.search(info):
            label = title[1] or title[2] or ""
        elif bracket := _BRACKET_LABEL.search(info):
            label = bracket[1]
        language = _LANGUAGE.match(info)
        if label:
            self._separate()
            self._emit(f"{before}**{label}**")
            self._emit("")
        self._emit(f"{before}{mark}{language[0] if language else ''}")
        self._fence = mark

    def _language_in_braces(self, inside: str, argument: str) -> str:
        """Return the language of ```{.python .numberLines} and ```{r, echo=FALSE}."""
        name = inside.lower()
        if name in _CODE_DIRECTIVES:
            self._skip_options()
            return argument.strip()
        word = re.match(r"[.=]?([\w+#-]+)", inside.strip())
        self._skip_options()
        return word[1] if word else ""

    def _skip_options(self) -> dict[str, str]:
        """Skip the options at the beginning of a directive and return them."""
        options: dict[str, str] = {}
        lines = self._lines
        if self._at < len(lines) and lines[self._at].strip() == "---":
            end = min(len(lines), self._at + 40)
            for at in range(self._at + 1, end):
                if lines[at].strip() == "---":
                    self._at = at + 1
                    return options
        while self._at < len(lines) and (option := _OPTION.match(lines[self._at].strip())):
            options[option[1]] = option[2].strip()
            self._at += 1
        return options

    def _directive(self, name: str, argument: str, mark: str, margin: int) -> bool:
        """Begin a directive of MyST; False for one whose body is code."""
        kind = name.lower()
        if kind in _CODE_DIRECTIVES or not re.fullmatch(r"[a-z][\w:+-]*", kind):
            return False
        if kind in _HIDDEN_DIRECTIVES:
            self._skip_to_fence(mark)
            return True
        if kind == "include":
            self._skip_to_fence(mark)
            self._paragraph(f"(Included: {argument})")
            return True
        if kind == "toctree":
            self._table_of_contents(mark)
            return True
        if kind in ("math", "mermaid", "eval-rst") or not (kind in ADMONITIONS or ":" in kind or kind in _SHOWN):
            return False
        options = self._skip_options()
        if ":" in kind:  # the description of an object, as {py:function}
            self._paragraph(f"**{argument}**")
            argument = ""
        self._open("fence", kind, argument, options, margin, size=len(mark))
        return True

    def _skip_to_fence(self, mark: str) -> None:
        while self._at < len(self._lines):
            line = self._lines[self._at].strip()
            self._at += 1
            if line.startswith(mark) and not line.strip(mark[0]):
                return

    def _table_of_contents(self, mark: str) -> None:
        self._skip_options()
        start = self._at
        self._skip_to_fence(mark)
        self._separate()
        for line in self._lines[start : self._at - 1]:
            entry = line.strip()
            named = re.fullmatch(r"(.+?)\s*<([^<>]+)>", entry)
            title, target = (named[1], named[2]) if named else (entry, entry)
            if not target or target.startswith(("#", ":")) or "*" in target:
                continue
            suffix = "" if "://" in target or re.search(r"\.\w{2,8}$", target) else ".md"
            self._emit(f"- [{title}]({target}{suffix})")
        self._emit("")

    # Blocks

    def _open(
        self, closer: _Closer, name: str, title: str, attributes: dict[str, str], margin: int, *, size: int = 0
    ) -> None:
        """Begin a component, an admonition or a directive: write its title, and remember how it ends."""
        kind = name.lower().removeprefix("callout.")
        title = (title or attributes.get("title") or attributes.get("header") or "").strip()
        is_quote = kind in ADMONITIONS or kind in ("admonition",)
        if is_quote and not title:
            given = (
                attributes.get("type") or attributes.get("style") or attributes.get("kind") or attributes.get("intent")
            )
            title = (given or ("" if kind in _KINDS else kind.removeprefix("callout-"))).capitalize()
        block = _OpenBlock(
            closer, name, margin=margin, is_quote=is_quote and kind not in ("details", "dropdown"), size=size
        )
        self._separate()
        if is_quote:
            if len(self._blocks) < MAX_BLOCKS:
                self._blocks.append(block)
            if title:
                self._emit(f"{' ' * margin}**{title}**")
                self._emit("")
            return
        if line := write_label(kind, title, attributes):
            self._emit(" " * margin + line)
            self._emit("")
        if len(self._blocks) < MAX_BLOCKS:
            self._blocks.append(block)

    def _close(self, closer: _Closer, name: str, size: int = 0) -> bool:
        """End the innermost block of this kind and name. Without a name, that of this fence."""
        for index in range(len(self._blocks) - 1, -1, -1):
            block = self._blocks[index]
            if block.closer == closer and (block.name == name if name else block.size <= size):
                del self._blocks[index:]
                self._separate()
                return True
        return False

    def _colons(self, colons: re.Match[str], margin: int) -> None:
        mark, braces, word = colons[1], colons[2], colons[3]
        title = (colons[4] or colons[5] or "").strip()
        if not (braces or word):
            if not self._close("colons", "", len(mark)):
                self._emit(f"{' ' * margin}{colons[0]}" if title else "")
            return
        name = (braces or word).strip().lstrip(".#").split(" ")[0].strip(",")
        attributes = dict(self._skip_options()) if braces else {}
        if braces and (found := _TITLE.search(braces)):
            title = found[1] or found[2] or title
        if title.startswith("{"):  # of classes
            title = ""
        if name in ("code-group", "tabs", "tab-set", "columns", "grid"):
            title = ""
        if name in _HIDDEN_DIRECTIVES:
            title = ""
        self._open("colons", name, title, attributes, margin, size=len(mark))

    def _indented_block(self, marks: re.Match[str], margin: int) -> None:
        quoted = re.search(r"\"((?:[^\"\\]|\\.)*)\"", marks[2])
        title = quoted[1].replace('\\"', '"') if quoted else ""
        if marks[1][0] == "=":
            if quoted:
                self._open("indent", "tab", title, {}, margin)
            else:
                self._emit(f"{' ' * margin}{marks[0]}")
        else:
            words = marks[2].split()
            kind = words[0].strip('"').lower() if words and not words[0].startswith('"') else "note"
            self._open("indent", kind if kind in ADMONITIONS else "admonition", title or kind.capitalize(), {}, margin)

    def _shortcode(self, match: re.Match[str], margin: int) -> None:
        ends, name, rest = match[1], match[2].lower(), match[3]
        if ends:
            self._close("shortcode", name)
            return
        attributes = read_attributes(rest.rstrip("-/ "))
        if name in (
            "include",
            "ref",
            "relref",
            "figure",
            "img",
            "raw",
            "comment",
            "toc",
            "embed",
            "highlight",
            "feature-state",
        ):
            return
        if (
            f"end{name}" in _SHORTCODES_WITH_END
            or name in ADMONITIONS
            or name in ("tabs", "tab", "hint", "stepper", "step")
        ):
            self._open("shortcode", name, "", attributes, margin)

    # Components

    def _tag_line(self, line: str, margin: int) -> bool:
        """Read the components at the beginning of a line. Returns False if there is none."""
        text = line.strip()
        if closing := _CLOSING_TAG.match(text):
            if closing[1]:
                self._close("tag", closing[1])
            self._rest_of_line(text[closing.end() :], margin)
            return True
        if text.startswith("<>"):
            self._rest_of_line(text[2:], margin)
            return True
        opening = _OPENING_TAG.match(text)
        if not opening:
            return False
        tag = self._read_tag(text)
        if tag is None or not (tag.is_closed or tag.name in self._closed_tags):
            return False
        self._at += tag.lines
        if tag.is_closed:
            title = tag.attributes.get("title", "")
            if label := write_label(tag.name.lower(), title, tag.attributes):
                self._paragraph(" " * margin + label)
            for entry in write_descriptions(tag.source):
                self._paragraph(" " * margin + entry)
            self._rest_of_line(tag.rest, margin)
            return True
        end = tag.rest.find(f"</{tag.name}")
        if end >= 0 and not is_block_component(tag.name):
            self._emit(replace_inline_additions(line, self._closed_tags).rstrip())
            return True
        self._open("tag", tag.name, "", tag.attributes, margin)
        if tag.rest.strip():
            if end >= 0:
                self._paragraph(" " * margin + replace_inline_additions(tag.rest[:end].strip(), self._closed_tags))
                self._rest_of_line(tag.rest[end:], margin)
            else:
                self._rest_of_line(tag.rest, margin)
        return True

    def _rest_of_line(self, rest: str, margin: int) -> None:
        if rest.strip():
            self._line(" " * margin + rest.strip())

    def _read_tag(self, text: str) -> _Tag | None:
        """Read a tag that begins here and may go on for some lines; None if it does not end."""
        opening = _OPENING_TAG.match(text)
        assert opening is not None, "the caller has looked"
        source, lines, at = text, 0, opening.end()
        depth, quote = 0, ""
        while True:
            while at < len(source):
                character = source[at]
                at += 1
                if quote:
                    quote = "" if character == quote else quote
                elif character in "\"'`" and (depth or source[at - 2] in "={"):
                    quote = character
                elif character == "{":
                    depth += 1
                elif character == "}":
                    depth -= 1
                elif character == ">" and depth <= 0 and source[at - 2] != "=":
                    inside = source[opening.end() : at - 1]
                    is_closed = inside.endswith("/")
                    return _Tag(
                        opening[1], read_attributes(inside.removesuffix("/")), is_closed, inside, source[at:], lines
                    )
            lines += 1
            if self._tag_budget < 0 or self._at + lines > len(self._lines) or at > MAX_TAG_LENGTH:
                return None
            pieces = [source, self._lines[self._at + lines - 1]]
            self._tag_budget -= len(pieces[1]) + 1
            source = "\n".join(pieces)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
