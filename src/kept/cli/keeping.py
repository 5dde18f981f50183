"""Keeping: ``add`` and ``refresh``."""

import os
from dataclasses import replace
from typing import Any

import typer

from kept.cli import options
from kept.cli.command import Call
from kept.cli.crawl import crawl
from kept.cli.words import parse_duration
from kept.errors import NoSuchThing, SourceUnavailable, WrongCall
from kept.model.job import CrawlMode
from kept.model.root import derive_name, parse_root
from kept.model.source import Access, SourceKind, SourceSettings, host_and_port
from kept.model.url import file_path
from kept.service import sources


async def add(
    context: typer.Context,
    root: options.Root,
    name: options.Called = None,
    version: options.Label = "",
    max_pages: options.MaxPages = None,
    max_depth: options.MaxDepth = None,
    max_time: options.MaxTime = None,
    scope: options.Within = None,
    include: options.Include = None,
    exclude: options.Exclude = None,
    user_agent: options.UserAgent = None,
    ignore_robots: options.IgnoreRobots = False,
    concurrency: options.Concurrency = None,
    delay: options.Delay = None,
    priority: options.Priority = 0,
    no_wait: options.NoWait = False,
) -> int:
    """Keep a web site, a folder or a file of documentation.

    \b
    kept add https://docs.example.com/guide/
    kept add docs
    kept add ~/src/django/docs --name django --version 5.2
    kept add notes --include '*.md' --exclude 'drafts/*'

    The same root again is a refresh; settings that are given again are changed.
    """
    call: Call = context.obj
    kind, url = parse_root(root)
    given = _Given(
        limits=_said(max_pages=max_pages, max_depth=max_depth, max_seconds=max_time and parse_duration(max_time)),
        scope=_said(include=_listed(include), exclude=_listed(exclude), within=_listed(scope)),
        access=_said(user_agent=user_agent, ignore_robots=ignore_robots or None, concurrency=concurrency, delay=delay),
    )
    settings = SourceSettings()
    if kind is SourceKind.WEB:  # whoever names a root here has allowed exactly that host and port, public or not
        settings = SourceSettings(access=Access(allowed=(host_and_port(url),)))
    else:
        _look_at(file_path(url))
    async with call.open(create=True) as runtime:
        source, is_new = await sources.add_source(
            runtime.db,
            root=url,
            kind=kind,
            name=name or derive_name(url),
            version=version,
            settings=given.over(settings),
            numbered=name is None,
        )
        if not is_new and given:
            source = await sources.set_source(runtime.db, source.label, given.over)
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
        source = (await sources.show_source(runtime.db, name)).source
        return await crawl(call, runtime, source, mode=mode, priority=priority, wait=not no_wait)


class _Given:
    """The settings that a call gives. Those it does not mention stay as they are."""

    def __init__(self, *, limits: dict[str, Any], scope: dict[str, Any], access: dict[str, Any]) -> None:
        self._limits, self._scope, self._access = limits, scope, access

    def __bool__(self) -> bool:
        return bool(self._limits or self._scope or self._access)

    def over(self, settings: SourceSettings) -> SourceSettings:
        return replace(
            settings,
            limits=replace(settings.limits, **self._limits),
            scope=replace(settings.scope, **self._scope),
            access=replace(settings.access, **self._access),
        )


def _said(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _listed(values: list[str] | None) -> tuple[str, ...] | None:
    return tuple(values) if values else None


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
