"""What the shapes of answers promise to agents, and how answers read.

The shapes are those of ``service.shapes``; named here is what an agent may rely on, they may hold more.
"""

from collections.abc import Sequence
from typing import Any, TypedDict

from kept.model.duration import format_short_duration


class SearchDocsResult(TypedDict):
    query: str
    hits: list[dict[str, Any]]
    did_you_mean: str | None
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
    seconds: float


class RemoveSourceResult(TypedDict):
    source: str
    removed: bool


def format_hits(found: Sequence[dict[str, Any]]) -> str:
    """Sections as they are read: what each is, where it is from, what it says."""
    parts = []
    for number, hit in enumerate(found, 1):
        path = " › ".join(dict.fromkeys((hit["title"], *hit["headings"])))
        cut = "\n[… read_doc with this url has the rest]" if hit["truncated"] else ""
        said = hit.get("context") or hit["text"]
        parts.append(f"{number}. {path}\nurl: {hit['url']}\n{format_provenance(hit)}\n\n{said.strip()}{cut}")
    return "\n\n".join(parts)


def format_provenance(page: dict[str, Any]) -> str:
    """What a page stands on."""
    label = f"{page['source']}@{page['version']}" if page["version"] else page["source"]
    partial = ", partial" if page["partial"] else ""
    return f"source: {label}, generation {page['generation']}{partial}; last confirmed {page['verified_at'][:16]}"


def format_sources(found: Sequence[dict[str, Any]]) -> str:
    lines = [
        f"{one['source']}: {one['state']}, {one['documents']} documents of {one['root']}, "
        + (f"last confirmed {one['verified_at'][:16]}" if one["verified_at"] else "never crawled")
        for one in found
    ]
    return "\n".join(lines) or "Nothing is kept yet. add_source keeps documentation."


def format_job(shape: dict[str, Any]) -> str:
    progress = shape["progress"]
    left = progress["eta_seconds"]
    parts = [
        f"{shape['source']}: {shape['status']}{', held' if shape['held'] else ''}",
        f"{progress['done']} of {progress['discovered']} pages",
        f"about {format_short_duration(left)} left" if left else "",
        f"error: {shape['error']}" if shape["error"] else "",
        f"job {shape['id']}",
    ]
    return ", ".join(part for part in parts if part)


def format_crawl(shape: dict[str, Any]) -> str:
    """How a crawl stands or ended, and what to do next."""
    label, counts = shape["source"], {name: number for name, number in shape["counts"].items() if number}
    told = ", ".join(f"{number} {name}" for name, number in counts.items()) or "nothing yet"
    match shape["status"]:
        case "completed" if shape["held"]:
            return (
                f"{label}: generation {shape['generation']} is held, because it lost too much ({told}). What was live "
                f"stays live until a person decides: 'kept activate {label}' or 'kept discard {label}'."
            )
        case "completed":
            partial = " It is partial: why_missing tells of a page that is not there." if shape["partial"] else ""
            return f"{label}: generation {shape['generation']} is live: {told}.{partial} search_docs finds it now."
        case "failed":
            return f"{label}: the crawl failed: {shape['error']} fetch_url shows how one page is read."
        case "pending" | "processing":
            return f"{label}: the crawl is {shape['status']} ({told}). get_job with {shape['job']} follows it."
        case status:
            return f"{label}: the crawl is {status} (job {shape['job']})."


def format_changes(shape: dict[str, Any]) -> str:
    lines = [f"{shape['source']}, from generation {shape['from']} to {shape['to']}:"]
    for mark, kind in (("+", "added"), ("-", "removed"), ("~", "changed"), (">", "moved")):
        lines += [f"{mark} {one if isinstance(one, str) else _format_move(one)}" for one in shape[kind]]
        if more := shape["counts"][kind] - len(shape[kind]):
            lines.append(f"{mark} … and {more} more {kind}; a later 'since' has fewer")
    return "\n".join(lines if len(lines) > 1 else [f"{lines[0]} nothing differs"])


def _format_move(move: dict[str, str]) -> str:
    return f"{move['from']} -> {move['to']}"
