"""The base of all commands: three options, the settings, and the exit codes of errors.

    0 done · 1 failed · 2 wrong call · 3 no such thing · 4 held, or needs a decision · 130 interrupted

A command is an async function whose context carries a CliContext; it may return an exit code. The options of ``kept``
itself (``--database``, ``--json``, ``--verbose``) may stand before the command as well as after it.
"""

import json
import os
import re
import sys
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

from kept.cli.screen import Screen, escape_invisible_characters
from kept.errors import InvalidInput, KeptError, NeedsDecision, NotFound, SourceMissing

if TYPE_CHECKING:  # heavy: loaded when a command runs
    from kept.runtime.readers import ReaderPool
    from kept.runtime.runtime import Runtime
    from kept.settings import Settings

EXIT_OK, EXIT_FAILED, EXIT_USAGE, EXIT_NOT_FOUND, EXIT_NEEDS_DECISION = 0, 1, 2, 3, 4


class CliContext:
    """One call of the command line: its options, its settings, its output."""

    def __init__(self) -> None:
        self.database: str | None = None
        self.config: str | None = None
        self.as_json = False
        self.verbose = False
        self.out = Screen(sys.stdout)
        self.err = Screen(sys.stderr)

    @cached_property
    def settings(self) -> "Settings":
        from kept import settings

        loaded = settings.load(
            environment=os.environ, folder=Path.cwd(), database=self.database, config_file=self.config
        )
        if loaded.warning:
            self.err.line(loaded.warning)
        return loaded

    @property
    def can_ask(self) -> bool:
        """Whether a person sits at a terminal who can answer a question."""
        return not self.as_json and self.err.is_terminal and sys.stdin is not None and sys.stdin.isatty()

    @asynccontextmanager
    async def open_runtime(
        self, *, create: bool = False, deferred: bool = False, readers: "ReaderPool | None" = None
    ) -> "AsyncIterator[Runtime]":
        """Open a runtime on the database. ``create``: also where there is none; ``deferred``: by the first write."""
        import logging

        from kept.runtime.runtime import open_runtime

        if not self.verbose:  # libraries would write their warnings between our sentences
            logging.getLogger().addHandler(logging.NullHandler())
        with nullcontext() if create or deferred else self.spinner("one moment …"):
            async with open_runtime(self.settings, create=create, deferred=deferred, readers=readers) as runtime:
                yield runtime

    @contextmanager
    def spinner(self, message: str) -> Iterator[None]:
        """Show a spinner on a terminal once the block takes longer than a second."""
        if not self.err.is_terminal or self.verbose:
            yield
            return
        from kept.cli.progress import DelayedSpinner

        with DelayedSpinner(self.err, message) as waiting:
            self.out.before_write = self.err.before_write = waiting.stop
            yield

    def print_json(self, value: Any) -> None:
        """Print one JSON value, escaped where the encoding of standard output is not Unicode.

        Characters that control a terminal or reorder its text are escaped always: the value stays the same.
        """
        self.out.before_write()
        escaped = not self.out.stream.encoding.lower().startswith("utf")
        text = json.dumps(value, indent=2, ensure_ascii=escaped)
        self.out.stream.write(escape_invisible_characters(text) + "\n")


class LazyGroup(TyperGroup):
    """A group whose commands are imported when they are called."""

    # The name of a command -> the module that has a function of this name; "module:Class" for a group of commands.
    modules: ClassVar[dict[str, str]] = {}

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.modules)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        wanted = [cmd_name] if cmd_name in self.modules else self.modules  # a slip is compared with all of them
        for name in wanted:
            if name not in self.commands:
                self.commands[name] = _load_command(name, self.modules[name])
        return self.commands.get(cmd_name)

    def get_params(self, ctx: Any) -> list[Any]:
        return _skip_pydantic(super().get_params(ctx))


def _load_command(name: str, module: str) -> Any:
    module, _, group = module.partition(":")
    found = import_module(f"kept.cli.{module}")
    if group:
        return getattr(found, group)(name=name, help=found.__doc__, rich_markup_mode=None)
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    function = getattr(found, name, None) or getattr(found, f"{name}_")
    alone.command(name, cls=Command)(function)
    command: Any = typer.main.get_command(alone)
    command.clearable = getattr(function, "clearable", set())
    command.takes_any_word = getattr(function, "takes_any_word", False)
    return command


