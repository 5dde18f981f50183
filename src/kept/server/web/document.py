"""The page of one document: its text, its versions, and what changed between two of them."""

import asyncio
from dataclasses import dataclass

from fastapi import APIRouter, Request, Response

from kept.errors import NotFound
from kept.server.responses import get_services
from kept.server.web.diff import diff_rows
from kept.server.web.markdown_html import MarkdownPage
from kept.server.web.page import GenerationParam, PageRoute, redirect_to, render_page
from kept.service import documents, generations
from kept.service.context import SharedSnapshot, share_snapshot
from kept.service.documents import DocumentHistory

router = APIRouter(route_class=PageRoute)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadableVersion:
    """A version of a document, and a generation that shows it."""

    generation: int
    until: int | None  # the first generation that does not show it any more
    title: str
    url: str
    fetched_at: str


@router.get("/documents/{id}")
async def show_document(request: Request, id: str, generation: GenerationParam | None = None) -> Response:
    services = get_services(request)
    async with share_snapshot(services.db) as snapshot:
        history, versions = await _readable_versions(snapshot, id)
        if generation is None and versions and versions[-1].until is not None:  # the active generation has it no more
            return redirect_to(f"/documents/{id}?generation={versions[-1].generation}")
        view = await documents.read_document(snapshot, id, generation=generation, rules=services.lifecycle_rules)
        outline = await documents.get_outline(snapshot, view.document, view.generation)
        page = await asyncio.to_thread(MarkdownPage, view.markdown, view.url)
        linked = await documents.find_documents_at(snapshot, history.source, view.generation, page.links)
    query = "" if generation is None else f"?generation={generation}"
    kept = {url: f"/documents/{document}{query}" for url, document in linked.items()}
    return render_page(
        "document.html",
        request,
        view=view,
        label=history.source,
        is_outdated=generation is not None and bool(versions) and _is_outdated(versions[-1], view.generation),
        headings=outline.headings,
        has_title=page.has_title,
        body=await asyncio.to_thread(page.html, outline, kept),
        versions=versions,
        current=_version_index(versions, view.generation),
    )


@router.get("/documents/{id}/diff")
async def show_diff(
    request: Request, id: str, a: GenerationParam | None = None, b: GenerationParam | None = None
) -> Response:
    """Show what changed from generation ``a`` to ``b``; by default, between the last two versions."""
    services = get_services(request)
    async with share_snapshot(services.db) as snapshot:
        history, versions = await _readable_versions(snapshot, id)
        if not versions:
            raise NotFound("This document has no version that could be compared.")
        a = versions[max(0, len(versions) - 2)].generation if a is None else a
        b = versions[-1].generation if b is None else b
        before, after = [
            await documents.read_document(snapshot, id, generation=number, rules=services.lifecycle_rules)
            for number in (a, b)
        ]
    rows, is_complete = await asyncio.to_thread(diff_rows, before.markdown, after.markdown)
    return render_page(
        "diff.html",
        request,
        label=history.source,
        versions=versions,
        selected=(_version_index(versions, a), _version_index(versions, b)),
        before=before,
        after=after,
        rows=rows,
        is_complete=is_complete,
        is_same=not any(row.differs for row in rows),
    )


def _is_outdated(latest: ReadableVersion, generation: int) -> bool:
    """Whether the active generation shows another version of the document, or none."""
    return generation < latest.generation or latest.until is not None


async def _readable_versions(snapshot: SharedSnapshot, id: str) -> tuple[DocumentHistory, list[ReadableVersion]]:
    """Return a document's history, and its versions that a retained generation shows, oldest first."""
    history = await documents.read_history(snapshot, id)
    _, found = await generations.list_generations(snapshot, history.source)
    readable = [item.number for item in found if item.state.is_readable]
    versions = []
    for version in history.versions:
        born, until = version.born, version.died
        number = next((number for number in readable if born <= number and (until is None or number < until)), None)
        if number is not None:
            versions.append(
                ReadableVersion(
                    generation=number,
                    until=until,
                    title=version.title,
                    url=version.url,
                    fetched_at=version.fetched_at.isoformat(),
                )
            )
    return history, versions


def _version_index(versions: list[ReadableVersion], generation: int) -> int:
    """Return the index of the version that a generation shows."""
    return max((index for index, version in enumerate(versions) if version.generation <= generation), default=0)
