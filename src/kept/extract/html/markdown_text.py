"""Words of a page as words of Markdown.

Marks are escaped only where Markdown would take them for its own: what people search for (`snake_case`, `a*b`) stays as
they type it.
"""

import re
from typing import Final

# The mark comes first, whatever is asked about what stands around it: so the pattern passes over words quickly.
_NEEDS_ESCAPE: Final = re.compile(
    r"[*_`<\[\\](?:"
    r"(?<=\*)(?:(?=\S)|(?<=\S\*))"  # what could begin or end emphasis
    r"|(?<=_)(?:(?<![^\W_]_)(?=\w)|(?<=\w_)(?![^\W_]))"  # the same, and never inside a word
    r"|(?<=`)"
    r"|(?<=<)(?=[A-Za-z/!?])"  # would be a tag
    r"|(?<=\[)(?=[^\[\]]*\]\()"  # would be a link
    r"|(?<=\\)(?=[!-/:-@\[-`{-~])"
    r")"
)
_BLOCK_START: Final = re.compile(r"(?:#{1,6}|[-+>]|[-=]{3,}|~{3,})(?:\s|$)|(\d{1,9})[.)]\s")
_BACKTICKS: Final = re.compile(r"`+")
_NEEDS_BRACKETS: Final = re.compile(r"[\s<>()]")


def unescape_entities(text: str) -> str:
    """The text behind the few entities that a parser writes."""
    if "&" not in text:
        return text
    text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&nbsp;", "\xa0").replace("&quot;", '"')
    return text.replace("&amp;", "&")


def escape_markdown(text: str) -> str:
    """The text so that Markdown shows it as it is."""
    # Most words have none of these marks, and asking for one after the other is quicker than a pattern for all.
    if "_" in text or "*" in text or "`" in text or "[" in text or "<" in text or "\\" in text:
        return _NEEDS_ESCAPE.sub(r"\\\g<0>", text)
    return text


def has_plain_whitespace(text: str) -> bool:
    """Whether ASCII has no blanks in it but spaces and newlines, as on most pages."""
    return all(blank not in text for blank in "\t\r\f\v\x1c\x1d\x1e\x1f")


def collapse_whitespace(text: str, plain_whitespace: bool = False) -> str:
    """The words with one blank between them, whatever was there: " ".join(text.split()), made quicker.

    For words out of a tidy text it is quicker still.
    """
    plain = text.strip()
    if "\n" in plain:
        plain = " ".join([words for line in plain.split("\n") if (words := line.strip())])
    # Blanks of other kinds are not printable, and there is no other way to ask for all of them at once.
    if not (plain_whitespace and plain.isascii()) and not plain.isprintable():
        return " ".join(text.split())
    if "  " not in plain:
        return plain
    return " ".join([words for piece in plain.split("  ") if (words := piece.strip())])


def escape_block_start(text: str) -> str:
    """The paragraph, escaped if it would begin something else: a heading, a list, a quotation."""
    if text[0] not in "#-+>=~0123456789":
        return text
    match = _BLOCK_START.match(text)
    if match is None:
        return text
    at = match.end(1) if match[1] else 0
    return f"{text[:at]}\\{text[at:]}"


def code_span(text: str) -> str:
    if "`" not in text:
        return f"`{text}`"
    ticks = "`" * (max(map(len, _BACKTICKS.findall(text))) + 1)
    return f"{ticks} {text} {ticks}"


def fenced_code_block(text: str, language: str) -> str:
    fence = "```"
    if fence in text:
        fence = "`" * (max(map(len, _BACKTICKS.findall(text))) + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def escape_link_target(href: str) -> str:
    # Most links need none, and are asked quicker than by a pattern: no blank is printable, save one.
    plain = href.isprintable() and not ("(" in href or " " in href or ")" in href or "<" in href or ">" in href)
    if not plain and _NEEDS_BRACKETS.search(href):
        href = href.strip().replace("\n", "").replace("<", "%3C").replace(">", "%3E")
        return f"<{href}>"
    return href
