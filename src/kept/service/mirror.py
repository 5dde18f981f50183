"""What is kept, as files: written to a folder, and taken back."""

from pathlib import Path

from kept.service.naming import source_of
from kept.service.sources import plan_run
from kept.store.database import Database
from kept.upkeep.export import Exported
from kept.upkeep.export import export as write
from kept.upkeep.importing import HashOf, Imported, ReadMarkdown
from kept.upkeep.importing import import_ as take
from kept.upkeep.leftovers import note_export
from kept.upkeep.rhythm import Rhythm


async def export(
    db: Database, folder: str, labels: list[str], *, tree: bool = False, cache: Path | None = None
) -> Exported:
    """Replaces a folder with the sources of these names, or with all, as they are now."""
    async with db.snapshot() as snapshot:
        wanted = [(await source_of(snapshot, label)).label for label in labels]
    if cache:
        note_export(cache, Path(folder).absolute())
    return await write(db, Path(folder).absolute(), wanted, tree=tree)


async def import_(
    db: Database, where: str, *, read: ReadMarkdown, hash_of: HashOf, rhythm: Rhythm | None = None
) -> Imported:
    """Takes back what an export wrote. Nothing is changed where one of its sources is kept already."""
    imported = await take(db, Path(where).absolute(), read=read, hash_of=hash_of)
    for source in imported.sources:
        if source.settings.schedule:
            async with db.transaction() as tx:
                await plan_run(tx, source, rhythm)
    return imported
