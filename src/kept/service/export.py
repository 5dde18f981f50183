"""Export sources to a folder of files, and import them again."""

from pathlib import Path

from kept.maintenance.export import ExportReport
from kept.maintenance.export import export_sources as write
from kept.maintenance.import_ import ImportHasher, ImportReport, ReadMarkdown
from kept.maintenance.import_ import import_sources as take
from kept.maintenance.import_trust import Confirm, refuse_all
from kept.maintenance.local_cleanup import record_export_folder
from kept.maintenance.next_run import SchedulePolicy
from kept.service.lookup import find_source
from kept.service.source_options import check_stored_settings
from kept.service.sources import schedule_next_run
from kept.store.database import Database


async def export(
    db: Database, folder: str, labels: list[str], *, tree: bool = False, cache: Path | None = None
) -> ExportReport:
    """Replace a folder with the sources of these names, or with all."""
    async with db.snapshot() as snapshot:
        wanted = [(await find_source(snapshot, label)).label for label in labels]
    if cache:
        record_export_folder(cache, Path(folder).absolute())
    return await write(db, Path(folder).absolute(), wanted, tree=tree)


async def import_(
    db: Database,
    where: str,
    *,
    read: ReadMarkdown,
    hash_content: ImportHasher,
    confirm: Confirm = refuse_all,
    schedule_policy: SchedulePolicy | None = None,
) -> ImportReport:
    """Import an export, whole or not at all. What needs the owner's word is left out unless ``confirm`` gives it."""
    imported = await take(
        db,
        Path(where).absolute(),
        read=read,
        hash_of=hash_content,
        confirm=confirm,
        check_settings=check_stored_settings,
    )
    for source in imported.sources:
        if source.settings.schedule:
            async with db.transaction() as tx:
                await schedule_next_run(tx, source, schedule_policy)
    return imported
