"""Keeping: ``add`` and ``refresh``."""

import os
from dataclasses import replace
from typing import Any

import typer

from kept import service
from kept.cli import options
from kept.cli.command import Call
from kept.cli.crawl import crawl
from kept.cli.words import parse_duration
from kept.errors import NoSuchThing, SourceUnavailable, WrongCall
from kept.model.job import CrawlMode
from kept.model.root import derive_name, parse_root
from kept.model.source import SourceSettings
from kept.model.url import file_path


async def add(
    context: typer.Context,
    root: options.Root,
    name: options.Called = None,
    version: options.Label = "",
    max_pages: options.MaxPages = None,
    max_time: options.MaxTime = None,
    include: options.Include = None,
    exclude: options.Exclude = None,
    priority: options.Priority = 0,
    no_wait: options.NoWait = False,
) -> int:
    """Keep a folder or a file of documentation.

    \b
    kept add docs
    kept add ~/src/django/docs --name django --version 5.2
    kept add notes --include '*.md' --exclude 'drafts/*'

    The same root again is a refresh; settings that are given again are changed.
    """
    call: Call = context.obj
    kind, url = parse_root(root)
    given = _Given(max_pages=max_pages, max_time=max_time, include=include, exclude=exclude)
    _look_at(file_path(url))
    async with call.open(create=True) as runtime:
        source, is_new = await service.add_source(
            runtime.db,
            root=url,
            kind=kind,
            name=name or derive_name(url),
            version=version,
            settings=given.over(SourceSettings()),
            numbered=name is None,
        )
        if not is_new and given:
            source = await service.set_source(runtime.db, source.label, given.over)
        if not is_new and name and name != source.name:
            call.err.line(f"{source.root} is kept already, as '{source.label}'.")
        return await crawl(call, runtime, source, priority=priority, wait=not no_wait)


async def refresh(
    context: typer.Context,
    name: options.Name,
    full: options.Full = False,
    failed_only: options.FailedOnly = False,
    priority: options.Priority = 0,
    no_wait: options.NoWait = False,
) -> int:
    """Bring a source up to date: its next generation.

    \b
    kept refresh django@5.2
    kept refresh django@5.2 --failed-only
    """
    call: Call = context.obj
    if full and failed_only:
        raise WrongCall("--full and --failed-only exclude each other: say which of them you want.")
    mode = CrawlMode.FULL if full else CrawlMode.FAILED if failed_only else CrawlMode.REFRESH
    async with call.open() as runtime:
        source = (await service.show_source(runtime.db, name)).source
        return await crawl(call, runtime, source, mode=mode, priority=priority, wait=not no_wait)


class _Given:
    """The settings that a call gives. Those it does not mention stay as they are."""

    def __init__(
        self, *, max_pages: int | None, max_time: str | None, include: list[str] | None, exclude: list[str] | None
    ) -> None:
        seconds = None if max_time is None else parse_duration(max_time)
        self._limits = _said(max_pages=max_pages, max_seconds=seconds)
        self._scope = _said(include=tuple(include or ()) or None, exclude=tuple(exclude or ()) or None)

    def __bool__(self) -> bool:
        return bool(self._limits or self._scope)

    def over(self, settings: SourceSettings) -> SourceSettings:
        limits, scope = replace(settings.limits, **self._limits), replace(settings.scope, **self._scope)
        return replace(settings, limits=limits, scope=scope)


def _said(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _look_at(path: str) -> None:
    """A slip of the finger should not become a source."""
    try:
        if os.path.isdir(path):
            os.scandir(path).close()
        else:
            os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        raise NoSuchThing(f"There is no file or folder {path}.") from None
    except OSError as error:
        raise SourceUnavailable(f"{path} cannot be read: {error.strerror}.") from None
