"""What stands inside a paragraph: emphasis, links, code, pictures, formulas."""

from __future__ import annotations

import re

from kept.extract.html_page import BREAK, VOID, Closer, Page, attribute, done, leave_out, one_line
from kept.extract.html_rules import ROUTES, Role, role_of
from kept.extract.html_words import code_span, link_target, unescaped, written

_MARKS = frozenset({"", "¶", "#", "§", "🔗", "link", "Link", "Anchor", "anchor", "permalink", "Permalink"})
_LOOKS_LIKE_MATH = re.compile(r"^\\[(\[](.*)\\[)\]]$", re.DOTALL)
_ATTRIBUTE = re.compile(r' ([a-zA-Z:-]+)="([^"]*)"')


def other(page: Page, name: str, attributes: str) -> Closer:
    role = page.role(attributes)
    if role is None:
        return None
    if role is Role.DROP or role is Role.PERMALINK:
        return leave_out
    if role is Role.MATH:
        return open_math(page, "$")
    if role is Role.TITLE and "filename" in attributes:
        return page.line()
    return None


def open_math(page: Page, mark: str) -> Closer:
    """Formulas as TeX has them, between dollars; nothing in them is escaped."""
    page.code += 1
    start = len(page.words)

    def close() -> None:
        page.code -= 1
        text = "".join(page.words[start:]).strip()
        match = _LOOKS_LIKE_MATH.match(text)
        page.words[start:] = [f"{mark}{match[1].strip()}{mark}" if match else text]
        if mark == "$$":
            page.flush()

    return close


def _open(page: Page, kind: str, target: str = "") -> Closer:
    if page.code or (page.spans and any(span[0] == kind for span in page.spans)):
        return None
    page.spans.append((kind, len(page.words), target))
    return lambda: _end(page, kind)


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


def em(page: Page, name: str, attributes: str) -> Closer:
    if attributes and other(page, name, attributes) is leave_out:
        return leave_out
    return _open(page, "*")


def strong(page: Page, name: str, attributes: str) -> Closer:
    return _open(page, "**") if page.heading is None else None


def sup(page: Page, name: str, attributes: str) -> Closer:
    return _open(page, "^" if name == "sup" else "_")


def a(page: Page, name: str, attributes: str) -> Closer:
    target = _target(page, attributes) if attributes else None
    return target if not isinstance(target, str) else _open(page, "a", target)


def whole_a(page: Page, attributes: str, text: str) -> None:
    target = _target(page, attributes) if attributes else None
    if target is leave_out:
        return
    core = text.strip()
    if not isinstance(target, str) or not core or page.heading is not None or page.spans or "&" in core:
        close = _open(page, "a", target) if isinstance(target, str) else target
        if text:
            page.say(text)
        if close is not None:
            close()
        return
    before = " " if text[0].isspace() else ""
    behind = " " if text[-1].isspace() else ""
    page.words.append(f"{before}[{' '.join(written(core).split())}]({link_target(target)}){behind}")


def _target(page: Page, attributes: str) -> str | Closer:
    """Where a link leads; or what is to be done at its end, where it is none that is written."""
    href = attribute(attributes, "href")
    role = page.role(attributes)
    if role is Role.PERMALINK and href and "#" in href:
        return _permalink(page, href)
    if role is Role.DROP or 'class="src' in attributes:  # rustdoc's links to its source
        return leave_out
    if ' name="' in attributes:
        page.note(attribute(attributes, "name"))
    if not href or page.code or href.startswith(("javascript:", "data:")):
        return None
    return href


def _permalink(page: Page, href: str) -> Closer:
    """A mark that says nothing; but VuePress and docsify put all words of a heading into the link to it."""
    heading = page.heading
    if heading is None:
        return leave_out
    if href.startswith("#") and not href.startswith(ROUTES):
        heading.permalink = href[1:]
    before, said = len(page.words), len(heading.words)

    def close() -> None:
        words, text = one_line(heading.words[said:]), one_line(page.words[before:])
        if words not in _MARKS:
            heading.linked = words, text
        del page.words[before:], heading.words[said:]

    return close


def whole_span(page: Page, attributes: str, text: str) -> None:
    close = other(page, "span", attributes) if attributes else None
    if close is leave_out:
        return
    if text:
        page.say(text)
    if close is not None:
        close()


def code(page: Page, name: str, attributes: str) -> Closer:
    if attributes:
        page.role(attributes)
    if page.code:
        return None
    page.code += 1
    start = len(page.words)
    return lambda: _end_code(page, start)


def _end_code(page: Page, start: int) -> None:
    page.code -= 1
    text = "".join(page.words[start:]).replace(BREAK, " ")
    del page.words[start:]
    _put_code(page, text)


def whole_code(page: Page, attributes: str, text: str) -> None:
    if attributes:
        page.role(attributes)
    if page.code or page.heading is not None or "\u200b" in text:
        page.code += 1
        start = len(page.words)
        if text:
            page.say(text)
        if page.code > 1:
            page.code -= 1
        else:
            _end_code(page, start)
    else:
        _put_code(page, unescaped(text))


def _put_code(page: Page, text: str) -> None:
    core = " ".join(text.split())
    if not core:
        if text:
            page.words.append(" ")
        return
    before = page.words[-1] if page.words else ""
    if before[-1:] == "`" and before[-2:] != "``" and "`" not in core:  # two spans that touch are one
        page.words[-1] = f"{before[:-1]}{core}`"
        return
    lead = " " if text[0].isspace() else ""
    behind = " " if text[-1].isspace() else ""
    page.words.append(f"{lead}{code_span(core)}{behind}")


def br(page: Page, name: str, attributes: str) -> Closer:
    if page.words:
        page.words.append(" " if page.code else BREAK)
        if page.heading is not None:
            page.heading.words.append(" ")
    return None


def hr(page: Page, name: str, attributes: str) -> Closer:
    page.flush()
    return None


def img(page: Page, name: str, attributes: str) -> Closer:
    found = dict(_ATTRIBUTE.findall(attributes))
    alt = " ".join(unescaped(found.get("alt", "")).split())
    source = unescaped(found.get("src", ""))
    if page.heading is not None or page.code or role_of(found.get("class", "")) is Role.DROP:
        return None
    if source.startswith("data:"):  # megabytes of picture are no words
        source = source.partition(",")[0].partition(";")[0]
    if alt or (source and not source.startswith("data:") and not page.spans):
        page.words.append(f"![{written(alt)}]({link_target(source)})")
    return None


def checkbox(page: Page, name: str, attributes: str) -> Closer:
    if 'type="checkbox"' in attributes and page.frames and page.frames[-1].list and not page.frames[-1].used:
        page.words.append("[x] " if ' checked=""' in attributes else "[ ] ")
    return None


def math(page: Page, name: str, attributes: str) -> Closer:
    """MathML: as it was written, where the page still says that; else the words in it."""
    said, annotation, inside = [page.behind], [""], False
    depth, page.behind = 1, ""
    for tag, _, text in page.following:
        if tag[:1] == "/":
            depth -= 1
            inside = False
            if not depth:
                page.behind = text
                break
        elif tag and tag not in VOID:
            depth += 1
            inside = tag == "annotation"
        (annotation if inside else said).append(text)
    written_as = attribute(attributes, "alttext") or unescaped("".join(annotation)) or unescaped(" ".join(said))
    mark = "$$" if 'display="block"' in attributes else "$"
    if text := " ".join(written_as.split()):
        page.words.append(f"{mark}{text}{mark}")
        if page.heading is not None:
            page.heading.words.append(text)
    return done
