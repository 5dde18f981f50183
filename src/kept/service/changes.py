"""The change feed: what became of which document, generation by generation, the latest first."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum

from kept.errors import InvalidInput
from kept.model.source import format_label
from kept.search.search import title_from_url
from kept.service.cursor import decode_cursor, encode_cursor
from kept.service.lookup import find_source, is_id
from kept.store import generations
from kept.store.database import Connection, Database, Row, parse_time
from kept.store.generations import LARGEST_NUMBER

GENERATIONS_PER_QUERY = 50
EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime(9999, 1, 1, tzinfo=UTC)
MAX_ID = "ffffffff-ffff-ffff-ffff-ffffffffffff"


class ChangeKind(StrEnum):
    ADDED = "added"
    CHANGED = "changed"
    MOVED = "moved"
    REMOVED = "removed"
    RESTORED = "restored"  # it was removed before, and is the same document


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What became of one document in one generation."""

    source: str
    generation: int
    at: datetime  # when that generation became active
    change: ChangeKind
    document: str
    url: str
    title: str
    from_url: str | None = None  # of a move: where it was before
    edited: bool = False  # what it says is new, too
    rolled_back: str | None = None  # by a rollback, not by a crawl: to where


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeFeedPage:
    since: datetime | None
    changes: list[Change]
    next: str | None  # a cursor for what comes after these; None: nothing does


@dataclass(frozen=True, slots=True, kw_only=True)
class _FeedPosition:
    """Where in the feed something is."""

    at: datetime = LATEST
    source: str = MAX_ID
    number: int = LARGEST_NUMBER
    url: str = ""
    document: str = generations.FIRST_ID


async def list_changes(
    db: Database,
    label: str | None = None,
    *,
    since: datetime | None = None,
    limit: int = 100,
    cursor: str | None = None,
) -> ChangeFeedPage:
    """Documents that were added, changed, moved, removed and restored, of one source or of all.

    ``cursor`` is the ``next`` of the answer before; crawls that end meanwhile do not disturb it. What another reader
    made of the same bytes is no change.
    """
    if limit < 1:
        raise InvalidInput("--limit should be at least 1.")
    place = _decode_position(cursor) if cursor else _FeedPosition()
    found: list[tuple[Change, _FeedPosition]] = []
    async with db.snapshot() as snapshot:
        source = (await find_source(snapshot, label)).id if label else None
        while len(found) <= limit and (made := await _generations(snapshot, source, since or EARLIEST, place)):
            for row in made:
                here = replace(place, at=parse_time(row["activated_at"]), source=row["source_id"], number=row["number"])
                if (here.source, here.number) != (place.source, place.number):
                    here = replace(here, url="", document=generations.FIRST_ID)
                rows = await generations.changes_in_generation(
                    snapshot,
                    here.source,
                    here.number,
                    url=here.url,
                    document=here.document,
                    limit=limit + 1 - len(found),
                )
                found += [
                    (_change(row, one), replace(here, url=one["url"], document=one["document_id"])) for one in rows
                ]
                if len(found) > limit:
                    break
            place = replace(here, number=here.number - 1, url="", document=generations.FIRST_ID)
    shown = found[:limit]
    return ChangeFeedPage(
        since=since,
        changes=[change for change, _ in shown],
        next=_encode_position(shown[-1][1]) if len(found) > limit else None,
    )


async def _generations(db: Connection, source: str | None, since: datetime, position: _FeedPosition) -> list[Row]:
    if source:
        return await generations.changed_generations_of_source(
            db, source, since=since, number=position.number, limit=GENERATIONS_PER_QUERY
        )
    return await generations.changed_generations(
        db, since=since, at=position.at, source=position.source, number=position.number, limit=GENERATIONS_PER_QUERY
    )


def _change(generation: Row, row: Row) -> Change:
    kind = _kind(generation["number"], row)
    return Change(
        source=format_label(generation["source_name"], generation["source_version"]),
        generation=generation["number"],
        at=parse_time(generation["activated_at"]),
        change=kind,
        document=row["document_id"],
        url=row["url"],
        title=row["title"] or title_from_url(row["url"]),
        from_url=row["before_url"] if row["before_url"] not in (None, row["url"]) else None,
        edited=row["before_hash"] not in (None, row["content_hash"]) and not row["read_again"],
        rolled_back=generation["rolled_back"],
    )


def _kind(generation: int, row: Row) -> ChangeKind:
    if row["removed"]:
        return ChangeKind.REMOVED
    if row["before_url"] is None:
        return ChangeKind.ADDED
    if row["before_died"] != generation:
        return ChangeKind.RESTORED
    return ChangeKind.CHANGED if row["before_url"] == row["url"] else ChangeKind.MOVED


def _encode_position(position: _FeedPosition) -> str:
    values = [position.at.isoformat(), position.source, position.number, position.url, position.document]
    return encode_cursor(values)


def _decode_position(text: str) -> _FeedPosition:
    try:
        at, source, number, url, document = decode_cursor(text)
        place = _FeedPosition(at=datetime.fromisoformat(at), source=source, number=number, url=url, document=document)
        sound = is_id(source) and is_id(document) and 0 <= number <= LARGEST_NUMBER and url.isprintable()
    except (ValueError, TypeError, AttributeError):
        sound = False
    if not sound or place.at.tzinfo is None:
        raise InvalidInput("This is no cursor of the change feed: take the 'next' of the answer before.")
    return place
