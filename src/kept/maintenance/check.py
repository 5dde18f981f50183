"""Looks whether what is stored is sound. Nothing is changed: what to do about it is for a person to say."""

from collections.abc import Callable
from dataclasses import dataclass, field

from kept.errors import StoreCorrupt
from kept.model.document import Section
from kept.store import integrity
from kept.store.database import Database

BATCH_SIZE = 500
MAX_SHOWN = 20

ContentHasher = Callable[[str, str, tuple[Section, ...]], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegrityProblem:
    rule: str  # what should hold
    found: list[str] = field(default_factory=list)  # the first few that break it
    advice: str


async def check_integrity(db: Database, hash_of: ContentHasher) -> list[IntegrityProblem]:
    """Everything that is wrong, and what to do about it; nothing: all is well."""
    try:
        async with db.snapshot() as snapshot:
            if problems := await integrity.engine_problems(snapshot):
                return [IntegrityProblem(rule="the file is sound", found=problems, advice=_RESTORE_ADVICE)]
            broken = await integrity.find_violations(snapshot)
        wrong = await _find_wrong_contents(db, hash_of)
    except StoreCorrupt as error:
        return [damaged_store_problem(error)]
    found = [IntegrityProblem(rule=rule, found=what, advice=_RESTORE_ADVICE) for rule, what in broken.items()]
    if wrong:
        found.append(
            IntegrityProblem(rule="every content is what its hash stands for", found=wrong, advice=_RESTORE_ADVICE)
        )
    return found


_RESTORE_ADVICE = "'kept restore' a backup, or add the sources to a new database."


def damaged_store_problem(error: StoreCorrupt) -> IntegrityProblem:
    """A database that cannot be read at all."""
    return IntegrityProblem(rule="the file is sound", found=[str(error)], advice=_RESTORE_ADVICE)


async def _find_wrong_contents(db: Database, hash_of: ContentHasher) -> list[str]:
    wrong: list[str] = []
    after = 0
    while len(wrong) < MAX_SHOWN:
        async with db.snapshot() as snapshot:
            chunk = await integrity.list_contents(snapshot, after, limit=BATCH_SIZE)
            for id, hash, title in chunk:
                content = await integrity.try_load_content(snapshot, id)
                if content is None or hash_of(content.title, content.markdown, content.sections) != hash:
                    wrong.append(f"{id} {title}".strip())
        if not chunk:
            break
        after = chunk[-1][0]
    return wrong[:MAX_SHOWN]
