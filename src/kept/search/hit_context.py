"""The text around a hit, cut to a budget."""

from collections.abc import Sequence
from enum import StrEnum

from kept.model.section import StoredSection

CHARACTERS_PER_TOKEN = 4  # roughly, for English prose and code


class HitContext(StrEnum):
    """How much of the page around a section to return with it."""

    PARENT = "parent"  # the section above it
    SIBLINGS = "siblings"  # and all other sections below that one
    DOCUMENT = "document"  # the whole page


def expand_context(
    sections: Sequence[StoredSection], section_id: int, extent: HitContext, *, max_characters: int
) -> str:
    """Return the Markdown around a section, itself included, in page order. Nearer sections are taken first."""
    indexes = {section.id: index for index, section in enumerate(sections)}
    here = indexes[section_id]
    parent_id = sections[here].parent_id
    parent = None if parent_id is None else indexes.get(parent_id)
    match extent:
        case HitContext.PARENT:
            candidates = [here] if parent is None else [parent, here]
        case HitContext.SIBLINGS:
            level = sections[here].level
            end = next((at for at in range(here + 1, len(sections)) if sections[at].level < level), len(sections))
            candidates = list(range(0 if parent is None else parent, end))
        case HitContext.DOCUMENT:
            candidates = list(range(len(sections)))
    chosen = []
    for index in sorted(candidates, key=lambda index: (abs(index - here), index)):
        max_characters -= len(sections[index].text) + 2
        if max_characters < 0:
            break
        chosen.append(index)
    return "\n\n".join(sections[index].text.strip("\n") for index in sorted(chosen))


def truncate_at_line(text: str, max_characters: int) -> str:
    """Return the text, or as many of its lines as fit."""
    if len(text) <= max_characters:
        return text
    end = text.rfind("\n", 0, max(0, max_characters - 1))
    return text[: end if end > 0 else max(0, max_characters - 1)].rstrip() + "…"
