"""Text as Markdown: escaping, code spans, code blocks, link targets.

Characters are escaped only where Markdown would read them as markup, so that what people search for (`snake_case`,
`a*b`) stays as they type it.
"""

import re
from typing import Final

from kept.extract.code_language import guess_language

# The character comes before the conditions on its surroundings: so the pattern skips plain text quickly.
_NEEDS_ESCAPE: Final = re.compile(
    r"[*_`<\[\\](?:"
    r"(?<=\*)(?:(?=\S)|(?<=\S\*))"  # could begin or end emphasis
    r"|(?<=_)(?:(?<![^\W_]_)(?=\w)|(?<=\w_)(?![^\W_]))"  # the same, but never inside a word
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
    """Replace the five entities that the HTML serializer writes."""
    if "&" not in text:
        return text
    text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&nbsp;", "\xa0").replace("&quot;", '"')
    return text.replace("&amp;", "&")


def escape_markdown(text: str) -> str:
    """Escape the text so that Markdown shows it unchanged."""
    # Most text has none of these, and six searches are faster than one by pattern.
    if "_" in text or "*" in text or "`" in text or "[" in text or "<" in text or "\\" in text:
        return _NEEDS_ESCAPE.sub(r"\\\g<0>", text)
    return text


def has_plain_whitespace(text: str) -> bool:
    """Return whether spaces and newlines are the only ASCII whitespace, as on most pages."""
    return all(blank not in text for blank in "\t\r\f\v\x1c\x1d\x1e\x1f")


def collapse_whitespace(text: str, plain_whitespace: bool = False) -> str:
    """Return " ".join(text.split()), faster. Faster still if `plain_whitespace` is known."""
    plain = text.strip()
    if "\n" in plain:
        plain = " ".join([words for line in plain.split("\n") if (words := line.strip())])
    # Other whitespace is not printable: the only test for all of it at once.
    if not (plain_whitespace and plain.isascii()) and not plain.isprintable():
        return " ".join(text.split())
    if "  " not in plain:
        return plain
    return " ".join([words for piece in plain.split("  ") if (words := piece.strip())])


def escape_block_start(text: str) -> str:
    """Escape a paragraph that would be read as a heading, a list or a quotation."""
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
    """Return a block of code; without a language, with the one that it looks like."""
    language = language or guess_language(text)
    fence = "```"
    if fence in text:
        fence = "`" * (max(map(len, _BACKTICKS.findall(text))) + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def escape_link_target(href: str) -> str:
    # Most links need no brackets; this is faster than the pattern. The space is the only printable whitespace.
    is_plain = href.isprintable() and not ("(" in href or " " in href or ")" in href or "<" in href or ">" in href)
    if not is_plain and _NEEDS_BRACKETS.search(href):
        href = href.strip().replace("\n", "").replace("<", "%3C").replace(">", "%3E")
        return f"<{href}>"
    return href
