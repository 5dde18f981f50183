"""Error messages for interfaces without commands and options. Service errors name those of the command line."""

import re
from collections.abc import Mapping

_COMMAND = re.compile(r"'kept (\w+)[^']*'")
_OPTION = re.compile(r"(?<![\w'-])--([a-z]+(?:-[a-z]+)*)")
_CLI_ADVICE = re.compile(r"(?<=[.?!]) [^.?!]*'kept .*")


def replace_cli_hints(message: str, replacements: Mapping[str, str]) -> str:
    """Return the message with field names for options, and for each command its replacement, if there is one."""

    def replace_command(match: re.Match[str]) -> str:
        return replacements.get(match[1], f"{match[0]} at the command line")

    return _options_to_fields(_COMMAND.sub(replace_command, message))


def strip_cli_hints(message: str) -> str:
    """Return the message with field names for options, and without the sentence that names a command."""
    return _options_to_fields(_CLI_ADVICE.sub("", message))


def _options_to_fields(message: str) -> str:
    return _OPTION.sub(lambda match: match[1].replace("-", "_"), message)
