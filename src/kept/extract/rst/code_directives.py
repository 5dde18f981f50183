"""Directives whose content is code."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from docutils import nodes
from docutils.parsers.rst import Directive

from kept.extract.rst.included_files import LANGUAGES, included_text, missing_file
from kept.extract.rst.nodes import AnyOptions
from kept.extract.rst.page import Page, code_language_name
from kept.extract.rst.signatures import sphinx_id

# Directives that name their language.
_OWN_LANGUAGES: Final = {
    "console": "console", "testcode": "python", "doctest": "python", "ipython": "python", "prompt": "sh",
    "graphviz": "dot", "digraph": "dot", "graph": "dot", "mermaid": "mermaid", "uml": "plantuml",
    "plantuml": "plantuml", "jupyter-execute": "python", "testoutput": "",
}  # fmt: skip


class CodeDirective(Directive):
    """A block of code, its language, perhaps its caption."""

    optional_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar[Any] = AnyOptions()
    has_content = True

    def run(self) -> list[nodes.Node]:
        name = self.name.lower()
        argument = self.arguments[0].strip() if self.arguments else ""
        if name in _OWN_LANGUAGES:
            language: str | None = _OWN_LANGUAGES[name]
        else:
            language = code_language_name(argument.split()[0]) if argument else None
        text = "\n".join(self.content)
        return code_block(text, language, caption=self.options.get("caption", ""), name=self.options.get("name", ""))


def code_block(text: str, language: str | None, *, caption: str = "", name: str = "") -> list[nodes.Node]:
    """Return a code block behind its caption."""
    block = nodes.literal_block(text, text, **({} if language is None else {"language": language}))
    if name:
        block["ids"].append(nodes.make_id(name))
    return [*([nodes.rubric("", caption)] if caption else []), block] if text.strip() else []


class LiteralIncludeDirective(Directive):
    """Code from another file. Where its bytes are not at hand, its name is shown."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar[Any] = AnyOptions()

    def run(self) -> list[nodes.Node]:
        page: Page = self.state.document.settings.kept_page
        name = self.arguments[0].strip()
        text = included_text(page, name, self.options)
        if text is None:
            return [missing_file(name)]
        language = code_language_name(self.options.get("language", "")) or LANGUAGES.get(name.rpartition(".")[2], "")
        caption = self.options.get("caption", name if "caption" in self.options else "")
        return code_block(text, language, caption=caption, name=self.options.get("name", ""))


class ProductionListDirective(Directive):
    """Rules of a grammar; each defines a token."""

    required_arguments = 0
    optional_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar[Any] = AnyOptions()

    def run(self) -> list[nodes.Node]:
        lines = (self.arguments[0] if self.arguments else "").split("\n")
        group = lines.pop(0).strip() if lines and ":" not in lines[0] else ""
        block = nodes.literal_block("", language="")
        shown = []
        for line in lines:
            name, colon, rule = line.partition(":")
            if name.strip():
                block["ids"].append(sphinx_id(f"grammar-token-{f'{group}-' if group else ''}{name.strip()}"))
            shown.append(
                f"{name.strip():<12} ::= {rule.strip()}" if name.strip() and colon else f"{'':<16} {rule.strip()}"
            )
        block += nodes.Text("\n".join(shown).replace("`", ""))
        return [block]
