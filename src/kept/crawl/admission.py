"""Admission: which deferred URLs a crawl visits, by its guards: the limits of the source, and traps.

A guard that counted URLs as they are found would keep others each time: the order depends on the network, on kills and
on the number of workers. So what a guard may refuse is deferred until nothing else is open. What is known then depends
on the site alone. The guards decide about all of it at once, in a fixed order; what they admit is the next round. What
they refuse is in the ledger, with the reason.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field

from kept.crawl import settle
from kept.crawl.context import CrawlContext
from kept.model.frontier import LIMIT_REASON, DeferredEntry, FamilyProgress, UrlFamily
from kept.model.job import CrawlMode
from kept.model.source import Limits
from kept.store import frontier, jobs
from kept.store.database import Connection


@dataclass(slots=True)
class Admission:
    """The decision about deferred entries, by their ids. The others wait for the next round."""

    rounds: dict[int, int | None] = field(default_factory=dict)  # admitted, with the round of their family
    refused: dict[int, str] = field(default_factory=dict)  # with the reason
    is_limited: bool = False  # a limit of the source refused some of them


def depth_reason(max_depth: int) -> str:
    return f"{LIMIT_REASON}: more than {max_depth} links from the root"


def decide_admission(
    entries: Iterable[DeferredEntry],
    progress: Mapping[str, FamilyProgress],
    *,
    find_family: Callable[[str], UrlFamily | None],
    max_depth: int | None,
    remaining_pages: int | None,
    refused_before: Set[str] = frozenset(),
) -> Admission:
    """Decide about all deferred entries. Pure: equal entries give equal decisions, whatever their order."""
    admission, admitted_urls = Admission(), Counter[str]()
    # Documents come first, so that a new URL never displaces one.
    for entry in sorted(entries, key=lambda entry: (not entry.is_document, entry.depth, len(entry.url), entry.url)):
        if max_depth is not None and entry.depth > max_depth:
            admission.refused[entry.id], admission.is_limited = depth_reason(max_depth), True
            continue
        family = find_family(entry.url) if entry.family is not None else None
        done = progress.get(family.key, FamilyProgress()) if family else FamilyProgress()
        if family and (
            done.rounds >= family.max_rounds
            or (family.max_urls is not None and done.urls + admitted_urls[family.key] >= family.max_urls)
            or entry.url in refused_before
        ):
            admission.refused[entry.id] = family.trap_reason
            continue
        if remaining_pages is not None and not entry.is_document:
            if remaining_pages <= 0:
                continue
            remaining_pages -= 1
        admission.rounds[entry.id] = done.rounds + 1 if family else None
        if family:
            admitted_urls[family.key] += 1
    return admission


def defers_links(limits: Limits) -> bool:
    """Return whether every link waits for its round: only so are the pages within a limit the same each time."""
    return limits.max_depth is not None or limits.max_pages is not None


async def admit_next_round(tx: Connection, context: CrawlContext, remaining_pages: int | None) -> None:
    """Decide about the deferred entries of a locked job that has no other reached entry open."""
    refused_before: Set[str] = frozenset()
    if context.job.mode is CrawlMode.QUICK and (ledger := await jobs.last_full_crawl(tx, context.source.id)):
        refused_before = await frontier.trapped_urls(tx, ledger.id)
    admission = decide_admission(
        await frontier.deferred_entries(tx, context.job.id),
        await frontier.family_progress(tx, context.job.id),
        find_family=context.origin.find_family,
        max_depth=context.source.settings.limits.max_depth,
        remaining_pages=remaining_pages,
        refused_before=refused_before,
    )
    await frontier.admit_deferred(tx, admission.rounds)
    if admission.refused:
        await frontier.refuse_deferred(tx, admission.refused, batch=context.job.batch + 1)
        advanced = await jobs.advance_batch(tx, context.job.id, limited=admission.is_limited)
        context.job = await settle.update_progress(tx, advanced)


async def skip_too_deep(tx: Connection, context: CrawlContext) -> None:
    """Skip the documents of a locked job that a lowered limit of depth leaves out and that nothing reached."""
    max_depth = context.source.settings.limits.max_depth
    if max_depth is None or context.origin.lists_everything:
        return
    skipped = await frontier.skip_unreached_below(
        tx, context.job.id, max_depth=max_depth, reason=depth_reason(max_depth), batch=context.job.batch + 1
    )
    if skipped:
        context.job = await settle.update_progress(tx, await jobs.advance_batch(tx, context.job.id, limited=True))
