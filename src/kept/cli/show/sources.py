"""How sources read for people."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kept.cli.screen import Part, Screen
from kept.cli.show.marks import COLOURS, PARTIAL
from kept.cli.words import ago, counts, duration, moment, plural
from kept.model.duration import spell_duration

if TYPE_CHECKING:
    from kept.model.job import CrawlJob
    from kept.model.source import Source, SourceSettings
    from kept.service.sources import SourceView


def sources(screen: Screen, views: Sequence["SourceView"]) -> None:
    if not views:
        screen.line("Nothing is kept yet. 'kept add FOLDER' keeps a folder of documentation.")
        return
    head = ["NAME", "STATE", "GENERATION", "DOCUMENTS", "SECTIONS", "CHECKED", "NEXT", "ROOT", ""]
    rows: list[list[Part]] = [[(title, "dim") for title in head]]
    for view in views:
        rows.append(
            [
                (view.source.label, "bold"),
                (view.state, COLOURS.get(view.state, "")),
                str(view.generation.number) if view.generation else "–",
                f"{view.documents:,}",
                f"{view.sections:,}",
                ago(view.verified_at) if view.verified_at else "never",
                _next_run(view.source),
                view.source.root,
                (" ".join(f"#{tag}" for tag in view.source.settings.tags), "dim"),
            ]
        )
    screen.table(rows, right=[2, 3, 4])


def source(screen: Screen, view: "SourceView") -> None:
    generation, upcoming, job = view.generation, view.upcoming, view.last_job
    screen.line((view.source.label, "bold"))
    facts: list[tuple[str, str]] = [("root", f"{view.source.root} ({view.source.kind})")]
    facts.append(("state", view.state))
    if generation:
        partial = f", partial: {PARTIAL[generation.partial]}" if generation.partial else ""
        what = f"{plural(view.documents, 'document')}, {plural(view.sections, 'section')}{partial}"
        facts.append(("generation", f"{generation.number}: {what}"))
    if view.verified_at:
        facts.append(("checked", f"{ago(view.verified_at)} ({moment(view.verified_at)})"))
    if schedule := view.source.settings.schedule:
        why = " by a rollback, until the next 'kept refresh'" if view.source.schedule_paused_at else ""
        facts.append(("schedule", f"{schedule}; next run: {_next_run(view.source)}{why}"))
    if view.changes_every and view.suggested:
        facts.append(("changes", _rhythm(view, spell_duration(view.suggested.total_seconds()))))
    if view.validators:
        facts.append(("validators", _VALIDATORS[view.validators]))
    if view.source.sitemap_wrong_at:
        facts.append(("sitemap", "wrong: it calls pages modified that are not; quick refreshes do not go by it"))
    if view.untold:
        facts.append(("webhook", f"given up: {view.untold}"))
    if tags := view.source.settings.tags:
        facts.append(("tags", ", ".join(tags)))
    if settings := _settings(view.source.settings):
        facts.append(("settings", settings))
    if job:
        facts.append(("last crawl", _job(job)))
    if upcoming and upcoming.state == "held":
        facts.append(("waiting", f"generation {upcoming.number} is held: {upcoming.reason}"))
        facts.append(("decide", f"kept activate {view.source.label}, or kept discard {view.source.label}"))
    screen.table([[(f"  {name}", "dim"), value] for name, value in facts])


def _next_run(source: "Source") -> str:
    if not source.settings.schedule or not source.next_run_at:
        return "–"
    if source.schedule_paused_at:
        return "paused"
    return moment(source.next_run_at)


def _rhythm(view: "SourceView", suggested: str) -> str:
    """How often it changes, and what follows from that where nobody has seen to it."""
    assert view.changes_every is not None, "it is known"
    told = f"about every {spell_duration(view.changes_every.total_seconds())}"
    if view.source.settings.schedule in ("auto", suggested):
        return told
    return f"{told}; suggested: kept set {view.source.label} --schedule {suggested}"


_VALIDATORS = {
    "wrong": "wrong: pages changed and their validators did not; scheduled refreshes read everything",
    "none": "none: every refresh has to fetch every page",
}


def _settings(settings: "SourceSettings") -> str:
    limits, scope, access, region = settings.limits, settings.scope, settings.access, settings.region
    said = [
        f"at most {plural(limits.max_pages, 'page')}" if limits.max_pages is not None else "",
        f"at most {limits.max_depth:,} deep" if limits.max_depth is not None else "",
        f"new pages for at most {duration(limits.max_seconds)}" if limits.max_seconds is not None else "",
        f"only {', '.join(scope.include)}" if scope.include else "",
        f"without {', '.join(scope.exclude)}" if scope.exclude else "",
        f"exactly {plural(len(scope.pages), 'page')}" if scope.pages else "",
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
    return "; ".join(part for part in said if part)


def _job(job: "CrawlJob") -> str:
    ended = f" {ago(job.completed_at)}" if job.completed_at else ""
    why = f": {job.error}" if job.error else f": {told}" if (told := counts(job.progress.tally)) else ""
    return f"{job.status}{ended}{why} (job {job.id})"
