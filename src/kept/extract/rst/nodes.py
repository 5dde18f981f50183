"""The nodes of a document tree that docutils has no name for, and options of any name."""

from __future__ import annotations

from collections.abc import Callable

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


class AnyOptions(dict[str, Callable[[str | None], str]]):
    """Stands for a directive's table of options: every name is known, every value is text."""

    def __bool__(self) -> bool:  # docutils asks whether there are options at all
        return True

    def __getitem__(self, name: str) -> Callable[[str | None], str]:
        return _text


def _text(value: str | None) -> str:
    return value or ""
