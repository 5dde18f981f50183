"""Parse reStructuredText with docutils, behind a closed table of directives and roles.

Only the names in ``directives`` and ``roles`` have a meaning; docutils' own ``include``, ``raw`` and tables from files
and URLs cannot be reached. Any other name gives its text. No configuration file is read and nothing is executed.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

from docutils import frontend, nodes, utils
from docutils.parsers.rst import Parser
from docutils.parsers.rst import directives as directive_registry
from docutils.parsers.rst import roles as role_registry
from docutils.parsers.rst.states import Inliner
from docutils.transforms import Transform, references

from kept.extract.rst import directives, roles
from kept.extract.rst.page import Page

MAX_INLINE_WORK: Final = 20_000_000
"""Characters of a paragraph times its marks. docutils searches the end of each mark in all of the rest."""


def _bounded_inliner() -> Any:
    """Return a parser of inline markup that leaves a paragraph alone if it would take quadratic time."""
    inliner: Any = Inliner()  # no subclass: it looks for its patterns among the names of its own class
    parse = inliner.parse

    def parse_bounded(text: str, lineno: int, memo: Any, parent: Any) -> Any:
        marks = sum(map(text.count, "`*|_["))
        return ([nodes.Text(text)], []) if marks * len(text) > MAX_INLINE_WORK else parse(text, lineno, memo, parent)

    inliner.parse = parse_bounded
    return inliner


MAX_SUBSTITUTED_NODES: Final = 20_000
"""Nodes that the substitutions of a page may add to it. Ten that each name another one ten times would add billions."""


class Substitutions(Transform):
    """Replaces references by what the page defines for them. Unknown, circular and excessive ones stay as text.

    docutils' own limits the length of one substitution, but not their number.
    """

    default_priority = references.Substitutions.default_priority

    def apply(self, **kwargs: Any) -> None:
        self._budget = MAX_SUBSTITUTED_NODES
        for reference in list(self.document.findall(nodes.substitution_reference)):
            if not isinstance(reference.parent, nodes.substitution_definition):
                self._replace(reference, frozenset())

    def _replace(self, reference: nodes.substitution_reference, outer: frozenset[str]) -> None:
        name: Any = reference["refname"]
        key: Any = (
            name if name in self.document.substitution_defs else self.document.substitution_names.get(name.lower())
        )
        definition = self.document.substitution_defs.get(key)
        if definition is None or key in outer or self._budget <= 0:
            reference.replace_self(nodes.Text(f"|{reference.astext()}|"))
            return
        content = definition.deepcopy()
        self._budget -= 1 + sum(1 for _ in content.findall())
        for nested in list(content.findall(nodes.substitution_reference)):
            self._replace(nested, outer | {key})
        reference.replace_self(content.children)


_TRANSFORMS: Final = (
    Substitutions,
    references.PropagateTargets,
    references.AnonymousHyperlinks,
    references.IndirectHyperlinks,
    references.Footnotes,
    references.ExternalTargets,
    references.InternalTargets,
)


def parse(text: str, page: Page) -> nodes.document:
    """Return the document tree of a page."""
    document = utils.new_document("", copy.copy(_settings()))
    document.settings.kept_page = page
    with _closed_tables(page):
        Parser(inliner=_bounded_inliner()).parse(text, document)
        document.transformer.add_transforms(_TRANSFORMS)
        document.transformer.apply_transforms()
    return document


@cache
def _settings() -> Any:
    settings = frontend.get_default_settings(Parser)
    settings.report_level = settings.halt_level = 6  # above all: what is wrong is shown as text
    settings.warning_stream = False
    settings.file_insertion_enabled = settings.raw_enabled = False
    settings.auto_id_prefix = "id"  # as Sphinx has it
    settings.smart_quotes = settings.pep_references = settings.rfc_references = False
    settings.trim_footnote_reference_space = True
    settings.line_length_limit = 100_000
    settings.tab_width = 8
    settings.syntax_highlight = "none"
    settings.character_level_inline_markup = False
    return settings


@contextmanager
def _closed_tables(page: Page) -> Iterator[None]:
    """Replace docutils' lookup of directives and roles by ours, as Sphinx does: docutils has no other way."""
    lookups: Any = directive_registry
    role_lookups: Any = role_registry
    outer = lookups.directive, role_lookups.role
    lookups.directive = lambda name, language, document: (directives.find(name, page), [])
    role_lookups.role = lambda name, language, line, reporter: (roles.find(name, page), [])
    try:
        yield
    finally:
        lookups.directive, role_lookups.role = outer
