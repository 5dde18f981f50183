"""Names and prose of src/: types have one meaning, modules are nouns of a useful size, docstrings are plain."""

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent.parent
PACKAGE = HERE / "src" / "kept"
MIN_LINES = 60

SHARED_TYPE_NAMES: dict[str, str] = {}
"""Type names that are defined more than once, and why."""

SMALL_MODULES: dict[str, str] = {
    "private_files.py": "one idea that every package above uses",
    "store/write_ahead_log.py": "one file format",
    "cli/completion.py": "a command",
    "cli/config.py": "a command",
    "cli/keys.py": "a group of commands",
    "cli/read.py": "two commands",
    "cli/refresh.py": "a command, loaded alone for a quick start",
    "cli/set_.py": "a command",
    "cli/source_options.py": "options that three commands share",
    "cli/try_.py": "a command",
    "cli/views/generations.py": "the output of one command, loaded when it is shown",
    "cli/views/hits.py": "the output of one command, loaded when it is shown",
    "cli/views/ledger.py": "the output of one command, loaded when it is shown",
    "cli/views/symbols.py": "a table",
    "cli/why.py": "a command",
    "model/companions.py": "one noun",
    "extract/rst/page.py": "one noun",
    "extract/rst/recognition.py": "one algorithm",
    "cli/worker.py": "a command",
    "crawl/abandon.py": "shared by start, activation and garbage collection",
    "crawl/brake.py": "one rule, pure",
    "crawl/context.py": "a noun that all parts of a crawl share",
    "crawl/locks.py": "shared by start and activation",
    "crawl/notifications.py": "shared by all that change a generation",
    "extract/html/places.py": "one step of reading, after the writer",
    "extract/html/tabs.py": "one element of HTML pages",
    "extract/js_shell.py": "one algorithm",
    "extract/json_data.py": "one format",
    "extract/section_nodes.py": "the tree that readers build",
    "extract/reader_pool/protocol.py": "the protocol of two processes",
    "jobs/worker_process.py": "a process of its own",
    "log.py": "a package of the layout",
    "maintenance/export_paths.py": "one algorithm, pure",
    "maintenance/periodic.py": "one loop for all periodic tasks",
    "model/duration.py": "one syntax",
    "model/embedding.py": "a noun",
    "model/ids.py": "one algorithm",
    "model/key.py": "a noun",
    "model/package.py": "a noun and its syntax",
    "model/robots_directives.py": "a noun",
    "model/search_request.py": "a noun",
    "origins/web/llms.py": "one format",
    "origins/web/shared_browser.py": "the one thing that crawls share",
    "runtime/deferred_database.py": "a wrapper with one purpose",
    "runtime/readers.py": "loaded before the crawl, for a quick start",
    "search/fuse.py": "one algorithm",
    "search/hit_context.py": "one step of a search",
    "search/page_kinds.py": "a table and its question",
    "search/rank.py": "one step of a search",
    "search/rerank.py": "one step of a search",
    "search/stems.py": "one algorithm",
    "server/api/health.py": "one family of routes",
    "server/api/hooks.py": "one family of routes",
    "server/api/idempotency.py": "one dependency of several routes",
    "server/api/queue_paths.py": "one family of routes",
    "server/db_check.py": "a middleware",
    "server/error_text.py": "one translation, for API, pages and MCP",
    "server/mcp/resources.py": "one family of MCP",
    "server/mcp/untrusted.py": "one algorithm",
    "server/web/assets.py": "one family of routes",
    "server/web/login.py": "one page",
    "server/web/tree.py": "one algorithm",
    "service/cursor.py": "one syntax",
    "service/export.py": "one noun of the service",
    "service/formatting.py": "shared by all interfaces",
    "service/health.py": "one noun of the service",
    "service/keys.py": "one noun of the service",
    "store/compression.py": "one algorithm",
    "store/gc.py": "one noun of the store",
    "store/integrity.py": "one noun of the store",
}
"""Modules under 60 lines (without ``__init__`` and modules of protocols), and why they stand alone."""

GERUNDS: dict[str, str] = {
    "decoding": "a noun of the field: content and transfer decoding",
    "document_matching": "a noun: the matching of documents",
    "full_listing": "a noun: the list of everything an origin has",
    "embedding": "a noun: the vector of a text",
    "embedding_backlog": "a noun: the backlog of embeddings",
    "formatting": "a noun: the texts of durations and counts",
}
"""Words ending in -ing in module names that are nouns, and why."""

