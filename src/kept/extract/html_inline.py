"""What stands inside a paragraph: emphasis, links, code, pictures, formulas."""

from __future__ import annotations

import re
from typing import Final

from kept.extract.html_page import BREAK, Closer, Page, done, leave_out, one_line
from kept.extract.html_rules import ROUTES, Role, role_of
from kept.extract.html_tags import HREF, NAME, Tag, attribute
from kept.extract.html_words import code_span, link_target, one_spaced, unescaped, written

_MARKS: Final = frozenset({"", "¶", "#", "§", "🔗", "link", "Link", "Anchor", "anchor", "permalink", "Permalink"})
_LOOKS_LIKE_MATH: Final = re.compile(r"^\\[(\[](.*)\\[)\]]$", re.DOTALL)
_NEVER_FOLLOWED: Final = ("javascript:", "data:")
_ATTRIBUTE: Final = re.compile(r' ([a-zA-Z:-]+)="([^"]*)"')


def other(page: Page, tag: Tag) -> Closer:
    """Any element that is no block: a <span>, mostly."""
    role = page.role(tag)
    if role is None:
        return None
    if role is Role.DROP or role is Role.PERMALINK:
        return leave_out
    if role is Role.MATH:
        return open_math(page, "$")
    if role is Role.TITLE and "filename" in tag.attributes:
        return page.line()
    return None


def open_math(page: Page, mark: str) -> Closer:
    """Formulas as TeX has them, between dollars; nothing in them is escaped."""
    page.code += 1
    start = len(page.words)

    def close(page: Page) -> None:
        page.code -= 1
        text = "".join(page.words[start:]).strip()
        match = _LOOKS_LIKE_MATH.match(text)
        page.words[start:] = [f"{mark}{match[1].strip()}{mark}" if match else text]
        if mark == "$$":
            page.flush()

    return close


# ── Emphasis and links: marks around words ───────────────────────────────────────────────────────────────────────────


def _open(page: Page, kind: str, close: Closer, target: str = "") -> Closer:
    if page.code:
        return None
    for span in page.spans:
        if span[0] == kind:
            return None
    page.spans.append((kind, len(page.words), target))
    return close


def _end(page: Page, kind: str) -> None:
    """Puts the marks around what was said since the span began, and none around blanks."""
    while page.spans:
        found, start, target = page.spans.pop()
        if found == kind:
            break
    else:
        return  # a block came between: the paragraph it began in is written already
    text = "".join(page.words[start:])
    core = text.strip()
    if not core:
        page.words[start:] = [" "] if text else []
        return
    before = " " if text[0].isspace() else ""
    behind = " " if text[-1].isspace() else ""
    page.words[start:] = [before, _marked(page, kind, core, target), behind]


def _marked(page: Page, kind: str, core: str, target: str) -> str:
    if kind == "a":
        if page.heading is not None:
            if target.startswith("#") and core in _MARKS:
                page.heading.permalink = target[1:]
                del page.heading.words[-1:]
                return ""
            return core
        return f"[{' '.join(core.replace(BREAK, ' ').split())}]({link_target(target)})"
    if kind in ("^", "_"):
        return core if core[0] in "[(" else f"{kind}{core}"
    return f"{kind}{core.strip(BREAK)}{kind}"


def _end_em(page: Page) -> None:
    _end(page, "*")


def _end_strong(page: Page) -> None:
    _end(page, "**")


def _end_sup(page: Page) -> None:
    _end(page, "^")


def _end_sub(page: Page) -> None:
    _end(page, "_")


def _end_a(page: Page) -> None:
    _end(page, "a")


def em(page: Page, tag: Tag) -> Closer:
    if tag.attributes and other(page, tag) is leave_out:
        return leave_out
    return _open(page, "*", _end_em)


def strong(page: Page, tag: Tag) -> Closer:
    return _open(page, "**", _end_strong) if page.heading is None else None


def sup(page: Page, tag: Tag) -> Closer:
    return _open(page, "^", _end_sup)


def sub(page: Page, tag: Tag) -> Closer:
    return _open(page, "_", _end_sub)


