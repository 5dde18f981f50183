"""Types of the tools' structured content, and how answers read as text.

The content is built by ``service.serializers``; the types name the fields that an agent may rely on, and there may be
more.
"""

from collections.abc import Sequence
from typing import Any, TypedDict

from kept.model.duration import format_short_duration
from kept.service.formatting import format_count


class SearchDocsResult(TypedDict):
    query: str
    hits: list[dict[str, Any]]
    did_you_mean: str | None
    without: list[str]
    notice: str


class ReadDocResult(TypedDict):
    document: str
    source: str
    version: str
    generation: int
    url: str
    title: str
    markdown: str
    fetched_at: str
    verified_at: str
    partial: bool
    next_start: int | None
    notice: str


class FetchUrlResult(TypedDict):
    url: str
    title: str | None
    markdown: str
    sections: list[dict[str, Any]]
    next_start: int | None
    notice: str


class WhyMissingResult(TypedDict):
    source: str
    url: str
    outcome: str | None
    reason: str | None


class ListSourcesResult(TypedDict):
    sources: list[dict[str, Any]]


class FindVersionResult(TypedDict):
    source: str
    target: str
    best: str | None
    versions: list[str]


class WhatChangedResult(TypedDict):
    source: str
    added: list[str]
    removed: list[str]
    changed: list[str]
    moved: list[dict[str, str]]


class ListJobsResult(TypedDict):
    jobs: list[dict[str, Any]]


class JobToolResult(TypedDict):
    id: str
    source: str
    status: str
    progress: dict[str, Any]
    error: str | None


class CrawlToolResult(TypedDict):
    source: str
    job: str
    status: str
    generation: int | None
    held: bool
    partial: bool
    counts: dict[str, int]
    removed: list[dict[str, Any]]
    seconds: float


class RemoveSourceResult(TypedDict):
    source: str
    removed: bool


def format_hits(found: Sequence[dict[str, Any]]) -> str:
    """Format sections: headings, URL, provenance and text of each."""
    parts = []
    for number, hit in enumerate(found, 1):
        path = " › ".join(dict.fromkeys((hit["title"], *hit["headings"])))
        note = "\n[… read_doc with this url has the rest]" if hit["truncated"] else ""
        text = hit.get("context") or hit["text"]
        parts.append(f"{number}. {path}\nurl: {hit['url']}\n{format_provenance(hit)}\n\n{text.strip()}{note}")
    return "\n\n".join(parts)


def format_provenance(page: dict[str, Any]) -> str:
    """Format source, generation and age of a page."""
    label = f"{page['source']}@{page['version']}" if page["version"] else page["source"]
    partial = ", partial" if page["partial"] else ""
    return f"source: {label}, generation {page['generation']}{partial}; last confirmed {page['verified_at'][:16]}"


def format_sources(found: Sequence[dict[str, Any]]) -> str:
    return "\n".join(
        f"{source['source']}: {source['state']}, {source['documents']} documents of {source['root']}, "
        + (f"last confirmed {source['verified_at'][:16]}" if source["verified_at"] else "never crawled")
        for source in found
    )


def format_job(job: dict[str, Any]) -> str:
    progress = job["progress"]
    left = progress["eta_seconds"]
    parts = [
        f"{job['source']}: {job['status']}{', held' if job['held'] else ''}",
        f"{progress['done']} of {progress['discovered']} pages",
        f"about {format_short_duration(left)} left" if left else "",
        f"job {job['id']}",
    ]
    return ", ".join(part for part in parts if part)


def format_job_errors(jobs: Sequence[dict[str, Any]]) -> str:
    return "\n".join(f"job {job['id']}: {job['error']}" for job in jobs if job["error"])


def format_crawl(crawl: dict[str, Any]) -> str:
    """Format the state of a crawl, and what to do next."""
    label, counts = crawl["source"], {name: number for name, number in crawl["counts"].items() if number}
    summary = ", ".join(format_count(name, number) for name, number in counts.items()) or "nothing yet"
    match crawl["status"]:
        case "completed" if crawl["held"]:
            return (
                f"{label}: generation {crawl['generation']} is held, because it lost too much ({summary}). The active "
                f"generation stays active until a person decides: 'kept activate {label}' or 'kept discard {label}'."
            )
        case "completed" if crawl["generation"] is None:
            return f"{label}: nothing had failed, so there was nothing to repair. The active generation stays."
        case "completed":
            partial = " It is partial: why_missing explains a missing page." if crawl["partial"] else ""
            return f"{label}: generation {crawl['generation']} is active: {summary}.{partial} search_docs finds it now."
        case "failed":
            return f"{label}: the crawl failed, as said below. fetch_url shows how one page is read."
        case "pending" | "processing":
            return f"{label}: the crawl is {crawl['status']} ({summary}). get_job with {crawl['job']} follows it."
        case status:
            return f"{label}: the crawl is {status} (job {crawl['job']})."


def format_changes(diff: dict[str, Any]) -> str:
    lines = [f"{diff['source']}, from generation {diff['from']} to {diff['to']}:"]
    for mark, kind in (("+", "added"), ("-", "removed"), ("~", "changed"), (">", "moved")):
        lines += [f"{mark} {item if isinstance(item, str) else _format_move(item)}" for item in diff[kind]]
        if more := diff["counts"][kind] - len(diff[kind]):
            lines.append(f"{mark} … and {more} more {kind}; a later 'since' has fewer")
    return "\n".join(lines if len(lines) > 1 else [f"{lines[0]} nothing differs"])


def _format_move(move: dict[str, str]) -> str:
    return f"{move['from']} -> {move['to']}"
