"""The directives of docutils and Sphinx, and of extensions that many manuals use.

``find`` returns a class for every name: one of the tables at the end, or UnknownDirective, which keeps the text.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Final

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.parsers.rst.directives import body, images, misc, tables
from docutils.statemachine import StringList, string2lines

from kept.extract.rst.code_directives import CodeDirective, LiteralIncludeDirective, ProductionListDirective, code_block
from kept.extract.rst.included_files import MAX_LINE_LENGTH, included_text, missing_file
from kept.extract.rst.nodes import (
    AnyOptions,
    CrossReference,
    HighlightChange,
    Hoisted,
    ModuleTarget,
    PageList,
    Panel,
    VersionNote,
)
from kept.extract.rst.object_directives import (
    CurrentModuleDirective,
    ModuleDirective,
    NamespaceDirective,
    ObjectDirective,
    find_object_type,
)
from kept.extract.rst.page import Page, code_language_name
from kept.extract.rst.signatures import sphinx_id


def find(name: str, page: Page) -> type[Directive]:
    """Return the class of a directive. There is one for every name."""
    key = name.lower()
    object_type = find_object_type(key, page)
    if object_type is not None and key != "class":
        return object_type
    found = _DIRECTIVES.get(key) or _DIRECTIVES.get(key.removeprefix("std:"))
    return found or object_type or UnknownDirective


class KeptDirective(Directive):
    """Base class: an argument on one line, any options, any content."""

    optional_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar[Any] = AnyOptions()
    has_content = True

    @property
    def page(self) -> Page:
        page: Page = self.state.document.settings.kept_page
        return page

    @property
    def argument(self) -> str:
        return " ".join(self.arguments[0].split()) if self.arguments else ""

    def parse_content(self, node: nodes.Element, *, titles: bool = False) -> nodes.Element:
        """Parse the content into a node and return it."""
        self.state.nested_parse(self.content, self.content_offset, node, match_titles=titles)
        return node

    def parse_inline(self, text: str) -> list[nodes.Node]:
        parsed, messages = self.state.inline_text(text, self.lineno)
        return [*parsed, *messages]


_OBJECT_NAME: Final = re.compile(r"[A-Za-z_][\w.:-]{2,100}(?:\([^()]*\))?")


class UnknownDirective(KeptDirective):
    """A directive without a meaning here: its argument and its content are kept as text."""

    def run(self) -> list[nodes.Node]:
        if self.content and _OBJECT_NAME.fullmatch(self.argument):
            # What a manual's own configuration declares, such as Django's `setting`.
            return ObjectDirective.describe(self, "std", self.name.lower())
        result: list[nodes.Node] = []
        if self.arguments:
            result.append(nodes.paragraph("", "", *self.parse_inline(self.argument)))
        return [*result, self.parse_content(Hoisted(), titles=True)]


class Nothing(KeptDirective):
    """A directive that shows nothing: metadata, indexes, instructions to the generator."""

    def run(self) -> list[nodes.Node]:
        return []


class ContentOnly(KeptDirective):
    """A directive whose content is all there is to show."""

    def run(self) -> list[nodes.Node]:
        return [self.parse_content(Hoisted(), titles=True)]


class OnlyDirective(KeptDirective):
    """`only`, `ifconfig` and the like: shown, since it is not known for whom the manual is built, except for LaTeX."""

    def run(self) -> list[nodes.Node]:
        words = set(self.argument.split())
        if words & {"latex", "man", "epub", "texinfo"} and not words & {"html", "or", "not"}:
            return []
        return [self.parse_content(Hoisted(), titles=True)]


class AdmonitionDirective(KeptDirective):
    """A note, a warning and the like."""

    optional_arguments = 0
    title = ""

    def run(self) -> list[nodes.Node]:
        node = nodes.admonition("")
        node += nodes.title("", "", *self.parse_inline(self.argument or self.title or self.name.capitalize()))
        return [self.parse_content(node)]


class TitledDirective(AdmonitionDirective):
    """An admonition whose title is its argument."""

    optional_arguments = 1


class SeeAlsoDirective(AdmonitionDirective):
    title = "See also"


class ImplementationDetailDirective(AdmonitionDirective):
    title = "CPython implementation detail"


class VersionDirective(KeptDirective):
    """`versionadded` and its family: a version, and perhaps what it did."""

    def run(self) -> list[nodes.Node]:
        version, text = _first_word(self.arguments[0] if self.arguments else "")
        label = _VERSION_LABELS[self.name.lower()]
        if self.name.lower() == "deprecated-removed":
            removed, text = _first_word(text)
            label = f"{label} {version}, will be removed in version {removed}"
        else:
            label = f"{label} {version}"
        node = VersionNote(label=label)
        if text:
            node += nodes.paragraph("", "", *self.parse_inline(text))
        return [self.parse_content(node)]


def _first_word(text: str) -> tuple[str, str]:
    word, *rest = text.split(maxsplit=1) or [""]
    return word, "".join(rest)


class ToctreeDirective(KeptDirective):
    """The pages below this one. What is hidden is no text, but it is the order of the manual."""

    def run(self) -> list[nodes.Node]:
        entries: list[tuple[str, str]] = []
        for line in self.content:
            line = line.strip()
            title, _, target = line.rpartition("<") if line.endswith(">") else ("", "", line)
            if line and line != "self":
                entries.append((title.strip(), target.rstrip(">").strip()))
        node = PageList(entries=entries, hidden="hidden" in self.options, caption=self.options.get("caption") or "")
        return [node]


class PanelDirective(KeptDirective):
    """A tab, a card or a fold: a label and what is behind it."""

    def run(self) -> list[nodes.Node]:
        return [self.parse_content(Panel(label=self.argument))]


class CodeTabDirective(KeptDirective):
    def run(self) -> list[nodes.Node]:
        language, _, label = self.argument.partition(" ")
        node = Panel(label=label.strip() or language)
        text = "\n".join(self.content)
        node += nodes.literal_block(text, text, language=code_language_name(language))
        return [node]


class TargetDirective(KeptDirective):
    """A directive that only names what follows: Django's `setting`, `templatetag`, `fieldlookup` …"""

    def run(self) -> list[nodes.Node]:
        if self.content:
            return UnknownDirective.run(self)  # type: ignore[arg-type]
        node = nodes.target("", "", ids=[sphinx_id(f"std-{self.name.lower()}-{self.argument}")])
        self.state.document.note_explicit_target(node)
        return [node]


