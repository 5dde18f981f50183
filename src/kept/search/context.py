"""What stands around a hit, and how much of it fits: pure."""

from collections.abc import Sequence
from enum import StrEnum

from kept.store.database import Row

CHARACTERS_PER_TOKEN = 4  # about; English prose and code


class Context(StrEnum):
    """How much around a section is wanted."""

    PARENT = "parent"  # the section above it
    SIBLINGS = "siblings"  # and everything else below that
    DOCUMENT = "document"  # all of the page


def around(sections: Sequence[Row], id: int, wanted: Context, *, room: int) -> str:
    """The Markdown around a section, itself included, in the order of the page; the nearest parts, if not all fit."""
    places = {section["id"]: at for at, section in enumerate(sections)}
    here = places[id]
    above = places.get(sections[here]["parent_section_id"])
    match wanted:
        case Context.PARENT:
            chosen = [here] if above is None else [above, here]
        case Context.SIBLINGS:
            last = next(
                (at for at in range(here + 1, len(sections)) if sections[at]["level"] < sections[here]["level"]),
                len(sections),
            )
            chosen = list(range(0 if above is None else above, last))
        case Context.DOCUMENT:
            chosen = list(range(len(sections)))
    kept = []
    for at in sorted(chosen, key=lambda at: (abs(at - here), at)):
        room -= len(sections[at]["text"]) + 2
        if room < 0:
            break
        kept.append(at)
    return "\n\n".join(sections[at]["text"].strip("\n") for at in sorted(kept))


def cut(text: str, characters: int) -> str:
    """The text, or as many of its lines as fit."""
    if len(text) <= characters:
        return text
    end = text.rfind("\n", 0, max(0, characters - 1))
    return text[: end if end > 0 else max(0, characters - 1)].rstrip() + "…"
