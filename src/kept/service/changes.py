"""The change feed: the changes of documents, generation by generation, the latest first."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum

from kept.errors import InvalidInput
from kept.model.changes import ChangedGeneration, DocumentChange
from kept.model.source import format_label
from kept.search.search import title_from_url
from kept.service.cursor import decode_cursor, encode_cursor
from kept.service.lookup import find_source, is_id
from kept.store import changes
from kept.store.database import Connection, ReadableDatabase
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
    """The change of one document in one generation."""

    source: str
    generation: int
    at: datetime  # when that generation became active
    change: ChangeKind
    document: str
    url: str
    title: str
    from_url: str | None = None  # of a move: where it was before
    edited: bool = False  # its text changed, too
    reason: str | None = None  # of a removal
    rolled_back: str | None = None  # by a rollback, not by a crawl: to where


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeFeedPage:
    since: datetime | None
    changes: list[Change]
    next: str | None  # the cursor of the next page; None: there is none


@dataclass(frozen=True, slots=True, kw_only=True)
class _FeedPosition:
    """A position in the feed."""

    at: datetime = LATEST
    source: str = MAX_ID
    number: int = LARGEST_NUMBER
    url: str = ""
    document: str = changes.FIRST_ID


async def list_changes(
    db: ReadableDatabase,
    label: str | None = None,
    *,
    since: datetime | None = None,
    limit: int = 100,
    cursor: str | None = None,
) -> ChangeFeedPage:
    """List documents that were added, changed, moved, removed and restored, of one source or of all.

    ``cursor`` is the ``next`` of the page before; crawls that end meanwhile do not disturb it. The same bytes read by
    another reader are no change.
    """
    if limit < 1:
        raise InvalidInput("--limit should be at least 1.")
    position = _decode_position(cursor) if cursor else _FeedPosition()
    found: list[tuple[Change, _FeedPosition]] = []
    async with db.snapshot() as snapshot:
        source = (await find_source(snapshot, label)).id if label else None
        while len(found) <= limit and (changed := await _generations(snapshot, source, since or EARLIEST, position)):
            for generation in changed:
                here = replace(
                    position, at=generation.activated_at, source=generation.source_id, number=generation.number
                )
                if (here.source, here.number) != (position.source, position.number):
                    here = replace(here, url="", document=changes.FIRST_ID)
                documents = await changes.changes_in_generation(
                    snapshot,
                    here.source,
                    here.number,
                    url=here.url,
                    document=here.document,
                    limit=limit + 1 - len(found),
                )
                found += [
                    (_change(generation, one), replace(here, url=one.url, document=one.document_id))
                    for one in documents
                ]
                if len(found) > limit:
                    break
            position = replace(here, number=here.number - 1, url="", document=changes.FIRST_ID)
    shown = found[:limit]
    return ChangeFeedPage(
        since=since,
        changes=[change for change, _ in shown],
        next=_encode_position(shown[-1][1]) if len(found) > limit else None,
    )


async def _generations(
    db: Connection, source: str | None, since: datetime, position: _FeedPosition
) -> list[ChangedGeneration]:
    if source:
        return await changes.changed_generations_of_source(
            db, source, since=since, number=position.number, limit=GENERATIONS_PER_QUERY
        )
    return await changes.changed_generations(
        db, since=since, at=position.at, source=position.source, number=position.number, limit=GENERATIONS_PER_QUERY
    )


def _change(generation: ChangedGeneration, change: DocumentChange) -> Change:
    return Change(
        source=format_label(generation.source_name, generation.source_version),
        generation=generation.number,
        at=generation.activated_at,
        change=_kind(generation.number, change),
        document=change.document_id,
        url=change.url,
        title=change.title or title_from_url(change.url),
        from_url=change.before_url if change.before_url != change.url else None,
        edited=change.before_hash not in (None, change.content_hash) and not change.read_again,
        reason=change.end_reason,
        rolled_back=generation.rolled_back,
    )


def _kind(generation: int, change: DocumentChange) -> ChangeKind:
    if change.removed:
        return ChangeKind.REMOVED
    if change.before_url is None:
        return ChangeKind.ADDED
    if change.before_died != generation:
        return ChangeKind.RESTORED
    return ChangeKind.CHANGED if change.before_url == change.url else ChangeKind.MOVED


def _encode_position(position: _FeedPosition) -> str:
    values = [position.at.isoformat(), position.source, position.number, position.url, position.document]
    return encode_cursor(values)


def _decode_position(text: str) -> _FeedPosition:
    try:
        at, source, number, url, document = decode_cursor(text)
        position = _FeedPosition(
            at=datetime.fromisoformat(at), source=source, number=number, url=url, document=document
        )
        is_valid = is_id(source) and is_id(document) and 0 <= number <= LARGEST_NUMBER and url.isprintable()
    except (ValueError, TypeError, AttributeError):
        is_valid = False
    if not is_valid or position.at.tzinfo is None:
        raise InvalidInput("This is no cursor of the change feed: take the 'next' of the answer before.")
    return position
