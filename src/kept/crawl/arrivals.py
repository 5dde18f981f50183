"""What is new in a crawl and may be a document that was there before; and which documents those may be."""

from collections.abc import Set

from kept.crawl.identity import (
    LIKENESSES,
    Adoption,
    Arrival,
    Former,
    Moving,
    Tier,
    is_similar,
    namesakes,
    same_path,
)
from kept.crawl.marks import Marks
from kept.crawl.sweep import Fate
from kept.model.document import Lifecycle
from kept.model.frontier import Outcome
from kept.model.generation import Generation
from kept.store import contents, documents
from kept.store.database import Connection, Row


def sought_in(marks: Marks, fates: dict[str, Fate]) -> list[Former]:
    """Documents of the base whose content may be found elsewhere: the lost, and the missing that brought none."""
    skipped = {seen.document for seen in marks.seen if seen.outcome is Outcome.SKIPPED}
    sought = []
    for one in fates.values():
        missing = one.lifecycle is Lifecycle.MISSING and one.document in skipped
        if (one.lost or missing) and one.document not in marks.merged:
            was = marks.shown[one.document]
            assert was.content_id is not None, "what the base shows has a content"
            tier = Tier.LOST if one.lost else Tier.MISSING
            sought.append(Former(document=one.document, url=was.url, content_id=was.content_id, tier=tier))
    return sought


async def arrivals_for(
    db: Connection, generation: Generation, sought: list[Former], moving: list[Moving]
) -> tuple[list[Arrival], list[Former]]:
    """What is new and may be a document that was there before, and those it may be that the base does not show."""
    source, number = generation.source_id, generation.number
    rows: list[Row] = []
    former: dict[str, Former] = {}
    for move in moving:
        row = await documents.arrival_at(db, source, number, move.end)
        rows += [row] if row else []
    for content_id in sorted({one.content_id for one in sought}):
        rows += await documents.arrivals_with_content(db, source, number, content_id)
    if await documents.has_former(db, source):
        for row in await documents.arrivals_like_former(db, source, number):
            rows.append(row)
            tier = Tier.MISSING if row["former_lifecycle"] == Lifecycle.MISSING else Tier.DELETED
            former[row["former_id"]] = Former(
                document=row["former_id"],
                url=row["former_url"],
                content_id=row["former_content_id"],
                tier=tier,
                born=row["former_born"],
            )
    arrivals = {row["version_id"]: _arrival(row) for row in rows}
    return list(arrivals.values()), list(former.values())


async def adopt_namesakes(
    db: Connection, generation: Generation, sought: list[Former], settled: list[Adoption], repeating: Set[str]
) -> list[Adoption]:
    """What has arrived under the name of a lost document and is similar to it, of what is not ``settled`` otherwise."""
    adopted = {one.document for one in settled}
    lost = [one for one in sought if one.tier is Tier.LOST and one.document not in adopted]
    if not lost:
        return []
    passed_over = repeating | {one.arrival.document for one in settled}
    rows = await documents.arrivals(db, generation.source_id, generation.number)
    free = [_arrival(row) for row in rows if row["document_id"] not in passed_over]
    adoptions: list[Adoption] = []
    for likeness in LIKENESSES:
        for arrival, former in namesakes(likeness, free, lost):
            if likeness is same_path or await _is_similar(db, arrival, former):
                adoptions.append(Adoption(arrival=arrival, document=former.document, from_url=former.url))
        adopted = {one.document for one in adoptions}
        passed_over = {one.arrival.document for one in adoptions}
        lost = [one for one in lost if one.document not in adopted]
        free = [one for one in free if one.document not in passed_over]
    return adoptions


async def _is_similar(db: Connection, arrival: Arrival, former: Former) -> bool:
    """Two texts at a time: a whole folder may have been moved and edited."""
    return is_similar(await contents.text(db, arrival.content_id), await contents.text(db, former.content_id))


def _arrival(row: Row) -> Arrival:
    return Arrival(
        version_id=row["version_id"],
        document=row["document_id"],
        url=row["url"],
        depth=row["depth"],
        content_id=row["content_id"],
        size=row["size"],
    )