UNFINISHED: tuple[str, ...] = ()
"""Where docstrings and comments are still to be rewritten."""

DIALECT = re.compile(
    r"\b(?:whoever|nobody|somebody|whomever|keeps? house|of the house|this house)\b|\b(?:rooms?|doors?)\b(?! for\b)",
    re.IGNORECASE,
)


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def name_of(file: Path) -> str:
    return file.relative_to(PACKAGE).as_posix()


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text("utf-8"))


def types_in(tree: ast.Module) -> Iterator[str]:
    """Yield the types that a module defines: classes, type aliases, NewTypes."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name):
                yield name
            case ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name(id="TypeAlias")):
                yield name
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id="NewType"))):
                yield name


def is_protocol_module(tree: ast.Module) -> bool:
    """Return whether a module defines protocols and no function of its own."""
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    bases = [base for node in classes for base in node.bases]
    return not functions and any(isinstance(base, ast.Name) and base.id == "Protocol" for base in bases)


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the docstrings of a module, its classes, functions and constants."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            match statement:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    yield statement.lineno, text


def comments(file: Path) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(file.read_text("utf-8")).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def test_a_type_name_is_defined_once() -> None:
    places = defaultdict(set)
    for file in modules():
        for name in types_in(parsed(file)):
            places[name].add(name_of(file))
    repeated = {name: sorted(where) for name, where in places.items() if len(where) > 1}
    assert {name: where for name, where in repeated.items() if name not in SHARED_TYPE_NAMES} == {}
    assert set(SHARED_TYPE_NAMES) <= set(repeated), "exceptions that are none any more"


def test_a_module_has_a_useful_size_or_a_reason() -> None:
    small = {
        name_of(file)
        for file in modules()
        if len(file.read_text("utf-8").splitlines()) < MIN_LINES
        and file.name not in ("__init__.py", "__main__.py")
        and not is_protocol_module(parsed(file))
    }
    assert sorted(small - set(SMALL_MODULES)) == []
    assert sorted(set(SMALL_MODULES) - small) == [], "exceptions that are none any more"


def test_no_module_is_named_by_a_gerund() -> None:
    gerunds = {
        file.stem
        for file in [*modules(), *(path for path in PACKAGE.rglob("*") if path.is_dir())]
        if any(len(word) > 5 and word.endswith("ing") for word in file.stem.split("_"))
    }
    assert sorted(gerunds - set(GERUNDS)) == []
    assert sorted(set(GERUNDS) - gerunds) == [], "exceptions that are none any more"


def test_no_docstring_begins_with_what() -> None:
    wrong = [
        f"{name_of(file)}:{line}: {text.strip().splitlines()[0]}"
        for file in modules()
        if not name_of(file).startswith(UNFINISHED)
        for line, text in docstrings(parsed(file))
        if re.match(r"what\b", text.strip(), re.IGNORECASE)
    ]
    assert wrong == []


def test_docstrings_and_comments_are_without_dialect() -> None:
    wrong = [
        f"{name_of(file)}:{line}: {found[0]}"
        for file in modules()
        if not name_of(file).startswith(UNFINISHED)
        for line, text in [*docstrings(parsed(file)), *comments(file)]
        for found in [DIALECT.search(text)]
        if found
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "page", sorted([*HERE.glob("*.md"), *(HERE / "docs").rglob("*.md")]), ids=lambda page: page.name
)
def test_the_manual_is_without_dialect(page: Path) -> None:
    text = page.read_text("utf-8")
    assert [found[0] for found in DIALECT.finditer(text)] == []


def test_the_checks_see_what_they_look_for() -> None:
    tree = ast.parse('"""What it is."""\nclass Page: ...\nKind: TypeAlias = "int"\nX = 1\n"""Whoever asks."""\n')
    assert list(types_in(tree)) == ["Page", "Kind"]
    assert [text for _, text in docstrings(tree)] == ["What it is.", "Whoever asks."]
    assert DIALECT.search("for Whoever")
    assert DIALECT.search("the doors of")
    assert not DIALECT.search("room for its results")