class GlossaryDirective(KeptDirective):
    """Terms, several of which may share a definition. Each is a place."""

    def run(self) -> list[nodes.Node]:
        result = nodes.definition_list("", classes=["glossary"])
        terms: list[str] = []
        block = StringList()
        item_offset = self.content_offset

        def finish() -> None:
            if not terms:
                return
            item = nodes.definition_list_item()
            for text in terms:
                shown = text.partition(" : ")[0]
                term = nodes.term("", "", *self.parse_inline(shown))
                term["ids"].append(sphinx_id(f"term-{term.astext()}"))
                item += term
            definition = nodes.definition()
            lines = StringList(list(block.data), items=list(block.items))
            lines.trim_left(min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0))
            self.state.nested_parse(lines, item_offset, definition)
            item += definition
            result.append(item)

        is_after_term = False
        for line, (source, offset) in zip(self.content.data, self.content.items, strict=True):
            if line.startswith(".. "):
                continue
            if line and not line[0].isspace():
                if not is_after_term:
                    finish()
                    terms, block, item_offset = [], StringList(), offset
                terms.append(line)
                is_after_term = True
            else:
                block.append(line, source, offset)
                is_after_term = is_after_term and not line.strip()
        finish()
        return [result]


class HighlightDirective(KeptDirective):
    def run(self) -> list[nodes.Node]:
        return [HighlightChange(language=code_language_name(self.argument))]


class DefaultDomainDirective(KeptDirective):
    def run(self) -> list[nodes.Node]:
        self.page.domain = self.argument.lower()
        return []


class ProgramDirective(KeptDirective):
    def run(self) -> list[nodes.Node]:
        self.page.program = "" if self.argument == "None" else "-".join(self.argument.split())
        return []


