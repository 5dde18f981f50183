"""Adding: from what was typed to a source, new or known, and its crawl."""

import os
from dataclasses import replace

from kept import service
from kept.cli.command import Call
from kept.cli.crawl import crawl
from kept.cli.words import parse_duration
from kept.errors import NoSuchThing, SourceUnavailable
from kept.model.root import derive_name, parse_root
from kept.model.source import SourceSettings
from kept.model.url import file_path


class Given:
    """The settings that this call gives. Those it does not mention stay as they are."""

    def __init__(
        self,
        max_pages: int | None,
        max_depth: int | None,
        max_time: str | None,
        include: list[str] | None,
        exclude: list[str] | None,
    ) -> None:
        seconds = None if max_time is None else parse_duration(max_time)
        self._limits = _said(max_pages=max_pages, max_depth=max_depth, max_seconds=seconds)
        self._scope = _said(include=tuple(include or ()) or None, exclude=tuple(exclude or ()) or None)

    def __bool__(self) -> bool:
        return bool(self._limits or self._scope)

    def over(self, settings: SourceSettings) -> SourceSettings:
        return replace(
            settings,
            scope=replace(settings.scope, **self._scope),  # type: ignore[arg-type]
            limits=replace(settings.limits, **self._limits),  # type: ignore[arg-type]
        )


async def add(
    call: Call, typed: str, name: str | None, version: str, given: Given, *, priority: int, wait: bool
) -> int:
    """Keeps what was typed. The exit code."""
    kind, root = parse_root(typed)
    _look_at(file_path(root))
    async with call.open(create=True) as runtime:
        source, is_new = await service.add_source(
            runtime.db,
            root=root,
            kind=kind,
            name=name or derive_name(root),
            version=version,
            settings=given.over(SourceSettings()),
            numbered=name is None,
        )
        if not is_new and given:
            source = await service.set_source(runtime.db, source.label, given.over)
        if not is_new and name and name != source.name:
            call.err.line(f"{source.root} is kept already, as '{source.label}'.")
        return await crawl(call, runtime, source, priority=priority, wait=wait)


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


def _said(**values: object) -> dict[str, object]:
    return {name: value for name, value in values.items() if value is not None}
