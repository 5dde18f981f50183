"""YAML and API descriptions in YAML."""

import json

import pytest

from kept.extract import json_data
from kept.extract.sections import Extraction, Unreadable
from kept.extract.yaml_data import MAX_NODES, extract

API = """\
# A comment
openapi: 3.1.0
info: {title: Tide API, version: 1.10, description: "Heights of *water*."}
x-shared: &port
  name: port
  in: path
  required: true
  schema: {type: string}
paths:
  /ports/{port}:
    get:
      summary: |
        One port
        in two lines
      parameters:
        - *port
        - <<: *port
          name: unit
          required: false
      responses:
        200: {description: The port}
        404: {description: No such port}
"""
EXPECTED = """# Tide API

Version 1.10

Heights of *water*.

## GET /ports/{port}

One port
in two lines

| Parameter | In | Type | Description |
| --- | --- | --- | --- |
| `port` | path, required | string |  |
| `unit` | path | string |  |

| Response | Description |
| --- | --- |
| `200` | The port |
| `404` | No such port |"""

ASYNC_2 = """\
asyncapi: 2.6.0
info: {title: Tide events, version: 1}
channels:
  tide/{port}:
    description: One channel a port.
    subscribe:
      summary: Heights as they change
      message: {name: height, payload: {type: number}, summary: In metres}
components: {schemas: {Port: {type: string}}}
"""
ASYNC_3 = """\
asyncapi: 3.0.0
info: {title: Tide events, version: 1}
channels:
  tides: {address: 'tide/{port}', messages: {height: {name: height, payload: {type: number}}}}
operations:
  onHeight: {action: receive, channel: {$ref: '#/channels/tides'}, summary: Heights as they change}
"""


def _extract(text: str) -> Extraction:
    extraction = extract(text.encode(), None)
    assert isinstance(extraction, Extraction), extraction
    return extraction


def test_an_api_description_in_yaml_becomes_a_page_as_in_json() -> None:
    extraction = _extract(API)
    assert extraction.title == "Tide API"
    assert extraction.markdown == EXPECTED
    api = {"openapi": "3", "info": {"title": "T"}, "paths": {"/a": {"get": {"deprecated": True}}}}
    in_json = json_data.extract(json.dumps(api).encode(), None)
    assert _extract(json.dumps(api)) == in_json


def test_channels_become_sections() -> None:
    second = _extract(ASYNC_2)
    assert [node.heading for node in second.tree.children[0].children] == ["SUBSCRIBE tide/{port}", "Port"]
    assert "One channel a port.\n\nHeights as they change\n\n- `height`: number: In metres" in second.markdown
    third = _extract(ASYNC_3)
    assert "## RECEIVE tide/{port}\n\nHeights as they change\n\nOperation: `onHeight`\n\n- `height`: number" in (
        third.markdown
    )


def test_other_yaml_is_kept_unchanged() -> None:
    text = "key: [1, 2]  # why\n---\nsecond: document"
    assert _extract(text).markdown == f"```yaml\n{text}\n```"


LAUGHS = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (LAUGHS, f"more than {MAX_NODES:,} values"),
        ("[" * 200_000, "nested more than"),
        ("- " * 200_000 + "x", "nested more than"),
        ("a: &a [*a]", "an alias of an unknown anchor"),
        ("a: *b", ""),
        ("? [x]\n: y", "a key that is not a scalar"),
        ("a: b: c", ""),
    ],
)
def test_hostile_yaml_is_unreadable_with_a_reason(text: str, reason: str) -> None:
    extraction = extract(text.encode(), None)
    assert isinstance(extraction, Unreadable), extraction
    assert extraction.reason.startswith("not YAML that can be read: ")
    assert reason in extraction.reason


def test_tags_create_no_objects() -> None:
    extraction = _extract("openapi: 3\ninfo: {title: !!python/object/apply:os.system [ls]}\npaths: {}")
    assert extraction.markdown == "# API"
