"""``gc``, ``check``, ``backup``, ``restore``, ``export`` and ``import``."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path

import typer

from kept.cli import options
from kept.cli.command import EXIT_FAILED, EXIT_OK, CliContext
from kept.errors import StoreCorrupt
from kept.model.duration import parse_duration
from kept.service.formatting import pluralize


async def gc(
    context: typer.Context,
    keep: options.KeepGenerationsOption = None,
    older_than: options.OlderThanOption = None,
    dry_run: options.GcDryRunOption = False,
) -> None:
    """Take away what no generation that is kept needs any more.

    Generations are kept if they are among the last --keep that changed something, or younger than --older-than:
    to go, one has to be neither.

    \b
    kept gc --dry-run
    kept gc --keep 3 --older-than 7d
    """
    from kept.maintenance.gc import collect, find_garbage

    cli: CliContext = context.obj
    async with cli.open_runtime() as runtime:
        retention = runtime.services.retention
        retention = replace(retention, generations=keep) if keep else retention
        if older_than:
            retention = replace(retention, younger_than=timedelta(seconds=parse_duration(older_than)))
        if dry_run:
            found = await find_garbage(runtime.db, retention, cache=cli.settings.cache_folder)
        else:
            done = asdict(await collect(runtime.db, retention, cache=cli.settings.cache_folder))
    if older_than and not keep:
        many = pluralize(retention.generations, "generation")
        cli.err.line(f"The last {many} with changes stay, however old; --keep sets how many.")
    if cli.as_json:
        cli.print_json({"would_go": [asdict(one) for one in found]} if dry_run else done)
    elif dry_run:
        for one in found:
            cli.out.line(f"{one.where}: {one.count:,} {one.what}: {one.why}")
        cli.out.line("Nothing was taken away." if found else "There is nothing to take away.")
    else:
        told = ", ".join(f"{count:,} {what}" for what, count in done.items() if count)
        cli.out.line(f"Taken away: {told}." if told else "There was nothing to take away.")


async def check(context: typer.Context) -> int:
    """Look whether the database is sound: the file, full text, contents, pointers. Changes nothing.

    \b
    kept check
    kept check --json
    """
    from kept.maintenance.check import check_integrity, damaged_store_problem
    from kept.runtime.readers import hash_content

    cli: CliContext = context.obj
    try:
        async with cli.open_runtime() as runtime:
            problems = await check_integrity(runtime.db, hash_content)
    except StoreCorrupt as error:  # so much that it cannot be opened
        problems = [damaged_store_problem(error)]
    if cli.as_json:
        cli.print_json({"sound": not problems, "problems": [asdict(one) for one in problems]})
    for one in problems:
        cli.err.line(f"It does not hold that {one.rule}: {'; '.join(one.found[:3])}. What to do: {one.advice}")
    if not problems and not cli.as_json:
        cli.out.line("All is well.")
    return EXIT_FAILED if problems else EXIT_OK


async def backup(context: typer.Context, file: options.BackupFileArgument) -> None:
    """Copy the whole database into a file, while it is used. Of PostgreSQL, pg_dump does that.

    \b
    kept backup ~/backups/kept.db
    """
    import asyncio

    from kept.maintenance.backup import back_up

    cli: CliContext = context.obj
    size = await asyncio.to_thread(back_up, cli.settings.database, Path(file).absolute())
    if cli.as_json:
        cli.print_json({"file": file, "bytes": size})
    else:
        cli.out.line(f"{file}: {size:,} bytes.")


async def restore(context: typer.Context, file: options.BackupFileArgument) -> None:
    """Put a backup back. What was there is kept beside it, as '….before-restore'.

    \b
    kept restore kept-2026-11-01.db
    """
    import asyncio

    from kept.maintenance import backup

    cli: CliContext = context.obj
    before = await asyncio.to_thread(backup.restore, cli.settings.database, Path(file).absolute())
    if cli.as_json:
        cli.print_json({"file": file, "before": str(before) if before else None})
    else:
        cli.out.line("Restored." + (f" What was there is {before}." if before else ""))


async def export(
    context: typer.Context,
    folder: options.ExportFolderArgument,
    names: options.OptionalSourcesArgument = None,
    tree: options.TreeOnlyOption = False,
) -> None:
    """Write what is kept into a folder, as Markdown with a manifest.

    The folder is replaced as a whole; what has not changed since the last time is not written again.

    \b
    kept export ~/mirror
    kept export ~/mirror/django django@5.2
    kept export ~/reading --tree
    """
    from kept.service import export as export_service

    cli: CliContext = context.obj
    async with cli.open_runtime() as runtime:
        done = await export_service.export(
            runtime.db, folder, list(names or ()), tree=tree, cache=cli.settings.cache_folder
        )
    if cli.as_json:
        cli.print_json({"folder": folder, **asdict(done)})
    else:
        told = f"{pluralize(done.documents, 'document')} of {pluralize(done.sources, 'source')}"
        cli.out.line(f"{folder}: {told}; {done.written:,} written, {done.linked:,} as they were.")


async def import_(context: typer.Context, where: options.ExportPathArgument, trust: options.TrustOption = False) -> int:
    """Take back what 'kept export' wrote, with ids and history, into this database.

    Anybody may have written the folder. What reaches into this machine, sends something out or acts later by itself
    (private hosts, secrets, files, webhooks, schedules) is shown, and taken only if you say so.

    \b
    kept import ~/mirror
    kept --database postgresql://kept@db/kept import ~/mirror --trust
    """
    from kept.runtime.readers import hash_content
    from kept.service import export as export_service

    cli: CliContext = context.obj

    def confirm(found: Mapping[str, list[str]]) -> bool:
        return trust or _ask_for_trust(cli, found)

    async with cli.open_runtime(create=True) as runtime:
        done = await export_service.import_(
            runtime.db,
            where,
            read=runtime.worker_host.read_markdown,
            hash_content=hash_content,
            confirm=confirm,
            schedule_policy=runtime.services.schedule_policy,
        )
    labels = [source.label for source in done.sources]
    if cli.as_json:
        cli.print_json(
            {
                "sources": labels,
                "documents": done.documents,
                "versions": done.versions,
                "unread": done.unread,
                "left_out": done.left_out,
            }
        )
    else:
        cli.out.line(f"{', '.join(labels)}: {pluralize(done.documents, 'document')} imported.")
    for label, names in done.left_out.items():
        cli.err.line(f"Left out of {label}: {', '.join(names)}. 'kept import --trust' takes them from an own export.")
    for path in done.unread:
        cli.err.line(f"Not all of {path} could be read; it is left out.")
    return EXIT_FAILED if done.unread else EXIT_OK


def _ask_for_trust(cli: CliContext, found: Mapping[str, list[str]]) -> bool:
    """Ask on a terminal whether to take what an export would be allowed to do. Elsewhere the answer is no."""
    if not cli.can_ask:
        return False
    for label, names in found.items():
        cli.err.line(f"{label} asks for: {', '.join(names)}.")
    return typer.confirm("Take these too? Only if the export is your own.", default=False, err=True)
