"""Errors speak of commands and options. A door that has neither says the same in its own words."""

import re
from collections.abc import Mapping

_COMMAND = re.compile(r"'kept (\w+)[^']*'")
_OPTION = re.compile(r"(?<![\w'-])--([a-z]+(?:-[a-z]+)*)")
_CLI_ADVICE = re.compile(r"(?<=[.?!]) [^.?!]*'kept .*")


def replace_cli_hints(message: str, replacements: Mapping[str, str]) -> str:
    """With fields for options, and for commands whatever there is instead of them."""

    def command(found: re.Match[str]) -> str:
        return replacements.get(found[1], f"{found[0]} at the command line")

    return _options_to_fields(_COMMAND.sub(command, message))


def strip_cli_hints(message: str) -> str:
    """With fields for options, and without the sentence that names a command: a page has links."""
    return _options_to_fields(_CLI_ADVICE.sub("", message))


def _options_to_fields(message: str) -> str:
    return _OPTION.sub(lambda found: found[1].replace("-", "_"), message)
