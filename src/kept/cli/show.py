"""How answers read for people."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kept.cli.screen import Part, Screen
from kept.cli.words import ago, counts, duration, moment, plural
from kept.model.duration import spell_duration

if TYPE_CHECKING:
    from kept.model.generation import Generation
    from kept.model.job import CrawlJob
    from kept.model.source import Source, SourceSettings
    from kept.runtime.looking import Look, Survey
    from kept.service.crawls import JobView
    from kept.service.finding import Hit
    from kept.service.ledger import Account, Ledger
    from kept.service.reading import History, Page
    from kept.service.sources import SourceView


# Search and reading --------------------------------------------------------------------------------------------


def hits(screen: Screen, found: Sequence["Hit"], query: str, meant: str | None = None) -> None:
    if not found:
        screen.line(f"Nothing was found for: {query}" + (f". Did you mean: {meant}?" if meant else ""))
    for number, hit in enumerate(found):
        if number:
            screen.line()
        title = () if hit.headings and hit.headings[0] == hit.title else (hit.title,)
        label = f"{hit.source}@{hit.version}" if hit.version else hit.source
        partial = ", partial" if hit.partial else ""
        about = f"  {label}, {ago(hit.verified_at)}{partial}"
        screen.line((" › ".join((*title, *hit.headings)), "bold"), (about, "dim"))
        screen.line((hit.url, "cyan"), indent=2)
        screen.line(*_marked(hit.snippet), indent=2, wrap=True)
        for other in hit.also:
            screen.line(
                (f"also in {other['source']}{'@' if other['version'] else ''}{other['version']}: ", "dim"),
                other["url"],
                indent=2,
            )
        if hit.context:
            screen.line()
            screen.line(hit.context, indent=4)


def page_origin(screen: Screen, page: "Page") -> None:
    label = f"{page.source}@{page.version}" if page.version else page.source
    partial = ", which is partial" if page.partial else ""
    trouble = "" if page.lifecycle == "active" else f", now {page.lifecycle}"
    seen = f"fetched {ago(page.fetched_at)}, last confirmed {ago(page.verified_at)}"
    screen.line((page.url, "dim"))
    screen.line((f"{label}, generation {page.generation}{partial}{trouble}; {seen}\n", "dim"))


def history(screen: Screen, history: "History") -> None:
    """What became of a document, oldest first."""
    latest = history.versions[-1] if history.versions else {"url": history.document}
    screen.line((latest["url"], "bold"))
    screen.line(f"in {history.source}, document {history.document}, first seen {moment(history.first_seen)}", indent=2)
    if history.lifecycle != "active":
        why = f": {history.reason}" if history.reason else ""
        screen.line(f"now {history.lifecycle}, since {moment(history.since)}{why}", indent=2)
    screen.line()
    screen.table([[(f"  {number}", "bold"), when, what] for number, when, what in _story(history)], right=[0])


def _story(history: "History") -> Iterator[tuple[int, str, str]]:
    """Generation, time and what happened in it."""
    begins = {version["generation"] for version in history.versions}
    before: Mapping[str, Any] | None = None
    for version in history.versions:
        yield version["generation"], _time(version["activated_at"] or version["fetched_at"]), _event(before, version)
        before = version
        if version["until"] is not None and version["until"] not in begins:
            yield version["until"], _time(version["ended_at"]), "removed"


def _event(before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> str:
    says = f"“{now['title']}”, {plural(now['size'], 'character')}"
    if before is None:
        return f"added: {says}"
    told = ["back"] if before["until"] != now["generation"] else []
    if before["url"] != now["url"]:
        told.append(f"moved to {now['url']}")
    if before["content_hash"] != now["content_hash"]:
        told.append(f"read again: {says}" if now["read_again"] else f"changed: {says}")
    return ", and ".join(told) + (f" ({now['rolled_back']})" if now["rolled_back"] else "")


# Looking and explaining ---------------------------------------------------------------------------------------------

_SHOWN = 20  # URLs of each kind


def look(screen: Screen, look: "Look") -> None:
    """One page as it would be kept."""
    content = look.reading.content
    screen.line((content.title or look.url, "bold"))
    status = f"{look.status}, " if look.status else ""
    screen.line((f"{look.url} ({status}{look.content_type})", "dim"))
    screen.line()
    screen.line(("Sections", "bold"))
    for section in content.sections:
        anchor = f"  #{section.anchor}" if section.anchor else ""
        screen.line(section.heading or "(before the first heading)", (anchor, "dim"), indent=2 * max(1, section.level))
    inside = [url for url, why in look.links.items() if why is None]
    screen.line()
    screen.line((f"Links: {len(inside):,} in scope, {len(look.links) - len(inside):,} not", "bold"))
    for url in inside[:_SHOWN]:
        screen.line(url, indent=2)
    _rest(screen, len(inside))
    _grouped(screen, {url: why for url, why in look.links.items() if why is not None})
    screen.line()
    screen.line(("Markdown", "bold"))
    screen.text(content.markdown)


def survey(screen: Screen, root: str, survey: "Survey") -> None:
    """What a source would begin with."""
    more = ", of those that were looked at" if survey.more else ""
    screen.line((f"{root}: {plural(len(survey.included), 'page')} to begin with{more}", "bold"))
    for url in survey.included[:_SHOWN]:
        screen.line(("+ ", "green"), url)
    _rest(screen, len(survey.included))
    _grouped(screen, survey.left_out)
    for url, why in survey.unread.items():
        screen.line(("? ", "yellow"), f"{url}: {why}")
    screen.line(("Nothing is kept yet. The pages it begins with lead to others.", "dim"))


def _grouped(screen: Screen, left_out: Mapping[str, str]) -> None:
    """URLs that are not taken, by reason."""
    for reason in dict.fromkeys(left_out.values()):
        urls = [url for url, why in left_out.items() if why == reason]
        screen.line((f"{reason}: {plural(len(urls), 'URL')}", "yellow"), indent=2)
        for url in urls[:_SHOWN]:
            screen.line(("- ", "red"), url, indent=2)
        _rest(screen, len(urls))


def _rest(screen: Screen, number: int) -> None:
    if number > _SHOWN:
        screen.line((f"… and {number - _SHOWN:,} more (--json has them)", "dim"), indent=2)


def why(screen: Screen, accounts: Sequence["Account"]) -> None:
    """What the last crawls made of a URL."""
    screen.line((accounts[0].url, "bold"))
    for one in accounts:
        told = f"{one.outcome}{f': {one.reason}' if one.reason else ''}" if one.outcome else _open(one)
        screen.line(f"{one.source}: {told}", indent=2)
        facts = [
            f"visited {ago(one.visited_at)}" if one.visited_at else "never visited",
            f"answered {one.http_status}" if one.http_status else "",
            f"tried {one.attempts} times" if one.attempts > 1 else "",
            f"found on {one.discovered_from}" if one.discovered_from else "known from the root or a list",
            f"{plural(one.depth, 'link')} deep" if one.depth else "",
        ]
        screen.line(("; ".join(fact for fact in facts if fact), "dim"), indent=4)


def _open(account: "Account") -> str:
    return f"to be tried again: {account.reason}" if account.reason else "not visited yet: a crawl is under way"


def not_kept(screen: Screen, ledger: "Ledger") -> None:
    """Every page that was not kept, by reason."""
    total = sum(reason.count for reason in ledger.reasons)
    told = f"{plural(total, 'URL')} not kept" if total else "every URL was kept"
    screen.line((f"{ledger.source}: {told} by the crawl of {moment(ledger.crawled_at)}", "bold"))
    for reason in ledger.reasons:
        screen.line((f"{reason.count:,} {reason.outcome}", "yellow"), f": {reason.reason}", indent=2)
        for url in reason.examples:
            screen.line(url, indent=6)
        if reason.count > len(reason.examples):
            screen.line((f"… and {reason.count - len(reason.examples):,} more (--limit)", "dim"), indent=6)


# Sources -------------------------------------------------------------------------------------------------------


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
                (view.state, _COLOURS.get(view.state, "")),
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
        partial = f", partial: {_PARTIAL[generation.partial]}" if generation.partial else ""
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


# Jobs ----------------------------------------------------------------------------------------------------------


def jobs(screen: Screen, views: Sequence["JobView"]) -> None:
    if not views:
        screen.line("There are no such crawls. 'kept add' and 'kept refresh' make some.")
        return
    head = ["JOB", "SOURCE", "STATUS", "DONE", "WORKERS", "ASKED FOR", ""]
    rows: list[list[Part]] = [[(title, "dim") for title in head]]
    for view in views:
        job = view.job
        rows.append(
            [
                (job.id, "bold"),
                view.source,
                (job.status, _COLOURS.get(job.status, "")),
                f"{job.progress.done:,}/{job.progress.discovered:,}",
                str(view.workers),
                ago(job.created_at),
                job.error or _pace(view),
            ]
        )
    screen.table(rows, right=[3, 4])


def job(screen: Screen, view: "JobView") -> None:
    job, progress = view.job, view.job.progress
    screen.line((job.id, "bold"))
    facts = [
        ("source", view.source),
        ("status", f"{job.status}{', held' if job.held else ''}"),
        ("mode", str(job.mode)),
    ]
    done = f"{progress.done:,} of {progress.discovered:,} pages ({progress.percent} %)"
    facts.append(("progress", ", ".join(part for part in (done, _pace(view)) if part)))
    if told := counts(progress.tally):
        facts.append(("counts", told))
    facts.append(("asked for", moment(job.created_at)))
    if job.started_at:
        facts.append(("started", moment(job.started_at)))
    if job.completed_at:
        facts.append(("ended", moment(job.completed_at)))
    facts += [("worker", f"{place.name}, process {place.pid}") for place in view.places]
    if job.retry_count:
        facts.append(("retries", f"{job.retry_count} of {job.max_retries}"))
    if job.again:
        facts.append(("then", f"asked for meanwhile: another crawl follows ({job.again})"))
    if job.error:
        facts.append(("error", job.error))
    screen.table([[(f"  {name}", "dim"), value] for name, value in facts])


def _pace(view: "JobView") -> str:
    """'12 a second, 3 min 20 s left', while somebody is at it."""
    if view.job.status != "processing" or not view.pace.rate:
        return ""
    left = f", {duration(view.pace.eta_seconds)} left" if view.pace.eta_seconds else ""
    return f"{view.pace.rate:,.0f} a second{left}"


# Generations ---------------------------------------------------------------------------------------------------


def generations(screen: Screen, of: "Source", found: "Sequence[Generation]") -> None:
    if not found:
        screen.line(f"{of.label} has no generation yet: its first crawl is not finished.")
        return
    head = ["GENERATION", "STATE", "SINCE", "DOCUMENTS", "WHAT HAPPENED"]
    rows: list[list[Part]] = [[(title, "dim") for title in head]]
    for one in found:
        told = [
            "quick" if one.mode == "quick" else "",
            one.reason or "",
            counts(one.tally) if not one.reason or one.job_id else "",
        ]
        told.append(f"partial: {_PARTIAL[one.partial]}" if one.partial else "")
        rows.append(
            [
                (str(one.number), "bold"),
                (one.state, _COLOURS.get(one.state, "")),
                moment(one.activated_at or one.created_at),
                f"{one.documents:,}",
                "; ".join(part for part in told if part),
            ]
        )
    screen.table(rows, right=[0, 3])


# Parts ---------------------------------------------------------------------------------------------------------

_COLOURS = {
    "ready": "green",
    "active": "green",
    "held": "yellow",
    "paused": "yellow",
    "failed": "red",
    "processing": "cyan",
    "retired": "dim",
    "abandoned": "dim",
}
_PARTIAL = {"limit": "a limit was reached", "errors": "some pages could not be read"}


def _marked(snippet: str) -> Iterator[Part]:
    """The words that were asked for are between asterisks: bold on a terminal, plain in a pipe."""
    for number, part in enumerate(snippet.replace("****", "**").split("**")):
        yield (part, "bold") if number % 2 else part


def _time(iso: str | None) -> str:
    from datetime import datetime

    return moment(datetime.fromisoformat(iso)) if iso else ""
