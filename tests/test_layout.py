"""Every module imports only the packages that the table in docs/layout.md allows."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent.parent
PACKAGE = HERE / "src" / "kept"
PAGE = (HERE / "docs" / "layout.md").read_text("utf-8")


def may_import() -> dict[str, frozenset[str]]:
    """Return the table of the page: package -> the packages it may import."""
    lines = PAGE.partition("## Who may import whom")[2].partition("\n## ")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    assert rows[0] == ["package", "may import"], "docs/layout.md has no import table"
    table: dict[str, frozenset[str]] = {}
    for packages, allowed in rows[2:]:
        seen = frozenset(table) if allowed == "everything above" else frozenset(_names(allowed))
        table |= dict.fromkeys(_names(packages), seen)
    return table


def packages_in_source() -> set[str]:
    found = (path for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists())
    return {path.stem for path in found} - {"__init__", "__main__"}


def imported(source: str, package: str) -> Iterator[tuple[int, str]]:
    """Yield every module of Kept that a source imports, anywhere in it: (line, dotted name)."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                found = [name.name for name in names]
            case ast.ImportFrom(module=module, names=names, level=level):
                above = package.split(".")[: len(package.split(".")) - level + 1] if level else []
                start = ".".join([*above, *([module] if module else [])])
                found = [f"{start}.{name.name}" for name in names]
            case ast.Call(
                func=ast.Name(id=called) | ast.Attribute(attr=called), args=[ast.Constant(value=str(name)), *_]
            ):
                found = [name] if called in {"import_module", "__import__"} else []
            case _:
                continue
        yield from ((node.lineno, name) for name in found if name.split(".")[0] == "kept")


def _names(cell: str) -> list[str]:
    return [name.strip() for name in cell.split(",") if name.strip()]


def _package_of(module: str, packages: set[str]) -> str | None:
    """Return the package of a dotted name; None for ``kept`` itself, which only has its version."""
    _, _, below = module.partition(".")
    package = below.partition(".")[0]
    return package if package in packages else None


def test_every_package_is_in_the_table_and_every_package_of_the_table_exists() -> None:
    listed, there = set(may_import()), packages_in_source()
    assert there - listed == set(), "docs/layout.md does not say what these packages may import"
    assert listed - there == set(), "docs/layout.md names packages that do not exist"


def test_a_package_imports_only_packages_above_it() -> None:
    table = may_import()
    order = list(table)
    for package, allowed in table.items():
        assert allowed <= set(order[: order.index(package)]), f"{package} imports a package below it"


def test_every_module_imports_only_what_the_table_allows() -> None:
    table = may_import() | {"__init__": frozenset(), "__main__": frozenset({"cli"})}
    packages = packages_in_source()
    wrong = []
    for file in sorted(PACKAGE.rglob("*.py")):
        parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
        package = parts[1]
        for line, module in imported(file.read_text("utf-8"), ".".join(parts[:-1])):
            other = _package_of(module, packages)
            if other and other != package and other not in table.get(package, ()):
                wrong.append(f"{file.relative_to(HERE)}:{line}: {package} may not import {module}")
    assert wrong == []


@pytest.mark.parametrize(
    "source",
    [
        "import kept.store.jobs",
        "from kept.store import jobs",
        "from kept import store",
        "from ..store import jobs",
        "from .. import store",
        "def later():\n    from kept.store import jobs",
        "if TYPE_CHECKING:\n    from kept.store.jobs import Lease",
        "try:\n    import kept.store\nexcept ImportError: ...",
        "importlib.import_module('kept.store.jobs')",
    ],
)
def test_an_import_is_seen_wherever_it_hides(source: str) -> None:
    assert [_package_of(module, {"store"}) for _, module in imported(source, "kept.search")] == ["store"]
