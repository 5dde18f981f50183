"""The table of a source's settings, and the interfaces that are held to it."""

import inspect
import re
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

import kept
from kept.cli import add, set_, try_
from kept.errors import InvalidInput
from kept.model.source import Header, SourceSettings
from kept.server.api.models import SourceInModel
from kept.server.mcp import sources as mcp_sources
from kept.server.web.add import parse_source_options
from kept.service.source_options import OPTION_NAMES, SOURCE_OPTIONS, SourceOption, SourceOptions

EXAMPLES: dict[str, Any] = {
    "max_pages": 9,
    "max_depth": 3,
    "max_time": "2h",
    "no_traps": True,
    "not_a_trap": ["calendar/*"],
    "scope": ["host"],
    "include": ["*.md"],
    "exclude": ["drafts/*"],
    "header": ["X-One: 1"],
    "cookie": "a=b",
    "user_agent": "Mine/1",
    "proxy": "http://127.0.0.1:3128",
    "ca_file": "/etc/ca.pem",
    "select": "main",
    "drop": [".ad"],
    "render": "never",
    "ignore_robots": True,
    "concurrency": 2,
    "delay": 1.5,
    "tag": ["ours"],
    "schedule": "1d",
    "webhook": "https://hooks.test/",
    "webhook_secret": "env:SECRET",
    "watch": True,
    "hook_secret": "env:SECRET",
}
JSON_TYPES = {"integer": "integer", "number": "number", "flag": "boolean", "texts": "array", "text": "string"}
NOT_OFFERED = {"scope.pages", "limits.max_bytes", "access.allowed", "given_by"} | {
    f"access.{name}_seconds" for name in ("connect", "first_byte", "whole")
}


def test_an_empty_text_clears_what_was_set_and_silence_leaves_it() -> None:
    before = SourceOptions(max_time="2h", include=["*.md"], user_agent="Mine/1").apply_to(SourceSettings())
    assert before.limits.max_seconds == 7200
    assert SourceOptions().apply_to(before) == before
    clearing = SourceOptions(max_time="", include=[""], user_agent="")
    assert bool(clearing)
    assert clearing.apply_to(before) == SourceSettings()


@pytest.mark.parametrize("option", SOURCE_OPTIONS, ids=lambda option: option.name)
def test_every_setting_is_set_and_cleared_in_the_same_way(option: SourceOption) -> None:
    changed = SourceOptions(**{option.name: EXAMPLES[option.name]}).apply_to(SourceSettings())
    assert changed != SourceSettings()
    assert SourceOptions(**{option.name: None}).apply_to(changed) == changed
    for nothing in ("", *([[], [""]] if option.kind == "texts" else [])):
        assert SourceOptions(**{option.name: nothing}).apply_to(changed) == SourceSettings()
    if option.name in SourceInModel.model_fields:
        cleared = SourceInModel.model_validate({option.name: None}).to_options(clear_null=True)
        assert cleared.apply_to(changed) == SourceSettings()
        assert SourceInModel.model_validate({option.name: None}).to_options().apply_to(changed) == changed
    if "web" in option.on:
        assert parse_source_options({option.name: ""}, clear_empty=True).apply_to(changed) == SourceSettings()
        assert parse_source_options({option.name: ""}).apply_to(changed) == changed


def test_headers_are_cleared_one_by_one_or_all_but_the_cookie() -> None:
    before = SourceOptions(header=["X-One: 1", "X-Two: 2"], cookie="a=b").apply_to(SourceSettings())
    two, cookie = Header(name="X-Two", value="2"), Header(name="Cookie", value="a=b")
    assert SourceOptions(header=["x-one:"]).apply_to(before).access.headers == (two, cookie)
    assert SourceOptions(header=[]).apply_to(before).access.headers == (cookie,)
    assert SourceOptions(cookie="").apply_to(before).access.headers == before.access.headers[:2]


@pytest.mark.parametrize(
    ("name", "value"), [("max_pages", 0), ("max_pages", "1_0"), ("concurrency", 65), ("delay", "nan"), ("delay", -1)]
)
def test_a_number_out_of_range_is_refused(name: str, value: object) -> None:
    with pytest.raises(InvalidInput, match=f"--{name.replace('_', '-')} should be a (whole )?number from"):
        SourceOptions(**{name: value})


def test_the_table_has_every_setting_of_a_source() -> None:
    def leaves(cls: Any, path: str = "") -> set[str]:
        found = set()
        for one in fields(cls):
            nested = one.default_factory if is_dataclass(one.default_factory) else None
            found |= leaves(nested, f"{path}{one.name}.") if nested else {f"{path}{one.name}"}
        return found

    assert {option.field for option in SOURCE_OPTIONS} == leaves(SourceSettings) - NOT_OFFERED
    assert EXAMPLES.keys() == set(OPTION_NAMES)


def test_the_command_line_offers_the_table() -> None:
    for command in (add.add, set_.set_, try_.try_):
        assert [name for name in inspect.signature(command).parameters if name in OPTION_NAMES] == list(OPTION_NAMES)


def test_the_api_model_is_that_of_the_table() -> None:
    offered = [option for option in SOURCE_OPTIONS if "api" in option.on]
    assert list(SourceInModel.model_fields) == [option.name for option in offered]
    schema = SourceInModel.model_json_schema()["properties"]
    for option in offered:
        _check_schema(option, schema[option.name])


def test_the_mcp_tool_has_the_settings_of_the_table() -> None:
    parameters = _mcp_parameters("add_source")
    offered = {option.name: option for option in SOURCE_OPTIONS if "mcp" in option.on}
    assert parameters.keys() - {"root", "context", "name", "version", "wait"} == offered.keys()
    for name, option in offered.items():
        _check_schema(option, TypeAdapter(parameters[name].annotation).json_schema())


def _check_schema(option: SourceOption, schema: dict[str, Any]) -> None:
    [kind] = [one for one in schema["anyOf"] if one["type"] != "null"]
    assert kind["type"] == JSON_TYPES[option.kind], option.name
    assert kind.get("minimum") == option.minimum, option.name
    if option.maximum is not None:
        assert kind["maximum"] == option.maximum


def _mcp_parameters(tool: str) -> dict[str, inspect.Parameter]:
    found: dict[str, inspect.Parameter] = {}

    class Registry:
        services = None

        def tool(self, *_: object) -> Any:
            def register(function: Any) -> Any:
                if function.__name__ == tool:
                    found.update(inspect.signature(function).parameters)
                return function

            return register

    mcp_sources._register_crawl_tools(Registry())  # type: ignore[arg-type]
    return found


def test_the_web_forms_have_an_input_for_every_setting_they_offer() -> None:
    templates = Path(kept.__file__).parent / "server" / "web" / "templates"
    macros = (templates / "macros.html").read_text("utf-8")
    pages = [(templates / page).read_text("utf-8") for page in ("add.html", "source.html")]
    inputs = set(re.findall(r'<(?:input|textarea|select)\b[^>]*\bname="(\w+)"', "".join([macros, *pages])))
    offered = {option.name for option in SOURCE_OPTIONS if "web" in option.on}
    assert offered <= inputs
    assert {option.name for option in SOURCE_OPTIONS} & inputs == offered