class RoleDirective(KeptDirective):
    """Defines a role for this page, based on another one."""

    def run(self) -> list[nodes.Node]:
        name, _, base = self.argument.partition("(")
        base = base.rstrip(") ").strip().lower()
        if name.strip().lower() != base:
            self.page.roles[name.strip().lower()] = base or "index"
        return []


class DefaultRoleDirective(KeptDirective):
    def run(self) -> list[nodes.Node]:
        self.page.default_role = self.argument.lower()
        return []


class RawDirective(KeptDirective):
    """Markup of an output format. HTML is read as a reader reads HTML; nothing else is shown."""

    def run(self) -> list[nodes.Node]:
        if "html" not in self.argument.lower().split() or not self.content:
            return []
        text = "\n".join(self.content)
        return [nodes.raw(text, text, format="html")]


class IncludeDirective(KeptDirective):
    """Another file in this place. Where its bytes are not at hand, its name is shown."""

    def run(self) -> list[nodes.Node]:
        text = included_text(self.page, self.argument, self.options)
        if text is None:
            return [missing_file(self.argument)]
        if "literal" in self.options or "code" in self.options:
            return code_block(text, code_language_name(self.options.get("code", "")))
        lines = string2lines(text, 8, convert_whitespace=True)
        if max(map(len, lines), default=0) > MAX_LINE_LENGTH:
            return code_block(text, "")
        self.state_machine.insert_input(lines, self.argument)
        return []


class CsvTableDirective(tables.CSVTable):
    """A table of comma-separated values in the page itself."""

    def run(self) -> Any:
        if "url" in self.options:
            return [missing_file(self.options["url"])]
        if name := self.options.pop("file", None):
            text = included_text(self.state.document.settings.kept_page, name, {})
            if text is None:
                return [missing_file(name)]
            self.content = StringList(text.split("\n"), source="")
        return super().run()


class RubricDirective(KeptDirective):
    def run(self) -> list[nodes.Node]:
        return [nodes.rubric("", "", *self.parse_inline(self.argument))]


class AutoDirective(KeptDirective):
    """autodoc, which would have to run code: the name and what the page itself says about it."""

    def run(self) -> list[nodes.Node]:
        kind = self.name.lower().removeprefix("auto")
        if kind == "module":
            node = ModuleTarget(ids=[f"module-{sphinx_id(self.argument)}"])
            self.page.module = self.argument
            return [node, self.parse_content(Hoisted(), titles=True)]
        name, paren, rest = self.argument.partition("(")
        module, colons, own = name.partition("::")
        text = f"{module}.{own}" if colons else name
        return ObjectDirective.describe(
            self, "py", {"exception": "exception", "class": "class"}.get(kind, kind), [f"{text}{paren}{rest}"],
            is_full_name=not self.page.class_path,
        )  # fmt: skip


class AutosummaryDirective(KeptDirective):
    """Names of objects, whose summaries only their code could tell."""

    def run(self) -> list[nodes.Node]:
        items = nodes.bullet_list()
        for line in self.content:
            name = line.strip().lstrip("~").partition("(")[0]
            if name and not line.lstrip().startswith((":", "..")):
                reference = CrossReference(
                    name, name, role="py:obj", target=name, is_code=True, is_explicit=False, context=self.page
                )
                items += nodes.list_item("", nodes.paragraph("", "", reference))
        return [items] if items.children else []


class AvailabilityDirective(KeptDirective):
    def run(self) -> list[nodes.Node]:
        paragraph = nodes.paragraph("", "", nodes.Text("Availability: "), *self.parse_inline(self.argument))
        return [paragraph, *self.parse_content(Hoisted()).children]


class AuditEventDirective(KeptDirective):
    def run(self) -> list[nodes.Node]:
        if self.content:
            return [self.parse_content(Hoisted())]
        event, _, arguments = self.argument.partition(" ")
        text = f"Raises an auditing event ``{event}``"
        text += f" with arguments ``{arguments.strip()}``." if arguments.strip() else " with no arguments."
        return [nodes.paragraph("", "", *self.parse_inline(text))]


