"""One document in two generations: what it said, and what it says."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Literal, TypeAlias

from kept.crawl.lifecycle import LifecycleRules
from kept.errors import NotFound
from kept.model.generation import GenerationState
from kept.model.source import Source
from kept.search.search import title_from_url
from kept.service.generations import preview_held_document
from kept.service.lookup import find_document_id, find_readable_generation, find_source
from kept.store import documents, generations, sources
from kept.store.database import Connection, ReadableDatabase

Opcode: TypeAlias = tuple[Literal["replace", "delete", "insert", "equal"], int, int, int, int]

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
    if generation and generation.state is GenerationState.HELD:
        version = await preview_held_document(db, generation, document, rules)
    else:
        await find_readable_generation(db, source, number)
        version = await documents.version_in_generation(db, document, number)
    if version is None:
        return None
    title = version.title or title_from_url(version.url)
    return DiffSide(generation=number, url=version.url, title=title, markdown=version.markdown)


def diff_hunks(old: Sequence[str], new: Sequence[str], context: int = CONTEXT_LINES) -> Iterator[DiffHunk]:
    """Yield where two texts differ, with some equal lines around each difference."""
    codes = diff_lines(old, new)
    sizes = [max(i_end - i, j_end - j) for tag, i, i_end, j, j_end in codes if tag == "replace"]
    is_huge = max(sizes, default=0) > MAX_DIFF_LINES
    for group in _Opcodes(codes).get_grouped_opcodes(0 if is_huge else context):
        lines: list[str] = []
        for kind, i, i_end, j, j_end in group:
            if kind == "equal":
                lines += [f" {line}" for line in old[i:i_end]]
            else:
                lines += [f"-{line}" for line in old[i:i_end]] + [f"+{line}" for line in new[j:j_end]]
        (_, i, _, j, _), (_, _, i_end, _, j_end) = group[0], group[-1]
        yield DiffHunk(
            from_line=i + (i_end > i),
            from_lines=i_end - i,
            to_line=j + (j_end > j),
            to_lines=j_end - j,
            lines=lines,
        )


def diff_lines(old: Sequence[str], new: Sequence[str]) -> list[Opcode]:
    """Compare two texts line by line. Returns opcodes as ``difflib`` has them.

    The lines that both begin and end with are not compared one by one: pages are long. Where more than MAX_DIFF_LINES
    are left between them, all of those differ.
    """
    head = _common_prefix_length(old, new)
    tail = _common_prefix_length(old[head:][::-1], new[head:][::-1])
    a, b = old[head : len(old) - tail], new[head : len(new) - tail]
    codes: list[Opcode] = [("equal", 0, head, 0, head)] if head else []
    if max(len(a), len(b)) > MAX_DIFF_LINES:
        codes.append(("replace", head, head + len(a), head, head + len(b)))
    else:
        found = SequenceMatcher(None, a, b).get_opcodes()
        codes += [(tag, head + i, head + i_end, head + j, head + j_end) for tag, i, i_end, j, j_end in found]
    if tail:
        codes.append(("equal", len(old) - tail, len(old), len(new) - tail, len(new)))
    return codes


class _Opcodes(SequenceMatcher[str]):
    """Opcodes that are known already, for ``difflib`` to group."""

    def __init__(self, codes: list[Opcode]) -> None:
        super().__init__()
        self._codes = codes

    def get_opcodes(self) -> list[Opcode]:
        return self._codes


def _common_prefix_length(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many lines both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
