"""New pages that may be former documents, and the former documents they may match, read from the store."""

from collections.abc import Set

from kept.crawl.document_matching import (
    PATH_KEYS,
    DocumentMatch,
    MoveCandidate,
    is_similar,
    normalized_path,
    pair_by_path_key,
)
from kept.crawl.observations import Observations
from kept.model.document import FormerDocument, Lifecycle, LifecycleChange, MatchTier, NewPage
from kept.model.frontier import Outcome
from kept.model.generation import Generation
from kept.store import contents, documents
from kept.store.database import Connection


def find_former_documents(observations: Observations, changes: dict[str, LifecycleChange]) -> list[FormerDocument]:
    """Return documents of the base whose content may be elsewhere now: lost ones, and skipped ones that are missing."""
    skipped = {seen.document for seen in observations.documents if seen.outcome is Outcome.SKIPPED}
    former = []
    for change in changes.values():
        is_missing = change.lifecycle is Lifecycle.MISSING and change.document in skipped
        if (change.is_lost or is_missing) and change.document not in observations.merged_documents:
            entry = observations.base_documents[change.document]
            assert entry.content_id is not None, "a document of the base has a content"
            tier = MatchTier.LOST if change.is_lost else MatchTier.MISSING
            former.append(
                FormerDocument(document=change.document, url=entry.url, content_id=entry.content_id, tier=tier)
            )
    return former


async def find_match_candidates(
    db: Connection, generation: Generation, former: list[FormerDocument], move_candidates: list[MoveCandidate]
) -> tuple[list[NewPage], list[FormerDocument]]:
    """Return the new pages that may be former documents, and further former documents: those the base does not show."""
    source, number = generation.source_id, generation.number
    pages: list[NewPage] = []
    hidden: dict[str, FormerDocument] = {}
    for move in move_candidates:
        page = await documents.new_by_url(db, source, number, move.target_url)
        pages += [page] if page else []
    for content_id in sorted({document.content_id for document in former}):
        pages += await documents.new_with_content(db, source, number, content_id)
    if await documents.has_former(db, source):
        for page, document in await documents.new_matching_former(db, source, number):
            pages.append(page)
            hidden[document.document] = document
    return list({page.version_id: page for page in pages}.values()), list(hidden.values())


async def match_by_path(
    db: Connection,
    generation: Generation,
    former: list[FormerDocument],
    matched: list[DocumentMatch],
    dropped: Set[str],
) -> list[DocumentMatch]:
    """Match lost files with new ones by path, and by similar text where the path alone is weak evidence.

    Considers what is neither ``matched`` nor ``dropped`` yet.
    """
    matched_documents = {match.document for match in matched}
    lost = [one for one in former if one.tier is MatchTier.LOST and one.document not in matched_documents]
    if not lost:
        return []
    taken = dropped | {match.new_page.document for match in matched}
    new_pages = await documents.list_new(db, generation.source_id, generation.number)
    free = [page for page in new_pages if page.document not in taken]
    matches: list[DocumentMatch] = []
    for path_key in PATH_KEYS:
        for page, document in pair_by_path_key(path_key, free, lost):
            if path_key is normalized_path or await _has_similar_text(db, page, document):
                matches.append(DocumentMatch(new_page=page, document=document.document, from_url=document.url))
        matched_documents = {match.document for match in matches}
        taken = {match.new_page.document for match in matches}
        lost = [one for one in lost if one.document not in matched_documents]
        free = [page for page in free if page.document not in taken]
    return matches


async def _has_similar_text(db: Connection, page: NewPage, former: FormerDocument) -> bool:
    """Compare two texts; never more at a time, because a whole folder may have been moved and edited."""
    return is_similar(
        await contents.get_markdown(db, page.content_id), await contents.get_markdown(db, former.content_id)
    )