class ClassDirective(KeptDirective):
    """docutils' `class`, or Sphinx's: a class of a style sheet has a lower-case name and no signature."""

    def run(self) -> list[nodes.Node]:
        is_style = all(
            word.replace("-", "").islower() and "(" not in word and "." not in word for word in self.argument.split()
        )
        if is_style and not self.content and not self.page.module and not self.options:
            return []
        return ObjectDirective.describe(self, self.page.domain if self.page.domain != "c" else "py", "class")


_VERSION_LABELS: Final = {
    "versionadded": "New in version", "versionchanged": "Changed in version", "deprecated": "Deprecated since version",
    "versionremoved": "Removed in version", "deprecated-removed": "Deprecated since version",
}  # fmt: skip

_DIRECTIVES: Final[dict[str, type[Directive]]] = {
    # docutils' own that read nothing but the page
    "line-block": body.LineBlock, "parsed-literal": body.ParsedLiteral, "math": body.MathBlock,
    "epigraph": body.Epigraph, "highlights": body.Highlights, "pull-quote": body.PullQuote,
    "compound": body.Compound, "container": body.Container, "table": tables.RSTTable,
    "list-table": tables.ListTable, "image": images.Image, "figure": images.Figure,
    "replace": misc.Replace, "unicode": misc.Unicode,
    "csv-table": CsvTableDirective, "rubric": RubricDirective, "role": RoleDirective,
    "default-role": DefaultRoleDirective, "raw": RawDirective, "include": IncludeDirective,
    # admonitions
    **dict.fromkeys(("attention", "caution", "danger", "error", "important", "note", "tip", "hint", "warning",
                     "todo"), AdmonitionDirective),
    **dict.fromkeys(("admonition", "topic", "sidebar", "dropdown", "details"), TitledDirective),
    "seealso": SeeAlsoDirective, "impl-detail": ImplementationDetailDirective,
    **dict.fromkeys(_VERSION_LABELS, VersionDirective),
    # code
    **dict.fromkeys(("code-block", "code", "sourcecode", "console", "testcode", "testoutput", "doctest", "prompt",
                     "ipython", "graphviz", "digraph", "graph", "mermaid", "uml", "plantuml", "code-cell",
                     "jupyter-execute"), CodeDirective),
    "literalinclude": LiteralIncludeDirective, "productionlist": ProductionListDirective,
    "highlight": HighlightDirective, "highlightlang": HighlightDirective,
    # structure
    "toctree": ToctreeDirective, "glossary": GlossaryDirective, "only": OnlyDirective, "ifconfig": OnlyDirective,
    **dict.fromkeys(("hlist", "rst-class", "cssclass", "tabs", "tab-set", "content-tabs", "grid", "grid-item",
                     "card-carousel", "div", "tab-set-code", "acks"), ContentOnly),
    **dict.fromkeys(("tab", "tab-item", "group-tab", "grid-item-card", "card", "collapse"),
                    PanelDirective),
    "code-tab": CodeTabDirective,
    **dict.fromkeys(("contents", "sectnum", "header", "footer", "target-notes", "meta", "title", "index",
                     "tabularcolumns", "testsetup", "testcleanup", "codeauthor", "sectionauthor", "moduleauthor",
                     "audit-event-table", "limited-api-list", "todolist", "date", "bibliography"), Nothing),
    "class": ClassDirective,
    "default-domain": DefaultDomainDirective, "program": ProgramDirective,
    # objects
    **dict.fromkeys(("module", "py:module", "js:module"), ModuleDirective),
    **dict.fromkeys(("currentmodule", "py:currentmodule"), CurrentModuleDirective),
    **dict.fromkeys(("c:namespace", "c:namespace-push", "c:namespace-pop", "cpp:namespace", "cpp:namespace-push",
                     "cpp:namespace-pop"), NamespaceDirective),
    **dict.fromkeys(("automodule", "autoclass", "autofunction", "automethod", "autoattribute", "autodata",
                     "autoexception", "autodecorator", "autoproperty"), AutoDirective),
    "autosummary": AutosummaryDirective, "availability": AvailabilityDirective, "audit-event": AuditEventDirective,
    **dict.fromkeys(("setting", "templatetag", "templatefilter", "fieldlookup"), TargetDirective),
}  # fmt: skip
