"""Text inside a line of AsciiDoc as Markdown: formatting, links, cross references, macros, attributes.

InlineText    converts text; knows the attributes that the page has defined so far
"""

from __future__ import annotations

import re
from typing import Final

from kept.extract.html.markdown_text import code_span, escape_link_target, escape_markdown

MAX_VALUE_LENGTH = 2_000  # of an attribute, after the attributes in it are replaced
MAX_DEPTH = 4  # of formatting in formatting

_ATTRIBUTE = re.compile(r"(\\)?\{([\w][\w-]{0,60})(?::[^{}]{0,100})?\}")
_INTRINSIC: Final = {
    "nbsp": " ", "zwsp": "", "wj": "", "apos": "'", "quot": '"', "lsquo": "‘", "rsquo": "’", "ldquo": "“",
    "rdquo": "”", "deg": "°", "plus": "+", "brvbar": "|", "vbar": "|", "amp": "&", "lt": "<", "gt": ">", "startsb": "[",
    "endsb": "]", "caret": "^", "asterisk": "*", "tilde": "~", "backslash": "\\", "backtick": "`", "two-colons": "::",
    "two-semicolons": ";;", "empty": "", "sp": " ", "space": " ", "cpp": "C++", "pp": "++", "litdd": "--",
}  # fmt: skip

_TOKEN = re.compile(
    r"\\(?P<escaped>[*_`#^~+<\[{'\"]|\w{2,12}:)"
    r"|\+\+\+(?P<pass3>.{0,1000}?)\+\+\+"
    r"|pass:\w*\[(?P<pass>[^\]]{0,1000})\]"
    r"|``(?P<mono2>[^\n]{1,600}?)``(?!`)"
    r"|(?<![\w`])`(?P<mono>(?=\S)[^`]{1,600}(?<=\S))`(?![\w`])"
    r"|\+\+(?P<plus2>[^+\n]{1,400})\+\+"
    r"|(?<![\w+])\+(?P<plus>(?=\S)[^+\n]{1,400}(?<=\S))\+(?![\w+])"
    r"|(?P<macro>\b(?:link|xref|mailto|image|icon|kbd|btn|menu|footnote|footnoteref|indexterm2?|linkgit|gitlink|latexmath|"
    r"asciimath|stem|anchor|man|manpage|javadoc|command|option|class|code)):(?P<target>[^\s\[\]:][^\s\[\]]{0,1000})?"
    r"\[(?P<content>(?:[^\[\]\\]|\\.|\[[^\[\]]{0,200}\]){0,1000})\]"
    r"|(?P<url>(?<![\w\"])(?:https?|ftp|irc|mailto)://[^\s<>\[\]\"'`]{1,1500})(?:\[(?P<label>[^\]]{0,600})\])?"
    r"|<<(?P<ref>[^<>\n,]{1,300})(?:,(?P<reftext>[^<>]{0,400}))?>>"
    r"|\[\[(?P<anchor>[^\[\]\n]{1,200})\]\]"
    r"|\(\(\((?P<index>[^()]{1,200})\)\)\)|\(\((?P<index2>[^()]{1,200})\)\)"
    r"|(?:\[[^\[\]\n]{0,100}\])?##(?P<mark2>[^#\n]{1,400})##|(?:\[[^\[\]\n]{0,100}\])?(?<![\w&])#(?P<mark>(?=\S)[^#\n]{1,400}(?<=\S))#(?!\w)"
    r"|\*\*(?P<bold2>[^*\n]{1,600})\*\*|(?<![\w*])\*(?P<bold>(?=\S)[^*]{1,600}(?<=\S))\*(?![\w*])"
    r"|__(?P<em2>[^_\n]{1,600})__|(?<![\w_])_(?P<em>(?=\S)[^_]{1,600}(?<=\S))_(?![\w_])"
    r"|(?<![\w'\\`])'(?P<quoted>(?=\S)[^'\n]{1,300}(?<=\S))'(?![\w'])"
    r"|\^(?P<sup>\S[^\s^]{0,60})\^|(?<!~)~(?P<sub>[^\s~]{1,60})~(?!~)",
    re.DOTALL,
)
_HARD_BREAK = re.compile(r"[ \t]\+$", re.MULTILINE)
_SIMPLE = re.compile(r"[\\+`:<\[(#*_'^~{]")
_LINK_OPTIONS = re.compile(r",\s*(?:role|window|opts|id|title)=.*$|\^$", re.DOTALL)


