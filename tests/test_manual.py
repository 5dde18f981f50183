"""The manual and the code name the same things: settings, commands, options, states, operations, tools, metrics."""

import ast
import asyncio
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest
import typer.main

from kept import settings
from kept.cli import command as cli_command
from kept.cli.main import app as cli_app
from kept.model.document import Lifecycle
from kept.model.frontier import Outcome
from kept.model.generation import GenerationState
from kept.model.job import CrawlMode
from kept.model.key import KeyScope
from kept.server.app import make_app
from kept.server.mcp.server import make_mcp_server
from kept.server.metrics import Metrics
from kept.store.notifications import NotificationEvent

HERE = Path(__file__).parent.parent
SOURCE = HERE / "src" / "kept"
DOCS = HERE / "docs"
PAGES = sorted([HERE / "README.md", HERE / "CONTRIBUTING.md", *DOCS.rglob("*.md")])
CODE = re.compile(r"`([^`]+)`")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
UNUSED: Any = SimpleNamespace(db=None)  # the services of a server that answers nothing


def read(page: str) -> str:
    return (HERE / page).read_text("utf-8")


def part_of(page: str, heading: str) -> str:
    """Return the text of a page below a heading, up to the next one of the same level or above."""
    level = heading.partition(" ")[0]
    _, found, rest = read(page).partition(f"\n{heading}\n")
    assert found, f"{page} has no heading '{heading}'"
    return re.split(rf"^#{{1,{len(level)}}} ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def rows(text: str, first_heading: str) -> list[list[str]]:
    """Return the rows of the tables of a text whose first column has this heading."""
    found: list[list[str]] = []
    inside = False
    for line in text.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
        if not line.startswith("|"):
            inside = False
        elif cells[0] == first_heading:
            inside = True
        elif inside and not set(cells[0]) <= set("-: "):
            found.append(cells)
    assert found, f"there is no table with the heading '{first_heading}'"
    return found


def without_blocks(text: str) -> str:
    """Return a text without its fenced code blocks, whose marks would be taken for code spans."""
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def codes(cells: list[list[str]], column: int = 0) -> list[str]:
    return [code for row in cells for code in CODE.findall(row[column])]


# Operator settings


def operator_settings() -> dict[str, Any]:
    return settings.load(environment={}, folder=Path("/nonexistent")).effective()


def test_every_operator_setting_is_in_the_table_and_nothing_else() -> None:
    documented = codes(rows(part_of("docs/cli.md", "## Settings"), "setting"))
    assert sorted(documented) == sorted(operator_settings())


def test_the_defaults_in_the_manual_are_those_of_the_code() -> None:
    tables = rows(part_of("docs/cli.md", "## Settings"), "setting")
    tables += rows(part_of("docs/server.md", "## Limits"), "setting")
    effective, compared = operator_settings(), 0
    for names, default, _ in tables:
        numbers = [float(number.replace(",", "")) for number in re.findall(r"(?<![\w`])\d[\d,]*\d|\b\d\b", default)]
        keys = CODE.findall(names)
        if numbers and all(isinstance(effective[key], int | float) for key in keys):
            assert numbers[: len(keys)] == [float(effective[key]) for key in keys], names
            compared += len(keys)
    assert compared >= 25


def test_every_setting_that_the_manual_names_exists() -> None:
    sections = {name.partition(".")[0] for name in operator_settings()} - {"database"}
    pattern = re.compile(rf"`((?:{'|'.join(sections)})\.[a-z_]+)(?: = [^`]*)?`")
    named = {(page.name, name) for page in PAGES for name in pattern.findall(page.read_text("utf-8"))}
    files = {name for _, name in named if (SOURCE / name).exists() or name.endswith((".py", ".md"))}
    assert {one for one in named if one[1] not in operator_settings() and one[1] not in files} == set()


# The command line


@cache
def commands() -> dict[str, Any]:
    """Return every command by its full name, with groups taken apart."""
    root = typer.main.get_command(cli_app)
    context = root.make_context("kept", [], resilient_parsing=True)

    def below(group: Any, prefix: str) -> Iterator[tuple[str, Any]]:
        for name in group.list_commands(context):
            found = group.get_command(context, name)
            if hasattr(found, "list_commands"):
                yield from below(found, f"{prefix}{name} ")
            else:
                yield f"{prefix}{name}", found

    return dict(below(root, ""))


def options_of(name: str) -> set[str]:
    visible = [one for one in commands()[name].params if not getattr(one, "hidden", False)]
    return {option for one in visible for option in (*one.opts, *one.secondary_opts) if option.startswith("--")}


def command_of(words: str) -> str:
    """Return the command that an example or a table cell begins with."""
    parts = words.removeprefix("kept ").split()
    return next((name for name in (" ".join(parts[:2]), parts[0]) if name in commands()), parts[0])


def source_setting_options() -> set[str]:
    cells = rows(part_of("docs/cli.md", "## Adding a source"), "setting")
    return {option for row in cells for code in CODE.findall(row[0]) for option in OPTION.findall(code)}


def test_every_command_is_in_the_table_and_nothing_else() -> None:
    documented = [command_of(code) for code in codes(rows(read("docs/cli.md"), "command"))]
    assert sorted(documented) == sorted(commands())


def test_every_option_of_a_command_is_in_its_row_and_nothing_else() -> None:
    add_only = set(OPTION.findall(" ".join(codes(rows(read("docs/cli.md"), "option of `add`")))))
    assert options_of("set") == options_of("try") == source_setting_options()
    assert options_of("add") == add_only | source_setting_options()
    for names, text in rows(read("docs/cli.md"), "command"):
        listed = [command_of(code) for code in CODE.findall(names)]
        if not {"add", "set", "try"} & set(listed):
            known = set().union(*(options_of(name) for name in listed))
            assert set(OPTION.findall(text)) == known, names


def examples() -> Iterator[tuple[str, str, bool]]:
    """Yield every `kept …` command of README and manual: page, command, and whether it is a line of a code block."""
    for page in PAGES:
        text = page.read_text("utf-8")
        fenced = re.findall(r"^```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        for line in [*re.findall(r"^ {4}(kept .*)$", text, re.MULTILINE), *"\n".join(fenced).splitlines()]:
            if line.startswith("kept "):
                yield page.name, re.split(r"\s+#\s", line)[0].strip(), True
        for code in CODE.findall(without_blocks(text)):
            if code.startswith("kept "):
                yield page.name, code, False


def parse_error(line: str) -> str | None:
    """Return why the command line would refuse a call, without running it."""
    line = re.split(r" >>? ", line)[0]
    words = shlex.split(line.replace("[", "").replace("]", "").replace("…", ""))[1:]
    numbers = {"N": "3", "A": "1", "B": "2", "COMMAND": "add"}
    words = [numbers.get(word, word) for word in words]
    current: Any = typer.main.get_command(cli_app)
    parent, name = None, "kept"
    try:
        while True:
            context = current.make_context(name, list(words), parent=parent)
            if not hasattr(current, "resolve_command") or not context._protected_args + context.args:
                return None
            name, current, words = current.resolve_command(context, context._protected_args + context.args)
            parent = context
    except Exception as error:
        return None if str(error) == "0" else f"{type(error).__name__}: {error}"  # --help ends with 0


def test_every_example_of_the_manual_parses() -> None:
    found = list(examples())
    assert len([one for one in found if one[2]]) >= 40
    wrong = []
    for page, line, whole in found:
        error = parse_error(line)
        if error and (whole or not error.startswith("MissingParameter")):  # in prose a command may be named alone
            wrong.append(f"{page}: {line}: {error}")
    assert wrong == []


@pytest.mark.parametrize(
    "line", ["kept ad docs", "kept add docs --no-such-option", "kept rollback django", "kept search x --limit many"]
)
def test_a_wrong_example_would_be_noticed(line: str) -> None:
    assert parse_error(line)


def test_every_example_of_the_help_parses() -> None:
    lines = [
        re.split(r"\s{2,}", line.strip())[0]
        for name in commands()
        for line in (commands()[name].help or "").splitlines()
        if line.strip().startswith("kept ")
    ]
    assert len(lines) >= len(commands())
    assert {line: error for line in lines if (error := parse_error(line))} == {}


def test_the_exit_codes_are_those_of_the_code() -> None:
    in_code = {value for name, value in vars(cli_command).items() if name.startswith("EXIT_")}
    documented = {int(row[0]) for row in rows(read("docs/cli.md"), "exit code")}
    assert documented == in_code | {130}  # an interrupted process


# States


def test_every_generation_state_is_explained() -> None:
    assert re.findall(r"^- \*\*(\w+)\*\*:", part_of("docs/concepts.md", "## Generations"), re.MULTILINE) == [
        *("building", "active", "retired", "held", "abandoned")
    ]
    assert set(GenerationState) == {"building", "active", "retired", "held", "abandoned"}


@pytest.mark.parametrize(("word", "states"), [("outcome", Outcome), ("lifecycle", Lifecycle)])
def test_outcomes_and_lifecycles_are_listed_where_the_word_is_explained(word: str, states: type[Outcome]) -> None:
    cell = next(row[1] for row in rows(read("docs/concepts.md"), "word") if row[0] == f"**{word}**")
    assert CODE.findall(cell) == [str(state) for state in states]


def test_every_lifecycle_has_a_row_that_says_how_a_document_gets_there() -> None:
    documented = codes(rows(part_of("docs/concepts.md", "## What happens to a document"), "result of the crawl"), 1)
    assert set(documented) == set(Lifecycle)


def test_crawl_modes_and_key_scopes_are_those_of_the_code() -> None:
    cell = next(row[1] for row in rows(read("docs/api.md"), "operation") if "/crawls" in row[0])
    assert set(re.findall(r'"(\w+)"(?: \\\||,)', cell)) - {"mode"} == set(CrawlMode)
    cell = next(row[1] for row in rows(read("docs/cli.md"), "command") if "`kept keys add" in row[0])
    assert set(re.findall(r"`(?:--scope )?(\w+)`", cell)) == set(KeyScope)


# The server


def test_every_api_operation_is_in_the_table_and_nothing_else() -> None:
    app = make_app(UNUSED, settings.load(environment={}, folder=Path("/nonexistent")))
    operations = {
        f"{method.upper()} {path.removeprefix('/api/v1')}"
        for path, methods in app.openapi()["paths"].items()
        for method in methods
    }
    assert sorted(codes(rows(read("docs/api.md"), "operation"))) == sorted(operations)


def test_the_parameters_of_a_search_are_in_the_table() -> None:
    app = make_app(UNUSED, settings.load(environment={}, folder=Path("/nonexistent")))
    parameters = {one["name"] for one in app.openapi()["paths"]["/api/v1/search"]["get"]["parameters"]}
    cell = next(row[1] for row in rows(read("docs/api.md"), "operation") if row[0] == "`GET /search`")
    assert set(CODE.findall(cell)) == parameters - {"if-none-match"}


def test_every_mcp_tool_and_its_parameters_are_in_the_table_and_nothing_else() -> None:
    server = make_mcp_server(UNUSED, settings.load(environment={}, folder=Path("/nonexistent")))
    tools = {tool.name: tool.input_schema for tool in asyncio.run(server.list_tools())}
    documented = dict(re.findall(r"(\w+)\(([^)]*)\)", " ".join(codes(rows(read("docs/mcp.md"), "tool")))))
    assert sorted(documented) == sorted(tools)
    for name, signature in documented.items():
        listed = [word.strip() for word in re.split(r", | or ", signature) if word.strip()]
        known, required = set(tools[name].get("properties", {})), set(tools[name].get("required", []))
        given = {word.removesuffix("?") for word in listed} - {"…"}
        assert given <= known, name
        assert "…" in listed or given == known, name
        assert required <= {word for word in listed if not word.endswith("?")}, name


def test_every_metric_is_in_the_table_and_nothing_else() -> None:
    names = {
        f"{family.name}_total" if family.type == "counter" else family.name for family in Metrics().registry.collect()
    }
    assert set(codes(rows(read("docs/server.md"), "metric"))) == names


def test_the_webhook_events_are_those_of_the_code() -> None:
    cell = next(
        row[1] for row in rows(part_of("docs/schedules.md", "## Webhooks"), "header") if row[0] == "`Kept-Event`"
    )
    assert set(CODE.findall(cell)) == set(get_args(NotificationEvent))


def test_every_log_event_of_the_manual_is_logged() -> None:
    texts = {
        node.value
        for file in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert set(codes(rows(read("docs/jobs.md"), "event"))) <= texts


# Links, paths, sizes


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_link_of_the_manual_leads_to_a_file_and_to_a_heading_in_it() -> None:
    wrong = []
    for page in [*PAGES, HERE / "CHANGELOG.md"]:
        for link in re.findall(r"\]\(([^)\s]+)\)|src=\"([^\"]+)\"", page.read_text("utf-8")):
            path, _, anchor = "".join(link).partition("#")
            target = (page.parent / path).resolve() if path else page
            if "://" in path:
                continue
            if not target.exists() or (anchor and anchor not in anchors(target)):
                wrong.append(f"{page.relative_to(HERE)}: {''.join(link)}")
    assert wrong == []


PATH = re.compile(r"[\w.*{}-]+(?:/[\w.*{}-]+)+/?|\w+\.(?:py|md|toml)")
ROOTS = (HERE, SOURCE, HERE / "tests", DOCS)


def paths_named(text: str) -> Iterator[str]:
    """Yield what looks like a file or folder of the repository in the code spans of a text."""
    for code in CODE.findall(without_blocks(text)):
        for word in code.split():
            word = word.strip(",;()").partition("::")[0]
            if PATH.fullmatch(word) and (
                word.endswith("/") or re.search(r"\.(?:py|sql|md|toml|html|css|js|svg|txt|in)$", word)
            ):
                yield word


@pytest.mark.parametrize(
    "page",
    [
        *("CONTRIBUTING.md", "docs/layout.md", "docs/walk.md", "docs/glossary.md"),
        *(f"docs/decisions/{page.name}" for page in sorted((DOCS / "decisions").glob("*.md"))),
    ],
)
def test_every_path_that_is_named_exists(page: str) -> None:
    named = set(paths_named(read(page)))
    if page.startswith("docs/decisions/"):  # they name files of others, too
        named = {name for name in named if name.startswith(("src/", "tests/", "docs/", "bench/", "tools/"))}
    wrong = {name for name in named if not any((root / name).exists() for root in ROOTS)}
    elsewhere = {"kept.toml", "llms.txt", "robots.txt"}
    bare = {name for name in wrong if "/" not in name and any(SOURCE.rglob(name))}
    assert wrong - elsewhere - bare == set()
    if not page.startswith("docs/decisions/"):
        assert len(named) >= 5


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/layout.md", "docs/glossary.md"])
def test_every_name_of_the_code_that_is_named_exists(page: str) -> None:
    """Types, constants and functions: CamelCase, UPPER_CASE and names with an underscore."""
    name = re.compile(r"_?(?:[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+|[A-Z]+(?:_[A-Z]+)+|[a-z]+(?:_[a-z]+)+)(?:\.\w+)*")
    named = {
        code
        for code in CODE.findall(without_blocks(read(page)))
        if name.fullmatch(code) and not code.startswith("KEPT_")
    }
    code = "\n".join(file.read_text("utf-8") for root in (SOURCE, HERE / "tests") for file in root.rglob("*.py"))
    words = set(re.findall(r"\w+", code))
    assert {one for one in named if not set(one.split(".")) <= words} == set()
    assert named


@pytest.mark.parametrize(
    ("record", "package"),
    [
        ("0007-our-own-html-writer.md", "extract/html"),
        ("0011-our-own-office-readers.md", "extract/office"),
        ("0023-our-own-http-client.md", "origins/web/http"),
        ("0027-own-markdown-outline.md", "extract/markdown"),
    ],
)
def test_a_record_states_the_true_size_of_what_we_wrote_ourselves(record: str, package: str) -> None:
    stated = re.search(rf"`src/kept/{package}/` has about ([\d,]+) lines", read(f"docs/decisions/{record}"))
    assert stated, "the record states the number of lines"
    lines = sum(len(file.read_text("utf-8").splitlines()) for file in (SOURCE / package).glob("*.py"))
    assert abs(int(stated[1].replace(",", "")) - lines) <= lines / 10, f"{package} has {lines} lines now"


def test_no_two_records_have_the_same_number() -> None:
    numbers = [record.name[:4] for record in (DOCS / "decisions").glob("*.md")]
    assert sorted(numbers) == [f"{number:04}" for number in range(1, len(numbers) + 1)]


def test_every_record_says_what_was_faced_chosen_and_what_it_costs() -> None:
    for record in sorted((DOCS / "decisions").glob("*.md")):
        text = record.read_text("utf-8")
        number = int(record.name[:4])
        assert text.startswith(f"# {number}. "), record.name
        assert all(re.search(rf"\*\*{word}\b[^*]*\*\*", text) for word in ("Faced", "Chose", "Costs")), record.name
