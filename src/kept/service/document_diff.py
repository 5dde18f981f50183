"""One document in two generations: what it said, and what it says."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import takewhile

from kept.crawl.lifecycle import LifecycleRules
from kept.errors import NotFound
from kept.model.generation import GenerationState
from kept.model.source import Source
from kept.search.search import title_from_url
from kept.service.lookup import find_document_id, find_readable_generation, find_source
from kept.service.reviewing import preview_held_document
from kept.store import documents, generations, sources
from kept.store.compression import decompress
from kept.store.database import Connection, ReadableDatabase, Row

CONTEXT_LINES = 3  # lines around a difference
MAX_DIFF_LINES = 10_000  # that are compared one by one: it costs the square of them


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffSide:
    """A document as one generation shows it."""

    generation: int
    url: str
    title: str
    markdown: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffHunk:
    """A stretch of lines that differ, with some around them. Lines are counted from 1."""

    from_line: int
    from_lines: int
    to_line: int
    to_lines: int
    lines: list[str]  # each begins with " ", "-" or "+"

    @property
    def header(self) -> str:
        return f"@@ -{self.from_line},{self.from_lines} +{self.to_line},{self.to_lines} @@"


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentDiff:
    """``before`` or ``after`` is None where that generation does not show the document."""

    source: str
    document: str
    a: int
    b: int
    before: DiffSide | None
    after: DiffSide | None
    hunks: list[DiffHunk]

    @property
    def change(self) -> str | None:
        """What became of it, in the words of the change feed; None: nothing."""
        if self.before is None or self.after is None:
            return "removed" if self.before else "added"
        if self.before.url != self.after.url:
            return "moved"
        return "changed" if self.hunks or self.before.title != self.after.title else None


async def diff_document(
    db: ReadableDatabase,
    document: str,
    a: int,
    b: int,
    *,
    label: str | None = None,
    rules: LifecycleRules | None = None,
) -> DocumentDiff:
    """What differs in a document, named by its URL, path or id, between generations ``a`` and ``b`` of its source.

    ``label`` says of which source, where several keep the same URL. ``b`` may be held: what it would show.
    """
    async with db.snapshot() as snapshot:
        wanted = await find_source(snapshot, label) if label else None
        id, _ = await find_document_id(snapshot, document, b, source=wanted.id if wanted else None)
        found = await documents.get(snapshot, id)
        source = await sources.get(snapshot, found.source_id) if found else None
        if source is None or (wanted and source.id != wanted.id):
            raise NotFound(f"{label or 'Nobody'} has no document {document}. 'kept search' finds what is kept.")
        before, after = [await _load_side(snapshot, source, id, number, rules or LifecycleRules()) for number in (a, b)]
    if before is None and after is None:
        raise NotFound(f"Neither generation {a} nor {b} of {source.label} shows {document}.")
    old, new = ((side.markdown if side else "").splitlines() for side in (before, after))
    differing = await asyncio.to_thread(
        lambda: list(diff_hunks(old, new))
    )  # pages are long, and others want to be served
    return DocumentDiff(source=source.label, document=id, a=a, b=b, before=before, after=after, hunks=differing)


async def _load_side(
    db: Connection, source: Source, document: str, number: int, rules: LifecycleRules
) -> DiffSide | None:
    generation = await generations.get(db, source.id, number)
    row: Row | None
    if generation and generation.state is GenerationState.HELD:
        row = await preview_held_document(db, generation, document, rules)
    else:
        await find_readable_generation(db, source, number)
        row = await documents.version_in_generation(db, document, number)
    if row is None:
        return None
    title = row["title"] or title_from_url(row["url"])
    return DiffSide(generation=number, url=row["url"], title=title, markdown=decompress(row["markdown"]))


def diff_hunks(old: Sequence[str], new: Sequence[str], context: int = CONTEXT_LINES) -> Iterator[DiffHunk]:
    """Where two texts differ. What they begin and end with alike is not compared line by line: pages are long.

    Where too much is in between, all of that differs.
    """
    head = _common_prefix_length(old, new)
    tail = _common_prefix_length(old[head:][::-1], new[head:][::-1])
    is_much = max(len(old), len(new)) - head - tail > MAX_DIFF_LINES
    context = 0 if is_much else context
    first = max(0, head - context)
    last = max(0, tail - context)
    old, new = old[first : len(old) - last], new[first : len(new) - last]
    everything = [[("replace", 0, len(old), 0, len(new))]]
    for group in everything if is_much else SequenceMatcher(None, old, new).get_grouped_opcodes(context):
        lines = []
        for kind, i, i_end, j, j_end in group:
            if kind == "equal":
                lines += [f" {line}" for line in old[i:i_end]]
            else:
                lines += [f"-{line}" for line in old[i:i_end]] + [f"+{line}" for line in new[j:j_end]]
        (_, i, _, j, _), (_, _, i_end, _, j_end) = group[0], group[-1]
        yield DiffHunk(
            from_line=first + i + (i_end > i),
            from_lines=i_end - i,
            to_line=first + j + (j_end > j),
            to_lines=j_end - j,
            lines=lines,
        )


def _common_prefix_length(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
