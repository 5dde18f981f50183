"""Upkeep: ``gc``, ``check``, ``backup``, ``restore``, ``export``, ``import``."""

from dataclasses import asdict, replace
from datetime import timedelta

import typer

from kept.cli import options
from kept.cli.command import DONE, FAILED, Call
from kept.cli.words import parse_duration, plural
from kept.errors import StoreDamaged


async def gc(
    context: typer.Context,
    keep: options.KeepGenerations = None,
    older_than: options.OlderThan = None,
    dry_run: options.GcDryRun = False,
) -> None:
    """Take away what no generation that is kept needs any more.

    Generations are kept if they are among the last --keep that changed something, or younger than --older-than.

    \b
    kept gc --dry-run
    kept gc --keep 3 --older-than 7d
    """
    from kept.service import upkeep

    call: Call = context.obj
    async with call.open() as runtime:
        retention = runtime.retention
        retention = replace(retention, generations=keep) if keep else retention
        if older_than:
            retention = replace(retention, younger_than=timedelta(seconds=parse_duration(older_than)))
        if dry_run:
            found = await upkeep.look(runtime.db, retention, cache=runtime.cache)
        else:
            done = asdict(await upkeep.collect(runtime.db, retention, cache=runtime.cache))
    if call.as_json:
        call.answer({"would_go": [asdict(one) for one in found]} if dry_run else done)
    elif dry_run:
        for one in found:
            call.out.line(f"{one.where}: {one.count:,} {one.what}: {one.why}")
        call.out.line("Nothing was taken away." if found else "There is nothing to take away.")
    else:
        told = ", ".join(f"{count:,} {what}" for what, count in done.items() if count)
        call.out.line(f"Taken away: {told}." if told else "There was nothing to take away.")


async def check(context: typer.Context) -> int:
    """Look whether the database is sound: the file, full text, contents, pointers. Changes nothing.

    \b
    kept check
    kept check --json
    """
    from kept.service import upkeep

    call: Call = context.obj
    try:
        async with call.open() as runtime:
            problems = await upkeep.check(runtime.db, runtime.hash_of)
    except StoreDamaged as error:  # so much that it cannot be opened
        problems = [upkeep.unsound(error)]
    if call.as_json:
        call.answer({"sound": not problems, "problems": [asdict(one) for one in problems]})
    for one in problems:
        call.err.line(f"It does not hold that {one.rule}: {'; '.join(one.found[:3])}. What to do: {one.advice}")
    if not problems and not call.as_json:
        call.out.line("All is well.")
    return FAILED if problems else DONE


async def backup(context: typer.Context, file: options.File) -> None:
    """Copy the whole database into a file, while it is used. Of PostgreSQL, pg_dump does that.

    \b
    kept backup ~/backups/kept.db
    """
    from kept.service import upkeep

    call: Call = context.obj
    size = await upkeep.back_up(call.settings.database, file)
    if call.as_json:
        call.answer({"file": file, "bytes": size})
    else:
        call.out.line(f"{file}: {size:,} bytes.")


async def restore(context: typer.Context, file: options.File) -> None:
    """Put a backup back. What was there is kept beside it, as '….before-restore'.

    \b
    kept restore kept-2026-11-01.db
    """
    from kept.service import upkeep

    call: Call = context.obj
    before = await upkeep.restore(call.settings.database, file)
    if call.as_json:
        call.answer({"file": file, "before": str(before) if before else None})
    else:
        call.out.line("Restored." + (f" What was there is {before}." if before else ""))


async def export(
    context: typer.Context, folder: options.ExportFolder, names: options.Names = None, tree: options.Tree = False
) -> None:
    """Write what is kept into a folder, as Markdown with a manifest.

    The folder is replaced as a whole; what has not changed since the last time is not written again.

    \b
    kept export ~/mirror
    kept export ~/mirror/django django@5.2
    kept export ~/reading --tree
    """
    from kept.service import mirror

    call: Call = context.obj
    async with call.open() as runtime:
        done = await mirror.export(runtime.db, folder, list(names or ()), tree=tree, cache=runtime.cache)
    if call.as_json:
        call.answer({"folder": folder, **asdict(done)})
    else:
        told = f"{plural(done.documents, 'document')} of {plural(done.sources, 'source')}"
        call.out.line(f"{folder}: {told}; {done.written:,} written, {done.linked:,} as they were.")


async def import_(context: typer.Context, where: options.Export) -> int:
    """Take back what 'kept export' wrote, with ids and history, into this database.

    \b
    kept --database postgresql://kept@db/kept import ~/mirror
    """
    from kept.service import mirror

    call: Call = context.obj
    async with call.open(create=True) as runtime:
        done = await mirror.import_(
            runtime.db, where, read=runtime.read_markdown, hash_of=runtime.hash_of, rhythm=runtime.rhythm
        )
    labels = [source.label for source in done.sources]
    if call.as_json:
        call.answer({"sources": labels, "documents": done.documents, "versions": done.versions, "unread": done.unread})
    else:
        call.out.line(f"{', '.join(labels)}: {plural(done.documents, 'document')} imported.")
    for path in done.unread:
        call.err.line(f"Not all of {path} could be read; it is left out.")
    return FAILED if done.unread else DONE
