"""Looks whether what is stored is sound. Nothing is changed: what to do about it is for a person to say."""

from collections.abc import Callable
from dataclasses import field

from kept.errors import StoreDamaged
from kept.model.document import Section
from kept.model.nouns import dataclass
from kept.store import soundness
from kept.store.database import Database

AT_ONCE = 500
SHOWN = 20

HashOf = Callable[[str, str, tuple[Section, ...]], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    rule: str  # what should hold
    found: list[str] = field(default_factory=list)  # the first few that break it
    advice: str


async def check(db: Database, hash_of: HashOf) -> list[Problem]:
    """Everything that is wrong, and what to do about it; nothing: all is well."""
    try:
        async with db.snapshot() as snapshot:
            if problems := await soundness.store_problems(snapshot):
                return [Problem(rule="the file is sound", found=problems, advice=_RESTORE)]
            broken = await soundness.broken(snapshot)
        wrong = await _contents(db, hash_of)
    except StoreDamaged as error:
        return [unsound(error)]
    found = [Problem(rule=rule, found=what, advice=_RESTORE) for rule, what in broken.items()]
    if wrong:
        found.append(Problem(rule="every content is what its hash stands for", found=wrong, advice=_RESTORE))
    return found


_RESTORE = "'kept restore' a backup, or add the sources to a new database."


def unsound(error: StoreDamaged) -> Problem:
    """A database that cannot be read at all."""
    return Problem(rule="the file is sound", found=[str(error)], advice=_RESTORE)


async def _contents(db: Database, hash_of: HashOf) -> list[str]:
    wrong: list[str] = []
    after = 0
    while len(wrong) < SHOWN:
        async with db.snapshot() as snapshot:
            chunk = await soundness.contents_from(snapshot, after, limit=AT_ONCE)
            for id, hash, title in chunk:
                content = await soundness.content(snapshot, id)
                if content is None or hash_of(content.title, content.markdown, content.sections) != hash:
                    wrong.append(f"{id} {title}".strip())
        if not chunk:
            break
        after = chunk[-1][0]
    return wrong[:SHOWN]
