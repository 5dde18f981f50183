"""docs/layout.md, enforced: its table says who may look at whom, and every module is held to it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent.parent
PACKAGE = HERE / "src" / "kept"
PAGE = (HERE / "docs" / "layout.md").read_text("utf-8")


def may_import() -> dict[str, frozenset[str]]:
    """The table of the page: room -> the rooms it may look at."""
    lines = PAGE.partition("## Who may look at whom")[2].partition("\n## ")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    assert rows[0] == ["room", "may import"], "the table is where it was"
    table: dict[str, frozenset[str]] = {}
    for rooms, allowed in rows[2:]:
        seen = frozenset(table) if allowed == "everything above" else frozenset(_names(allowed))
        table |= dict.fromkeys(_names(rooms), seen)
    return table


def planned() -> set[str]:
    sentence = re.search(r"^Planned, and not there yet: (.*)\.$", PAGE, re.MULTILINE)
    return set(re.findall(r"`(\w+)`", sentence[1])) if sentence else set()


def rooms_of_the_package() -> set[str]:
    found = (path for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists())
    return {path.stem for path in found} - {"__init__", "__main__"}


def imported(source: str, package: str) -> Iterator[tuple[int, str]]:
    """Every module of Kept that a source imports, wherever in it: (line, dotted name)."""
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


def _room(module: str, rooms: set[str]) -> str | None:
    """The room a dotted name leads to; None for the package itself, which only says its version."""
    _, _, below = module.partition(".")
    room = below.partition(".")[0]
    return room if room in rooms else None


def test_every_room_is_in_the_table_and_every_room_of_the_table_exists_or_is_planned() -> None:
    listed, there = set(may_import()), rooms_of_the_package()
    assert there - listed == set(), "docs/layout.md does not say what these rooms may import"
    assert listed - there == planned(), "docs/layout.md calls rooms planned that exist, or names some that do not"


def test_the_table_only_looks_back() -> None:
    table = may_import()
    order = list(table)
    for room, allowed in table.items():
        assert allowed <= set(order[: order.index(room)]), f"{room} looks forward"


def test_every_module_imports_only_what_the_table_allows() -> None:
    table = may_import() | {"__init__": frozenset(), "__main__": frozenset({"cli"})}
    rooms = rooms_of_the_package()
    wrong = []
    for file in sorted(PACKAGE.rglob("*.py")):
        parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
        room = parts[1]
        for line, module in imported(file.read_text("utf-8"), ".".join(parts[:-1])):
            other = _room(module, rooms)
            if other and other != room and other not in table.get(room, ()):
                wrong.append(f"{file.relative_to(HERE)}:{line}: {room} may not look at {module}")
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
        "if TYPE_CHECKING:\n    from kept.store.jobs import Place",
        "try:\n    import kept.store\nexcept ImportError: ...",
        "importlib.import_module('kept.store.jobs')",
    ],
)
def test_an_import_is_seen_wherever_it_hides(source: str) -> None:
    assert [_room(module, {"store"}) for _, module in imported(source, "kept.search")] == ["store"]
