"""Checks the integrity of the store. It changes nothing: the repair is a person's decision."""

from collections.abc import Callable
from dataclasses import dataclass, field

from kept.errors import StoreCorrupt
from kept.model.document import Content
from kept.store import integrity
from kept.store.database import Database
from kept.store.write_ahead_log import find_log_damage

__all__ = ["RESTORE_ADVICE", "IntegrityProblem", "check_integrity", "damaged_store_problem", "find_log_damage"]

BATCH_SIZE = 500
MAX_SHOWN = 20

ContentHasher = Callable[[Content], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegrityProblem:
    rule: str  # the violated rule
    found: list[str] = field(default_factory=list)  # the first violations
    advice: str


async def check_integrity(db: Database, hash_of: ContentHasher) -> list[IntegrityProblem]:
    """Return all problems with advice, or nothing if the store is sound."""
    try:
        async with db.snapshot() as snapshot:
            if damage := await integrity.engine_problems(snapshot):
                return [IntegrityProblem(rule="the file is sound", found=damage, advice=RESTORE_ADVICE)]
            violations = await integrity.find_violations(snapshot)
        wrong_contents = await _find_wrong_contents(db, hash_of)
    except StoreCorrupt as error:
        return [damaged_store_problem(error)]
    problems = [IntegrityProblem(rule=rule, found=what, advice=RESTORE_ADVICE) for rule, what in violations.items()]
    if wrong_contents:
        problems.append(
            IntegrityProblem(
                rule="every content is what its hash stands for", found=wrong_contents, advice=RESTORE_ADVICE
            )
        )
    return problems


RESTORE_ADVICE = "'kept restore' a backup, or add the sources to a new database."


def damaged_store_problem(error: StoreCorrupt) -> IntegrityProblem:
    """Return the problem of a database that cannot be read at all."""
    return IntegrityProblem(rule="the file is sound", found=[str(error)], advice=RESTORE_ADVICE)


async def _find_wrong_contents(db: Database, hash_of: ContentHasher) -> list[str]:
    wrong: list[str] = []
    after = 0
    while len(wrong) < MAX_SHOWN:
        async with db.snapshot() as snapshot:
            batch = await integrity.list_contents(snapshot, after, limit=BATCH_SIZE)
            for id, hash, title in batch:
                content = await integrity.try_load_content(snapshot, id)
                if content is None or hash_of(content) != hash:
                    wrong.append(f"{id} {title}".strip())
        if not batch:
            break
        after = batch[-1][0]
    return wrong[:MAX_SHOWN]