class InlineText:
    def __init__(self) -> None:
        self.attributes: dict[str, str] = {}
        self.titles: dict[str, str] = {}  # of sections, by id
        self.hrefs: list[str] = []
        self.quotes_emphasize = True  # 'text', as in asciidoc.py

    def define(self, name: str, value: str) -> None:
        if len(self.attributes) < 10_000:
            self.attributes[name.lower()] = self.replace_attributes(value)[:MAX_VALUE_LENGTH]

    def replace_attributes(self, text: str) -> str:
        if "{" not in text:
            return text
        return _ATTRIBUTE.sub(self._attribute, text)

    def _attribute(self, match: re.Match[str]) -> str:
        if match[1]:
            return match[0][1:]
        name = match[2].lower()
        return self.attributes.get(name, _INTRINSIC.get(name, match[0]))

    def to_markdown(self, text: str) -> str:
        """Return a paragraph as Markdown, on one line but for hard line breaks."""
        text = self.replace_attributes(text)
        lines = _HARD_BREAK.sub("\0", text) if " +" in text else text
        markdown = self._convert(lines, 0)
        pieces = [" ".join(piece.split()) for piece in markdown.split("\0")]
        return "\\\n".join(filter(None, pieces))

    def to_text(self, text: str) -> str:
        """Return a heading or a term without any markup."""
        return " ".join(_plain(self._convert(self.replace_attributes(text), 0)).split())

    def _convert(self, text: str, depth: int) -> str:
        if not _SIMPLE.search(text):
            return _prose(text)
        pieces: list[str] = []
        at = 0
        for match in _TOKEN.finditer(text):
            pieces.append(_prose(text[at : match.start()]))
            pieces.append(self._token(match, depth))
            at = match.end()
        pieces.append(_prose(text[at:]))
        return "".join(pieces)

    def _token(self, match: re.Match[str], depth: int) -> str:
        kind = match.lastgroup
        if match["macro"]:
            return self._macro(match["macro"], match["target"] or "", match["content"] or "", depth)
        if match["url"]:
            return self._url(match["url"], match["label"], depth)
        if match["ref"]:
            return self._reference(match["ref"].strip(), (match["reftext"] or "").strip(), depth)
        value = match[kind] if kind else ""
        match kind:
            case "escaped":
                return escape_markdown(value)
            case "mono" | "mono2" | "plus" | "plus2":
                inner = value[1:-1] if len(value) > 2 and value[0] == value[-1] == "+" else value
                return (
                    code_span(" ".join(_plain(inner).split()) if "\\" not in inner else inner)
                    if inner.strip()
                    else value
                )
            case "pass" | "pass3" | "index2":
                return escape_markdown(value)
            case "anchor" | "index":
                return ""
            case "bold" | "bold2":
                return f"**{self._inner(value, depth)}**"
            case "em" | "em2":
                return f"*{self._inner(value, depth)}*"
            case "quoted":
                return f"*{self._inner(value, depth)}*" if self.quotes_emphasize else f"'{self._inner(value, depth)}'"
            case "sup":
                return f"^{escape_markdown(value)}"
        return self._inner(value, depth)

    def _inner(self, text: str, depth: int) -> str:
        return self._convert(text, depth + 1) if depth < MAX_DEPTH else escape_markdown(text)

    def _url(self, url: str, label: str | None, depth: int) -> str:
        after = ""
        if label is None:
            stripped = url.rstrip(".,;:!?)")
            url, after = stripped, url[len(stripped) :]
        self.hrefs.append(url)
        label = _LINK_OPTIONS.sub("", label or "").strip('"')
        return (f"[{self._inner(label, depth)}]({escape_link_target(url)})" if label else url) + escape_markdown(after)

    def _reference(self, target: str, label: str, depth: int) -> str:
        if ".adoc" in target or ".asciidoc" in target:
            return self._link(target, label or target, depth)
        anchor = target.removeprefix("#")
        label = label or self.titles.get(anchor) or anchor.strip("_").replace("_", " ")
        return f"[{self._inner(label, depth)}](#{anchor})" if " " not in anchor else self._inner(label, depth)

    def _link(self, href: str, label: str, depth: int) -> str:
        label = _LINK_OPTIONS.sub("", label).strip('"') or href
        self.hrefs.append(href)
        return f"[{self._inner(label, depth)}]({escape_link_target(href)})"

    def _macro(self, name: str, target: str, content: str, depth: int) -> str:
        content = content.replace("\\]", "]")
        match name:
            case "linkgit" | "gitlink" | "man" | "manpage":
                return f"{escape_markdown(target)}({content})"
            case "link":
                return self._link(target, content or target, depth)
            case "mailto":
                return self._link(f"mailto:{target}", content.partition(",")[0] or target, depth)
            case "xref":
                return self._reference(target, content, depth)
            case "footnote" | "footnoteref":
                return f" ({self._inner(content, depth)})" if content else ""
            case "kbd" | "btn":
                return code_span(content) if content else ""
            case "menu":
                return " › ".join([target, *filter(None, re.split(r"\s*>\s*", content))])
            case "image" | "icon":
                return escape_markdown(content.split(",")[0].split("=")[-1].strip('"')) if "=" not in content else ""
            case "indexterm" | "anchor":
                return ""
            case "latexmath" | "asciimath" | "stem":
                return code_span(content)
            case "command" | "option" | "class" | "code":
                return code_span(content or target)
        return self._inner(content, depth)


_REPLACEMENTS: Final = (("(C)", "©"), ("(R)", "®"), ("(TM)", "™"), ("...", "…"))
_DASH = re.compile(r"(?<=\w) -- (?=\w)|(?<=\w)--(?=\w)")


def _prose(text: str) -> str:
    for written, shown in _REPLACEMENTS:
        if written in text:
            text = text.replace(written, shown)
    if "--" in text:
        text = _DASH.sub(" — ", text)
    return escape_markdown(text)


_PLAIN_LINK = re.compile(r"\[([^\[\]]*)\]\([^()\s]*\)")
_PLAIN_MARKS = re.compile(r"\\([!-/:-@\[-`{-~])|(`+) ?(.*?) ?\2|\*\*(.+?)\*\*|(?<!\w)\*(.+?)\*(?!\w)")


def _plain(markdown: str) -> str:
    """Return Markdown that this module wrote without its markup."""
    text = _PLAIN_LINK.sub(r"\1", markdown)
    for _ in range(2):
        text = _PLAIN_MARKS.sub(
            lambda match: next((group for group in (match[1], match[3], match[4], match[5]) if group), ""), text
        )
    return text
