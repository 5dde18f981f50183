"""The OpenAPI document: what FastAPI derives from the routes, with every error as a problem."""

import json
import re
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from kept import __version__

DESCRIPTION = "Search, read and manage the documentation that Kept holds. Every error is a problem (RFC 9457)."
PROBLEM_SCHEMA = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What was expected, what was found, what to do next."},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"at": {"type": "string"}, "detail": {"type": "string"}},
            },
        },
    },
    "example": {
        "type": "about:blank",
        "title": "Not Found",
        "status": 404,
        "detail": "There is no source named 'djano'. Did you mean 'django'?",
    },
}
ERROR_RESPONSE = {
    "description": "An error (RFC 9457).",
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
}
_FASTAPI_ERROR_SCHEMAS = ("HTTPValidationError", "ValidationError")


def install_openapi(app: FastAPI) -> None:
    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _build_openapi(app)
        return app.openapi_schema

    vars(app)["openapi"] = openapi  # as FastAPI documents it: the method of this instance is replaced


def _build_openapi(app: FastAPI) -> dict[str, Any]:
    document = _strip_model_suffix(
        get_openapi(title=app.title, version=__version__, routes=app.routes, description=DESCRIPTION)
    )
    components = document.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for name in _FASTAPI_ERROR_SCHEMAS:
        schemas.pop(name, None)
    schemas["Problem"] = PROBLEM_SCHEMA
    components["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{}, {"key": []}]
    for operations in document["paths"].values():
        for operation in operations.values():
            operation["responses"].pop("422", None)
            for response in operation["responses"].values():
                content = response.get("content", {})
                if len(content) > 1 and content.get("application/json") == {"schema": {}}:
                    del content["application/json"]  # FastAPI adds it although the response is not JSON
            operation["responses"]["default"] = ERROR_RESPONSE
    return document


def _strip_model_suffix(document: dict[str, Any]) -> dict[str, Any]:
    """Name the schema of `SourceModel` `Source`, as key, title and reference."""
    text = re.sub(r'"(#/components/schemas/)?(\w+)Model"', r'"\1\2"', json.dumps(document))
    stripped: dict[str, Any] = json.loads(text)
    return stripped
