"""The settings of a source as options of ``add``, ``set`` and ``try``, derived from the table in the service.

Typer reads options from a function's signature and has no public way to add one: so the signature is built here.
"""

import inspect
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Annotated, Any

import typer

from kept.service.source_options import SOURCE_OPTIONS, SourceOption, SourceOptions, option_flag

_TYPES: dict[str, Any] = {"text": str, "texts": list[str], "integer": int, "number": float, "flag": bool}


def with_source_options(command: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Add an option for every setting of a source. The command gets their values as ``options``."""

    @wraps(command)
    async def wrapper(**values: Any) -> Any:
        given = {option.name: values.pop(option.name) for option in SOURCE_OPTIONS}
        given = {name: None if value == () else value for name, value in given.items()}
        return await command(**values, options=SourceOptions(**given))

    keyword = inspect.Parameter.KEYWORD_ONLY
    own = [one.replace(kind=keyword) for one in inspect.signature(command).parameters.values() if one.name != "options"]
    added = [
        inspect.Parameter(option.name, keyword, default=None, annotation=_annotation(option))
        for option in SOURCE_OPTIONS
    ]
    vars(wrapper)["__signature__"] = inspect.Signature([*own, *added])
    vars(wrapper)["clearable"] = {option.name for option in SOURCE_OPTIONS}
    return wrapper


def _annotation(option: SourceOption) -> Any:
    flags = option.flags or option_flag(option.name)
    shown = typer.Option(
        flags,
        metavar=option.metavar or None,
        help=option.help,
        min=option.minimum,
        max=option.maximum,
        show_default=option.kind != "flag",
    )
    return Annotated[_TYPES[option.kind] | None, shown]
