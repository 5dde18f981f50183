"""Trace one page from ``kept add`` to a hit of ``kept search``, and print the functions it passes.

    python -m tests.walk            print them
    python -m tests.walk --write    write them into docs/walk.md

A *hop* is a function of src/kept that is called from another module, receives or returns the page (its address, its
bytes, its text), and hands it on: to another module, the database, the network or a reader process. Helpers that look
at it and return are no hops.
A *border* is a call that leads from one package to a hop of another. docs/walk.md shows them.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from tests.sites.pages import serving

SOURCE = Path(__file__).parent.parent / "src" / "kept"
ADDRESS, WORD = "tern-page", "pelican"  # in the address and in the text of the page, and nowhere else, nor in the query
PAGE = (
    f"<!doctype html><title>Pools</title><main><h1>Pools</h1><p>A {WORD} pool keeps connections.</p>"
    f"<h2 id=more>More</h2><p>The {WORD} has the last word.</p></main>"
).encode()
MAX_REPR = 60_000
PAGE_OF_THE_MANUAL = SOURCE.parents[1] / "docs" / "walk.md"
TABLE_HEADING = "\n| module | function |\n| --- | --- |\n"
SINKS = ("store/", "extract/reader_pool/", "origins/web/http/connection.py")  # they hand it on to what is not traced

Function = tuple[str, str]  # the module below src/kept, and the qualified name


@dataclass
class Seen:
    """The traced calls of a function."""

    callers: set[Function] = field(default_factory=set)
    carries: bool = False


@dataclass
class Walk:
    hops: list[Function]
    borders: set[tuple[Function, Function]]


class Tracer:
    """Record the functions of src/kept that are called while it is active, in all threads."""

    def __init__(self) -> None:
        self.functions: dict[Function, Seen] = {}

    def __enter__(self) -> "Tracer":
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]

    def _profile(self, frame: FrameType, event: str, value: Any) -> None:
        function = function_of(frame.f_code)
        if event not in ("call", "return") or function is None:
            return
        if event == "call":
            seen = self.functions.setdefault(function, Seen())
            if caller := caller_of(frame):
                seen.callers.add(caller)
            if not seen.carries:
                code = frame.f_code
                names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + 2]
                seen.carries = any(carries(frame.f_locals.get(name)) for name in names if name != "self")
        elif function in self.functions and not hasattr(value, "send"):
            self.functions[function].carries |= carries(value)


def function_of(code: CodeType) -> Function | None:
    """Return a function of src/kept; None for others, and for module and class bodies."""
    path, name = code.co_filename, code.co_qualname
    if not path.startswith(f"{SOURCE}/") or not code.co_flags & 0x2:  # CO_NEWLOCALS: bodies of classes have none
        return None
    if name.endswith(">"):  # <module>, <lambda>, comprehensions
        return None
    return path[len(str(SOURCE)) + 1 :], name


def caller_of(frame: FrameType) -> Function | None:
    """Return the function of src/kept that made a call; None if the event loop did."""
    back = frame.f_back
    while back is not None:
        if back.f_code.co_filename.endswith("asyncio/events.py"):
            return None
        if found := function_of(back.f_code):
            return found
        back = back.f_back
    return None


def carries(value: Any) -> bool:
    """Return whether a value has the page, or a part of it, in it."""
    if value is None or isinstance(value, int | float):
        return False
    if isinstance(value, bytes | bytearray):
        return any(mark.encode() in value for mark in (ADDRESS, WORD))
    try:
        text = value if isinstance(value, str) else repr(value)[:MAX_REPR]
    except Exception:  # half made
        return False
    return ADDRESS in text or WORD in text


def walk(functions: dict[Function, Seen]) -> Walk:
    """Return the hops of a trace and the borders between packages that they cross."""
    calls: dict[Function, set[Function]] = {}
    carrying = {name: seen for name, seen in functions.items() if seen.carries}
    for name, seen in carrying.items():
        for caller in seen.callers:
            calls.setdefault(caller, set()).add(name)

    def hands_on(name: Function) -> bool:
        inside, open_ = {name}, [name]
        while open_:
            for called in calls.get(open_.pop(), ()):
                if called[0] != name[0]:
                    return True
                if called not in inside:
                    inside.add(called)
                    open_.append(called)
        return name[0].startswith(SINKS)

    def comes_from_elsewhere(name: Function) -> bool:
        if not carrying[name].callers:
            return not name[1].split(".")[-1].startswith("_")
        return any(caller[0] != name[0] for caller in carrying[name].callers)

    hops = [name for name in carrying if comes_from_elsewhere(name) and hands_on(name)]
    crossed = {(caller, hop) for hop in hops for caller in carrying[hop].callers}
    return Walk(hops, {(caller, hop) for caller, hop in crossed if package_of(caller) != package_of(hop)})


def package_of(name: Function) -> str:
    return name[0].partition("/")[0].removesuffix(".py")


def trace_command(words: list[str]) -> dict[Function, Seen]:
    from kept.cli.main import main

    sys.argv = ["kept", *words]
    code: object = None
    with Tracer() as tracer:
        try:
            main()
        except SystemExit as end:
            code = end.code
    if code:
        sys.exit(f"kept {' '.join(words)} ended with {code}")
    return tracer.functions


def trace_reader() -> dict[Function, Seen]:
    """Trace the reading of the page, which a crawl does in processes of its own."""
    from kept.extract.reader import parse_page

    with Tracer() as tracer:
        parse_page(PAGE, content_type="text/html; charset=utf-8", url=f"https://docs.test/{ADDRESS}")
    return tracer.functions


def trace_all() -> dict[Function, Seen]:
    """Trace each part in a process of its own: what one has loaded and remembered would hide calls of the next."""
    found: dict[Function, Seen] = {}
    with tempfile.TemporaryDirectory() as folder, serving({f"/{ADDRESS}": ("text/html; charset=utf-8", PAGE)}) as site:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("KEPT_", "XDG_"))}
        environment |= {"KEPT_DATABASE": f"sqlite:///{folder}/kept.db", "HOME": folder, "NO_COLOR": "1"}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        for words in (["add", f"{site}{ADDRESS}"], [], ["search", "connections", "pool"]):
            output = Path(folder) / "trace.json"
            subprocess.run(
                [sys.executable, "-m", "tests.walk", str(output), *words],
                env=environment,
                cwd=Path(__file__).parent.parent,
                check=True,
                capture_output=True,
            )
            for name, seen in load(output):
                known = found.setdefault(name, Seen())
                known.callers |= seen.callers
                known.carries |= seen.carries
    return found


def save(functions: dict[Function, Seen], output: Path) -> None:
    output.write_text(json.dumps([[name, sorted(seen.callers), seen.carries] for name, seen in functions.items()]))


def load(output: Path) -> Iterator[tuple[Function, Seen]]:
    for (module, name), callers, is_carrying in json.loads(output.read_text()):
        yield (module, name), Seen({(one, other) for one, other in callers}, is_carrying)


def table(hops: Iterable[Function]) -> str:
    """Return the hops as the table of docs/walk.md, those of one module in a row."""
    rows: list[tuple[str, list[str]]] = []
    for module, name in hops:
        if not rows or rows[-1][0] != module:
            rows.append((module, []))
        rows[-1][1].append(f"`{name}`")
    return "".join(f"| `{module}` | {', '.join(names)} |\n" for module, names in rows)


def write(way: Walk, page: Path = PAGE_OF_THE_MANUAL) -> None:
    """Replace the table and the counts of the page."""
    text, heading, _ = page.read_text("utf-8").partition(TABLE_HEADING)
    text = re.sub(r"\*\*\d+ functions and \d+ borders\*\*", counts(way), text)
    page.write_text(f"{text}{heading}{table(way.hops)}", "utf-8")


def counts(way: Walk) -> str:
    return f"**{len(way.hops)} functions and {len(way.borders)} borders**"


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["--write"]):
        output, *words = sys.argv[1:]
        save(trace_command(words) if words else trace_reader(), Path(output))
    else:
        found = walk(trace_all())
        if sys.argv[1:]:
            write(found)
        print(f"{table(found.hops)}\n{counts(found)}")