class Command(TyperCommand):
    """A command that takes the options of ``kept`` itself too, and runs to an exit code."""

    clearable: Collection[str] = ()  # its options that an empty text clears, whatever their type
    takes_any_word = False  # what looks like an option and is none is an argument: git reset --hard

    def get_params(self, ctx: Any) -> list[Any]:
        own, shared = super().get_params(ctx), self._shared_options(ctx)
        return _skip_pydantic([*own[: len(self.params)], *shared, *own[len(self.params) :]], self.clearable)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, self._options_first(ctx, args) if self.takes_any_word else args)

    def _options_first(self, ctx: Any, args: list[str]) -> list[str]:
        """Return the known options with their values, then ``--`` and all else. ``-h`` beside words is one of them."""
        takes_value = {
            name: not getattr(option, "is_flag", True) and not option.count
            for option in self.get_params(ctx)
            if option.param_type_name == "option"
            for name in (*option.opts, *option.secondary_opts)
        }
        found: list[str] = []
        words: list[str] = []
        left = iter(args)
        for arg in left:
            name, is_assigned, _ = arg.partition("=")
            if arg == "--":
                words += left
            elif name not in takes_value or (arg == "-h" and len(args) > 1):
                words.append(arg)
            elif not takes_value[name] or is_assigned:
                found.append(arg)
            elif (value := next(left, None)) is not None:
                found += (arg, value)
            else:
                words.append(arg)  # nothing follows it
        return [*found, "--", *words]

    def invoke(self, ctx: Any) -> int:
        import asyncio

        for option in self._shared_options(ctx):
            if value := ctx.params.pop(option.name):
                setattr(ctx.obj, option.name, value)
        code = asyncio.run(super().invoke(ctx))
        sys.stdout.flush()  # here a reader that has gone away is still noticed quietly
        return code or EXIT_OK

    def _shared_options(self, ctx: Any) -> list[Any]:
        return [
            option
            for option in ctx.find_root().command.params
            if option.name in ("database", "config", "as_json", "verbose")
        ]


def _skip_pydantic(parameters: list[Any], clearable: Collection[str] = ()) -> list[Any]:
    """Make parameters take texts, numbers and flags as they are: typer would load pydantic for them, 0.2 s a call."""
    for parameter in parameters:
        if hasattr(parameter, "get_runtime_param") and not isinstance(parameter.process_value, partial):
            is_clearable = parameter.name in clearable
            parameter.process_value = partial(_convert_value, parameter, parameter.process_value, is_clearable)
    return parameters


def _convert_value(
    parameter: Any, convert_with_typer: Callable[[Any, Any], Any], is_clearable: bool, context: Any, value: Any
) -> Any:
    """Convert a value as typer would, where that is simple. Everything else, and every error, is left to typer."""
    if value == "" and is_clearable:
        return value
    several, is_number = parameter.multiple or parameter.nargs == -1, parameter.min is not None
    if value is None and not parameter.required:
        return () if several else None
    if isinstance(value, str) and is_number and re.fullmatch(r"-?[0-9]{1,18}", value):
        in_range = parameter.min <= int(value) and (parameter.max is None or int(value) <= parameter.max)
        return int(value) if in_range else convert_with_typer(context, value)
    plain = (isinstance(value, str) and not is_number) or (several and value) or isinstance(value, int)
    return value if plain and not parameter.callback else convert_with_typer(context, value)


def report_error(error: Exception, *, verbose: bool) -> int:
    """Print an error as one sentence on standard error. Returns its exit code."""
    if verbose:
        import traceback

        traceback.print_exception(error)
    sentence, code = _message_and_exit_code(error)
    Screen(sys.stderr).line(" ".join(sentence.split()))
    return code


def _message_and_exit_code(error: Exception) -> tuple[str, int]:
    match error:
        case InvalidInput():
            return str(error), EXIT_USAGE
        case NotFound() | SourceMissing():
            return str(error), EXIT_NOT_FOUND
        case NeedsDecision():
            return str(error), EXIT_NEEDS_DECISION
        case KeptError():
            return str(error), EXIT_FAILED
        case typer.TyperException():
            context, message = getattr(error, "ctx", None), error.format_message()
            stop = "" if message.endswith((".", "?")) else "."
            return f"{message}{stop} See '{context.command_path if context else 'kept'} --help'.", EXIT_USAGE
        case UnicodeEncodeError():
            return "What was typed has bytes in it that are no text in UTF-8.", EXIT_USAGE
        case OSError():
            what = f"{error.strerror or type(error).__name__}{f': {error.filename}' if error.filename else ''}"
            return f"The operating system refused it: {what}.", EXIT_FAILED
        case MemoryError() | RuntimeError() if isinstance(error, MemoryError) or "start new thread" in str(error):
            return "There is not enough memory, or the process may not use more ('ulimit -v').", EXIT_FAILED
        case OverflowError():
            return "One of the numbers is larger than anything Kept can count.", EXIT_USAGE
        case _:
            what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            return f"This is a bug in Kept: {what} (--verbose shows where).", EXIT_FAILED