def a(page: Page, tag: Tag) -> Closer:
    if not tag.attributes:
        return None
    href = attribute(tag.attributes, HREF)
    role = page.role(tag)
    if role is Role.PERMALINK and href and "#" in href:
        return _permalink(page, href)
    if role is Role.DROP or 'class="src' in tag.attributes:  # rustdoc's links to its source
        return leave_out
    if NAME in tag.attributes:
        page.note(attribute(tag.attributes, NAME))
    if not href or page.code or href.startswith(_NEVER_FOLLOWED):
        return None
    text = page.behind
    if (
        page.spans
        or page.heading is not None
        or not page.holds_words_only()
        or "&" in text
        or not (core := text.strip())
    ):
        return _open(page, "a", _end_a, href)
    before = " " if text[0].isspace() else ""
    behind = " " if text[-1].isspace() else ""
    page.words.append(f"{before}[{one_spaced(written(core), page.tidy)}]({link_target(href)}){behind}")
    page.step()
    return done


def _permalink(page: Page, href: str) -> Closer:
    """A mark that says nothing; but VuePress and docsify put all words of a heading into the link to it."""
    heading = page.heading
    if heading is None:
        return leave_out
    if href.startswith("#") and not href.startswith(ROUTES):
        heading.permalink = href[1:]
    before, said = len(page.words), len(heading.words)

    def close(page: Page) -> None:
        words, text = one_line(heading.words[said:]), one_line(page.words[before:])
        if words not in _MARKS:
            heading.linked = words, text
        del page.words[before:], heading.words[said:]

    return close


# ── Code ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def code(page: Page, tag: Tag) -> Closer:
    page.role(tag)
    if page.code:
        return None
    if page.heading is None and page.holds_words_only() and "\u200b" not in page.behind:
        _put_code(page, unescaped(page.behind))
        page.step()
        return done
    page.code += 1
    start = len(page.words)

    def close(page: Page) -> None:
        page.code -= 1
        text = "".join(page.words[start:]).replace(BREAK, " ")
        del page.words[start:]
        _put_code(page, text)

    return close


def _put_code(page: Page, text: str) -> None:
    core = one_spaced(text, page.tidy)
    if not core:
        if text:
            page.words.append(" ")
        return
    before = page.words[-1] if page.words else ""
    if before.endswith("`") and not before.endswith("``") and "`" not in core:  # two spans that touch are one
        page.words[-1] = f"{before[:-1]}{core}`"
        return
    lead = " " if text[0].isspace() else ""
    behind = " " if text[-1].isspace() else ""
    page.words.append(f"{lead}{code_span(core)}{behind}")


# ── The rest ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def br(page: Page, tag: Tag) -> Closer:
    if page.words:
        page.words.append(" " if page.code else BREAK)
        if page.heading is not None:
            page.heading.words.append(" ")
    return None


def hr(page: Page, tag: Tag) -> Closer:
    page.flush()
    return None


def img(page: Page, tag: Tag) -> Closer:
    found = dict(_ATTRIBUTE.findall(tag.attributes))
    alt = " ".join(unescaped(found.get("alt", "")).split())
    source = unescaped(found.get("src", ""))
    if page.heading is not None or page.code or role_of(found.get("class", "")) is Role.DROP:
        return None
    if source.startswith("data:"):  # megabytes of picture are no words
        source = source.partition(",")[0].partition(";")[0]
    if alt or (source and not source.startswith("data:") and not page.spans):
        page.words.append(f"![{written(alt)}]({link_target(source)})")
    return None


def checkbox(page: Page, tag: Tag) -> Closer:
    if 'type="checkbox"' in tag.attributes and page.frames and page.frames[-1].list and not page.frames[-1].used:
        page.words.append("[x] " if ' checked=""' in tag.attributes else "[ ] ")
    return None


def math(page: Page, tag: Tag) -> Closer:
    """MathML: as it was written, where the page still says that; else the words in it."""
    said, annotation, inside = [page.behind], [""], False
    depth = 1
    while depth and page.step():
        if page.ends:
            depth -= 1
            inside = False
        elif not page.tag.is_void:
            depth += 1
            inside = page.tag.name == "annotation"
        if depth:
            (annotation if inside else said).append(page.behind)
    if depth:
        page.behind = ""
    written_as = attribute(tag.attributes, ' alttext="') or unescaped("".join(annotation)) or unescaped(" ".join(said))
    mark = "$$" if 'display="block"' in tag.attributes else "$"
    if text := " ".join(written_as.split()):
        page.words.append(f"{mark}{text}{mark}")
        if page.heading is not None:
            page.heading.words.append(text)
    return done
