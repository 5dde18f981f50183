"""Prints sources."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kept.cli.screen import Screen, StyledText
from kept.cli.views.symbols import PARTIAL_REASONS, STATE_COLOURS
from kept.model.duration import format_short_duration
from kept.service.formatting import format_ago, format_counts, format_duration, format_local_time, pluralize

if TYPE_CHECKING:
    from kept.model.job import CrawlJob
    from kept.model.source import Source, SourceSettings
    from kept.service.sources import SourceView


def print_sources(screen: Screen, views: Sequence["SourceView"]) -> None:
    if not views:
        screen.line("Nothing is kept yet. 'kept add FOLDER' keeps a folder of documentation.")
        return
    head = ["NAME", "STATE", "GENERATION", "DOCUMENTS", "SECTIONS", "CHECKED", "NEXT", "ROOT", ""]
    rows: list[list[StyledText]] = [[(title, "dim") for title in head]]
    for view in views:
        rows.append(
            [
                (view.source.label, "bold"),
                (view.state, STATE_COLOURS.get(view.state, "")),
                str(view.generation.number) if view.generation else "–",
                f"{view.documents:,}",
                f"{view.sections:,}",
                format_ago(view.verified_at) if view.verified_at else "never",
                _next_run(view.source),
                view.source.root,
                (" ".join(f"#{tag}" for tag in view.source.settings.tags), "dim"),
            ]
        )
    screen.table(rows, align_right=[2, 3, 4], optional=[8, 4, 6, 2])
    for view in views:
        if view.next_step:
            screen.line(f"{view.source.label} is {view.state}: {view.next_step}", wrap=True)


def print_source(screen: Screen, view: "SourceView") -> None:
    generation, upcoming, job = view.generation, view.upcoming, view.last_job
    screen.line((view.source.label, "bold"))
    facts: list[tuple[str, str]] = [("root", f"{view.source.root} ({view.source.kind})")]
    facts.append(("state", view.state))
    if generation:
        partial = f", partial: {PARTIAL_REASONS[generation.partial]}" if generation.partial else ""
        what = f"{pluralize(view.documents, 'document')}, {pluralize(view.sections, 'section')}{partial}"
        facts.append(("generation", f"{generation.number}: {what}"))
    if view.verified_at:
        facts.append(("checked", f"{format_ago(view.verified_at)} ({format_local_time(view.verified_at)})"))
    if schedule := view.source.settings.schedule:
        why = " by a rollback, until the next 'kept refresh'" if view.source.schedule_paused_at else ""
        facts.append(("schedule", f"{schedule}; next run: {_next_run(view.source)}{why}"))
    if view.changes_every and view.suggested_interval:
        facts.append(
            ("changes", _format_change_rate(view, format_short_duration(view.suggested_interval.total_seconds())))
        )
    if view.validators:
        facts.append(("validators", _VALIDATOR_WARNINGS[view.validators]))
    if view.source.sitemap_wrong_at:
        facts.append(("sitemap", "wrong: it calls pages modified that are not; quick refreshes do not go by it"))
    if view.webhook_error:
        facts.append(("webhook", f"given up: {view.webhook_error}"))
    if tags := view.source.settings.tags:
        facts.append(("tags", ", ".join(tags)))
    if settings := _format_settings(view.source.settings):
        facts.append(("settings", settings))
    if job:
        facts.append(("last crawl", _format_job(job)))
    if upcoming and upcoming.state == "held":
        facts.append(("waiting", f"generation {upcoming.number} is held: {upcoming.reason}"))
        facts.append(("decide", view.next_step or ""))
    elif view.next_step:
        facts.append(("next", view.next_step))
    screen.facts(facts)


def _next_run(source: "Source") -> str:
    if not source.settings.schedule or not source.next_run_at:
        return "–"
    if source.schedule_paused_at:
        return "paused"
    return format_local_time(source.next_run_at)


def _format_change_rate(view: "SourceView", suggested: str) -> str:
    """Describe how often a source changes; suggest a schedule where it has none that fits."""
    assert view.changes_every is not None, "it is known"
    interval = f"about every {format_short_duration(view.changes_every.total_seconds())}"
    if view.source.settings.schedule in ("auto", suggested):
        return interval
    return f"{interval}; suggested: kept set {view.source.label} --schedule {suggested}"


_VALIDATOR_WARNINGS = {
    "wrong": "wrong: pages changed and their validators did not; scheduled refreshes read everything",
    "none": "none: every refresh has to fetch every page",
}


def _format_settings(settings: "SourceSettings") -> str:
    limits, scope, access, region = settings.limits, settings.scope, settings.access, settings.region
    parts = [
        f"at most {pluralize(limits.max_pages, 'page')}" if limits.max_pages is not None else "",
        f"at most {limits.max_depth:,} deep" if limits.max_depth is not None else "",
        "traps followed" if limits.no_traps else "",
        f"no trap: {', '.join(limits.not_traps)}" if limits.not_traps else "",
        f"new pages for at most {format_duration(limits.max_seconds)}" if limits.max_seconds is not None else "",
        f"only {', '.join(scope.include)}" if scope.include else "",
        f"without {', '.join(scope.exclude)}" if scope.exclude else "",
        f"exactly {pluralize(len(scope.pages), 'page')}" if scope.pages else "",
        f"within {', '.join(scope.within)}" if scope.within else "",
        f"asked with {', '.join(f'{one.name} ({one.value})' for one in access.headers)}" if access.headers else "",
        f"through a proxy ({access.proxy})" if access.proxy else "",
        f"trusting {access.ca_file}" if access.ca_file else "",
        "robots.txt ignored" if access.ignore_robots else "",
        f"rendered {access.render}" if access.render != "auto" else "",
        f"reading {region.select}" if region.select else "",
        f"dropping {', '.join(region.drop)}" if region.drop else "",
        f"telling {settings.webhook}" if settings.webhook else "",
    ]
    return "; ".join(part for part in parts if part)


def _format_job(job: "CrawlJob") -> str:
    ended = f" {format_ago(job.completed_at)}" if job.completed_at else ""
    why = f": {job.error}" if job.error else f": {interval}" if (interval := format_counts(job.progress.tally)) else ""
    return f"{job.status}{ended}{why} (job {job.short_id})"
