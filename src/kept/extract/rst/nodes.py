"""The nodes of a document tree that docutils has no name for, the ids that Sphinx gives them, and any options."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Final

from docutils import nodes


class ObjectDescription(nodes.General, nodes.Element):
    """A documented object: its signatures, then its description. Attributes: domain, objtype."""


class Signature(nodes.Part, nodes.TextElement):
    """One signature of an object, with its ids."""


class Description(nodes.Part, nodes.Element):
    """The text about an object."""


class CrossReference(nodes.Inline, nodes.TextElement):
    """A reference to a label, a page or an object. Attributes: role, target, is_code, is_explicit."""


class PageList(nodes.General, nodes.Element):
    """The pages that a toctree names. Attributes: entries, pairs of a title (or None) and a target."""


class VersionNote(nodes.General, nodes.Element):
    """A note on what a version added, changed or deprecated; its first words are the attribute label."""


class Panel(nodes.General, nodes.Element):
    """A panel behind a tab or a fold; its label is the attribute label."""


class ModuleTarget(nodes.General, nodes.Element):
    """The place of a module: that of its section where it is the first thing there."""


class HighlightChange(nodes.General, nodes.Element):
    """From here on, code blocks that name no language have this one."""


class Hoisted(nodes.General, nodes.Element):
    """Content of a directive that may hold sections; it stands for what is inside it."""


_NON_ID: Final = re.compile(r"[^a-zA-Z0-9._]+")
_ID_ENDS: Final = re.compile(r"^[-0-9._]+|-+$")
_SPECIAL_LETTERS: Final = str.maketrans({"ø": "o", "đ": "d", "ł": "l", "ß": "sz", "æ": "ae", "œ": "oe", "þ": "th"})


def sphinx_id(text: str) -> str:
    """Return the id that Sphinx makes of a name: letters, digits, dots, underscores and hyphens, case kept."""
    plain = unicodedata.normalize("NFKD", text.translate(_SPECIAL_LETTERS)).encode("ascii", "ignore").decode("ascii")
    return _ID_ENDS.sub("", _NON_ID.sub("-", " ".join(plain.split())))


class AnyOptions(dict[str, Callable[[str | None], str]]):
    """Stands for a directive's table of options: every name is known, every value is text."""

    def __bool__(self) -> bool:  # docutils asks whether there are options at all
        return True

    def __getitem__(self, name: str) -> Callable[[str | None], str]:
        return _text


def _text(value: str | None) -> str:
    return value or ""
