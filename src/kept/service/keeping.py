"""Keeping: a wish becomes a source, and a source is changed. The same at every door.

keep     a Wish (``wishing``)      -> the source, made or brought up to date
change   settings that were given  -> the source with them
"""

from dataclasses import replace

from kept.model.root import derive_name
from kept.model.source import Source, SourceSettings
from kept.service import sources
from kept.service.given import Given
from kept.service.house import House
from kept.service.wishing import PERSON, Caller, Wish, check_settings


async def keep(house: House, wish: Wish, *, name: str | None = None, version: str | None = None) -> tuple[Source, bool]:
    """The source of a wish, and whether it is new. The same root again is the same source, with what was given."""
    source, is_new = await sources.add_source(
        house.db,
        root=wish.root,
        kind=wish.kind,
        name=name or derive_name(wish.root, wish.kind),
        version=wish.version if version is None else version,
        settings=wish.settings,
        secrets=house.secrets,
        numbered=name is None,
        rhythm=house.rhythm,
    )
    if not is_new and (wish.given or wish.begin.access.headers or wish.begin.scope.pages):

        def changed(old: SourceSettings) -> SourceSettings:
            return wish.given.over(_again(old, wish.begin))

        source = await sources.set_source(house.db, source.label, changed, house.secrets, house.rhythm)
    return source, is_new


async def change(house: House, label: str, given: Given, caller: Caller = PERSON) -> Source:
    """The source with what was given; it holds from its next crawl on."""
    before = (await sources.show_source(house.db, label)).source
    check_settings(given.over(before.settings), given, caller)
    house.check(before.kind, before.root, given.over(before.settings))
    return await sources.set_source(house.db, label, given.over, house.secrets, house.rhythm)


def _again(settings: SourceSettings, begin: SourceSettings) -> SourceSettings:
    """The settings of a source whose root is named once more."""
    kept = {header.name.lower(): header for header in (*settings.access.headers, *begin.access.headers)}
    allowed = begin.access.allowed or settings.access.allowed
    return replace(
        settings,
        scope=replace(settings.scope, pages=begin.scope.pages),
        access=replace(settings.access, allowed=allowed, headers=tuple(kept.values())),
    )
