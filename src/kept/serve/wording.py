"""Errors speak of commands and options. A door that has neither says the same in its own words."""

import re
from collections.abc import Mapping

_COMMAND = re.compile(r"'kept (\w+)[^']*'")
_OPTION = re.compile(r"(?<![\w'-])--([a-z]+(?:-[a-z]+)*)")
_ADVICE = re.compile(r"(?<=[.?!]) [^.?!]*'kept .*")


def worded(said: str, instead: Mapping[str, str]) -> str:
    """With fields for options, and for commands whatever there is instead of them."""

    def command(found: re.Match[str]) -> str:
        return instead.get(found[1], f"{found[0]} at the command line")

    return _fields(_COMMAND.sub(command, said))


def without_commands(said: str) -> str:
    """With fields for options, and without the sentence that names a command: a page has links."""
    return _fields(_ADVICE.sub("", said))


def _fields(said: str) -> str:
    return _OPTION.sub(lambda found: found[1].replace("-", "_"), said)
