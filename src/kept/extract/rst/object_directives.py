"""Directives that describe objects: functions, classes, options, settings … of every domain."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from docutils import nodes
from docutils.parsers.rst import Directive

from kept.extract.rst.nodes import AnyOptions, Description, ModuleTarget, ObjectDescription, Signature
from kept.extract.rst.page import Page
from kept.extract.rst.signatures import CONTAINERS, parse_signature, sphinx_id, split_object_type

# Names of fields in the description of an object, and the heading they are gathered under.
_FIELD_GROUPS: Final = {
    **dict.fromkeys(("param", "parameter", "arg", "argument", "key", "keyword", "kwarg", "kwparam"), "Parameters"),
    **dict.fromkeys(("var", "ivar", "cvar"), "Variables"),
    **dict.fromkeys(("raises", "raise", "except", "exception", "throws"), "Raises"),
    **dict.fromkeys(("returns", "return"), "Returns"),
    "rtype": "Return type", "retval": "Return values", "tparam": "Template parameters",
    "default": "Default",
}  # fmt: skip
_TYPE_FIELDS: Final = frozenset({"type", "vartype", "paramtype", "kwtype"})


def find_object_type(name: str, page: Page) -> type[Directive] | None:
    """Return the directive of an object type, with or without its domain; None for any other name."""
    found = split_object_type(name, page.domain)
    return _directive_class(*found) if found else None


def _directive_class(domain: str, objtype: str) -> type[Directive]:
    key = domain, objtype
    if key not in _classes:
        _classes[key] = type("ObjectDirective", (ObjectDirective,), {"domain": domain, "objtype": objtype})
    return _classes[key]


_classes: Final[dict[tuple[str, str], type[Directive]]] = {}


class ObjectDirective(Directive):
    """One or more signatures, and their description."""

    domain = "py"
    objtype = "function"
    required_arguments = 0
    optional_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar[Any] = AnyOptions()
    has_content = True

    def run(self) -> list[nodes.Node]:
        return self.describe(self, self.domain, self.objtype)

    @staticmethod
    def describe(
        directive: Directive, domain: str, objtype: str, signatures: list[str] | None = None, *,
        is_full_name: bool = False,
    ) -> list[nodes.Node]:  # fmt: skip
        """Return the description of an object by any directive."""
        page: Page = directive.state.document.settings.kept_page
        if signatures is None:
            signatures = _signature_lines(directive.arguments[0] if directive.arguments else "")
        node = ObjectDescription(domain=domain, objtype=objtype)
        is_silent = not {"noindex", "no-index", "noindexentry-all"}.isdisjoint(directive.options)
        first_name = ""
        outer_module, outer_classes = page.module, page.class_path
        if is_full_name:
            page.module, page.class_path = "", []
        for line in signatures:
            parsed = parse_signature(domain, objtype, line, page, directive.options)
            first_name = first_name or parsed.name
            signature = Signature(line, parsed.text)
            if not is_silent:
                _add_ids(directive.state.document, signature, parsed.ids)
            node += signature
        page.module, page.class_path = outer_module, outer_classes
        if objtype in CONTAINERS and first_name:
            if domain == "py":
                module = directive.options.get("module") or page.module
                own = first_name.removeprefix(f"{module}.") if module else first_name
                page.class_path = own.split(".")
            else:
                page.class_path = [*outer_classes, first_name.rpartition("." if domain != "cpp" else "::")[2]]
        description = Description()
        directive.state.nested_parse(directive.content, directive.content_offset, description, match_titles=True)
        page.class_path = outer_classes
        _group_fields(description)
        node += description
        return [node]


def _signature_lines(argument: str) -> list[str]:
    """Return the signatures of an argument: one a line, unless a backslash joins lines."""
    lines = argument.replace("\\\n", "").split("\n")
    return [line.strip() for line in lines if line.strip()]


def _add_ids(document: nodes.document, node: nodes.Element, ids: tuple[str, ...]) -> None:
    for id_ in ids:
        if id_ and id_ not in document.ids:
            document.ids[id_] = node
            node["ids"].append(id_)


def _group_fields(description: nodes.Element) -> None:
    """Gather the fields of a description under headings, as Sphinx does: parameters, exceptions, results."""
    for field_list in [child for child in description.children if isinstance(child, nodes.field_list)]:
        types: dict[str, list[nodes.Node]] = {}
        groups: dict[str, list[tuple[str, str, nodes.Element]]] = {}
        children: list[Any] = list(field_list.children)
        for field in children:
            words = field[0].astext().split()
            kind, names = words[0].lower() if words else "", words[1:]
            if kind in _TYPE_FIELDS and names:
                types[names[-1]] = _inline_content(field[1])
                continue
            group = _FIELD_GROUPS.get(kind, field[0].astext())
            groups.setdefault(group, []).append((" ".join(names[-1:]), " ".join(names[:-1]), field[1]))
        result = nodes.field_list()
        for group, entries in groups.items():
            items: Any = nodes.bullet_list()
            for name, type_, body in entries:
                body_nodes = _inline_content(body)
                if name and group in _FIELD_GROUPS.values():
                    shown: list[nodes.Node] = [nodes.strong("", name)]
                    declared: list[nodes.Node] = [nodes.emphasis("", type_)] if type_ else types.pop(name, [])
                    shown += [nodes.Text(" ("), *declared, nodes.Text(")")] if declared else []
                    shown += [nodes.Text(" – "), *body_nodes] if body_nodes else []
                    items += nodes.list_item("", nodes.paragraph("", "", *shown), *body.children[1:])
                else:
                    items += nodes.list_item("", *body.children)
            single = len(entries) == 1 and not entries[0][0]
            body = nodes.field_body("", *(items[0].children if single else [items]))
            result += nodes.field("", nodes.field_name("", group), body)
        for name, declared in types.items():
            paragraph = nodes.paragraph("", "", nodes.strong("", name), nodes.Text(" ("), *declared, nodes.Text(")"))
            result += nodes.field("", nodes.field_name("", "Type"), nodes.field_body("", paragraph))
        field_list.replace_self(result)


def _inline_content(body: nodes.Element) -> list[nodes.Node]:
    """Return the text of a field if it begins with a paragraph."""
    return list(body[0].children) if body.children and isinstance(body[0], nodes.paragraph) else []


class ModuleDirective(Directive):
    """A Python or JavaScript module: the names that follow are in it."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar[Any] = AnyOptions()
    has_content = True

    def run(self) -> list[nodes.Node]:
        page: Page = self.state.document.settings.kept_page
        page.module = self.arguments[0].strip()
        node = ModuleTarget()
        if {"noindex", "no-index"}.isdisjoint(self.options):
            _add_ids(self.state.document, node, (f"module-{sphinx_id(page.module)}",))
        holder = nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, holder, match_titles=True)
        return [node, *holder.children]


class CurrentModuleDirective(Directive):
    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar[Any] = AnyOptions()

    def run(self) -> list[nodes.Node]:
        page: Page = self.state.document.settings.kept_page
        module = self.arguments[0].strip()
        page.module = "" if module == "None" else module
        return []


class NamespaceDirective(Directive):
    """The scope of the C or C++ names that follow."""

    optional_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar[Any] = AnyOptions()

    def run(self) -> list[nodes.Node]:
        page: Page = self.state.document.settings.kept_page
        name = self.arguments[0].strip() if self.arguments else ""
        match self.name.lower().rpartition(":")[2]:
            case "namespace-push":
                page.class_path = [*page.class_path, name]
            case "namespace-pop":
                page.class_path = page.class_path[:-1]
            case _:
                page.class_path = [] if name in ("", "NULL", "0", "nullptr") else [name]
        return []
