"""What stands around a hit, and how much of it fits: pure."""

from collections.abc import Sequence
from enum import StrEnum

from kept.store.database import Row

CHARACTERS_PER_TOKEN = 4  # about; English prose and code


class HitContext(StrEnum):
    """How much around a section is wanted."""

    PARENT = "parent"  # the section above it
    SIBLINGS = "siblings"  # and everything else below that
    DOCUMENT = "document"  # all of the page


def expand_context(sections: Sequence[Row], section_id: int, extent: HitContext, *, max_characters: int) -> str:
    """The Markdown around a section, itself included, in the order of the page; the nearest parts, if not all fit."""
    places = {section["id"]: at for at, section in enumerate(sections)}
    here = places[section_id]
    above = places.get(sections[here]["parent_section_id"])
    match extent:
        case HitContext.PARENT:
            chosen = [here] if above is None else [above, here]
        case HitContext.SIBLINGS:
            last = next(
                (at for at in range(here + 1, len(sections)) if sections[at]["level"] < sections[here]["level"]),
                len(sections),
            )
            chosen = list(range(0 if above is None else above, last))
        case HitContext.DOCUMENT:
            chosen = list(range(len(sections)))
    kept = []
    for at in sorted(chosen, key=lambda at: (abs(at - here), at)):
        max_characters -= len(sections[at]["text"]) + 2
        if max_characters < 0:
            break
        kept.append(at)
    return "\n\n".join(sections[at]["text"].strip("\n") for at in sorted(kept))


def truncate_at_line(text: str, max_characters: int) -> str:
    """The text, or as many of its lines as fit."""
    if len(text) <= max_characters:
        return text
    end = text.rfind("\n", 0, max(0, max_characters - 1))
    return text[: end if end > 0 else max(0, max_characters - 1)].rstrip() + "…"
