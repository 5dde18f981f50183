"""JSON and API descriptions in JSON."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kept.extract.json_data import extract
from kept.extract.sections import Extraction, Unreadable

API = {
    "openapi": "3.1.0",
    "info": {"title": "Tide API", "version": "2", "description": "Heights of *water*."},
    "servers": [{"url": "https://api.example.org"}],
    "paths": {
        "/ports/{port}": {
            "parameters": [{"name": "port", "in": "path", "required": True, "schema": {"type": "string"}}],
            "get": {
                "summary": "One port",
                "operationId": "getPort",
                "parameters": [
                    {"name": "unit", "in": "query", "schema": {"enum": ["m", "ft"]}, "description": "m | ft"}
                ],
                "responses": {"200": {"description": "The port"}},
            },
            "post": {
                "deprecated": True,
                "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Port"}}}},
            },
        }
    },
    "components": {
        "schemas": {
            "Port": {
                "description": "A harbour.",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string", "description": "What it is called."},
                    "tides": {"type": "array", "items": {"type": "number"}},
                },
            }
        }
    },
}
EXPECTED = r"""# Tide API

Version 2

Heights of *water*.

- https://api.example.org

## GET /ports/{port}

One port

Operation: `getPort`

| Parameter | In | Type | Description |
| --- | --- | --- | --- |
| `port` | path, required | string |  |
| `unit` | query | `m`, `ft` | m \| ft |

| Response | Description |
| --- | --- |
| `200` | The port |

## POST /ports/{port}

**Deprecated**

| Parameter | In | Type | Description |
| --- | --- | --- | --- |
| `port` | path, required | string |  |

**Request body**

- `application/json`: `Port`

## Port

A harbour.

| Field | Type | Description |
| --- | --- | --- |
| `name` | string, required | What it is called. |
| `tides` | array of number |  |"""


def test_an_api_description_becomes_a_page_with_a_section_for_each_operation() -> None:
    extraction = extract(json.dumps(API).encode(), None)
    assert isinstance(extraction, Extraction)
    assert (extraction.title, extraction.markdown) == ("Tide API", EXPECTED)
    assert [node.heading for node in extraction.tree.children[0].children] == [
        "GET /ports/{port}",
        "POST /ports/{port}",
        "Port",
    ]


def test_other_json_is_an_indented_code_block() -> None:
    extraction = extract(b'{"name": "beds", "rows": [1]}', None)
    assert isinstance(extraction, Extraction)
    assert (extraction.title, extraction.markdown) == (
        "beds",
        '```json\n{\n  "name": "beds",\n  "rows": [\n    1\n  ]\n}\n```',
    )


def test_a_lone_surrogate_is_replaced() -> None:
    extraction = extract(rb'["\ud800 \u00e9"]', None)
    assert isinstance(extraction, Extraction)
    assert extraction.markdown.encode() == '```json\n[\n  "? é"\n]\n```'.encode()


@pytest.mark.parametrize("body", [b"", b"{", b"[" * 100_000])
def test_invalid_json_is_unreadable(body: bytes) -> None:
    assert isinstance(extract(body, None), Unreadable)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inside: (
        st.lists(inside, max_size=3)
        | st.dictionaries(
            st.sampled_from(["get", "parameters", "$ref", "schema", "items", "type", "enum", "oneOf", "content", "x"]),
            inside,
            max_size=4,
        )
    ),
    max_leaves=15,
)


def test_the_data_of_a_page_that_is_kept_is_left_out() -> None:
    left_out = extract(b'{"type": "module", "source": "doc/api/assert.md", "modules": []}', None)
    assert isinstance(left_out, Unreadable)
    assert "doc/api/assert.md" in left_out.reason


@given(ANYTHING, ANYTHING)
def test_no_description_makes_the_reader_fail(paths: object, schemas: object) -> None:
    api = {"openapi": "3.0.0", "paths": {"/a": paths}, "components": {"schemas": {"B": schemas}}}
    assert isinstance(extract(json.dumps(api).encode(), None), Extraction)
