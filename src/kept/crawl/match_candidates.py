"""What is new in a crawl and may be a document that was there before; and which documents those may be."""

from collections.abc import Set

from kept.crawl.document_matching import (
    PATH_KEYS,
    DocumentMatch,
    FormerDocument,
    MatchTier,
    MoveCandidate,
    NewPage,
    is_similar,
    normalized_path,
    pair_by_path_key,
)
from kept.crawl.lifecycle import LifecycleChange
from kept.crawl.observations import Observations
from kept.model.document import Lifecycle
from kept.model.frontier import Outcome
from kept.model.generation import Generation
from kept.store import contents, documents
from kept.store.database import Connection, Row


def find_former_documents(observations: Observations, changes: dict[str, LifecycleChange]) -> list[FormerDocument]:
    """Documents of the base whose content may be found elsewhere: the lost, and the missing that brought none."""
    skipped = {seen.document for seen in observations.documents if seen.outcome is Outcome.SKIPPED}
    sought = []
    for one in changes.values():
        missing = one.lifecycle is Lifecycle.MISSING and one.document in skipped
        if (one.is_lost or missing) and one.document not in observations.merged_documents:
            was = observations.base_documents[one.document]
            assert was.content_id is not None, "what the base shows has a content"
            tier = MatchTier.LOST if one.is_lost else MatchTier.MISSING
            sought.append(FormerDocument(document=one.document, url=was.url, content_id=was.content_id, tier=tier))
    return sought


async def find_match_candidates(
    db: Connection, generation: Generation, sought: list[FormerDocument], move_candidates: list[MoveCandidate]
) -> tuple[list[NewPage], list[FormerDocument]]:
    """What is new and may be a document that was there before, and those it may be that the base does not show."""
    source, number = generation.source_id, generation.number
    rows: list[Row] = []
    former: dict[str, FormerDocument] = {}
    for move in move_candidates:
        row = await documents.new_by_url(db, source, number, move.target_url)
        rows += [row] if row else []
    for content_id in sorted({one.content_id for one in sought}):
        rows += await documents.new_with_content(db, source, number, content_id)
    if await documents.has_former(db, source):
        for row in await documents.new_matching_former(db, source, number):
            rows.append(row)
            tier = MatchTier.MISSING if row["former_lifecycle"] == Lifecycle.MISSING else MatchTier.DELETED
            former[row["former_id"]] = FormerDocument(
                document=row["former_id"],
                url=row["former_url"],
                content_id=row["former_content_id"],
                tier=tier,
                born=row["former_born"],
            )
    arrivals = {row["version_id"]: _make_new_page(row) for row in rows}
    return list(arrivals.values()), list(former.values())


async def match_by_path(
    db: Connection,
    generation: Generation,
    sought: list[FormerDocument],
    matched: list[DocumentMatch],
    dropped: Set[str],
) -> list[DocumentMatch]:
    """What has arrived under the name of a lost document and is similar to it, of what is not ``settled`` otherwise."""
    adopted = {one.document for one in matched}
    lost = [one for one in sought if one.tier is MatchTier.LOST and one.document not in adopted]
    if not lost:
        return []
    passed_over = dropped | {one.new_page.document for one in matched}
    rows = await documents.list_new(db, generation.source_id, generation.number)
    free = [_make_new_page(row) for row in rows if row["document_id"] not in passed_over]
    matches: list[DocumentMatch] = []
    for likeness in PATH_KEYS:
        for arrival, former in pair_by_path_key(likeness, free, lost):
            if likeness is normalized_path or await _has_similar_text(db, arrival, former):
                matches.append(DocumentMatch(new_page=arrival, document=former.document, from_url=former.url))
        adopted = {one.document for one in matches}
        passed_over = {one.new_page.document for one in matches}
        lost = [one for one in lost if one.document not in adopted]
        free = [one for one in free if one.document not in passed_over]
    return matches


async def _has_similar_text(db: Connection, new_page: NewPage, former: FormerDocument) -> bool:
    """Two texts at a time: a whole folder may have been moved and edited."""
    return is_similar(
        await contents.get_markdown(db, new_page.content_id), await contents.get_markdown(db, former.content_id)
    )


def _make_new_page(row: Row) -> NewPage:
    return NewPage(
        version_id=row["version_id"],
        document=row["document_id"],
        url=row["url"],
        depth=row["depth"],
        content_id=row["content_id"],
        size=row["size"],
    )
