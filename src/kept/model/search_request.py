"""A search as every interface asks for it."""

from dataclasses import dataclass
from typing import Literal

HitKind = Literal["text", "code"]
ContextKind = Literal["parent", "siblings", "document"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """A query with its filters and limits."""

    text: str
    labels: tuple[str, ...] = ()  # of the sources; empty: all
    version: str | None = None  # of each source the version that matches best: 18, ^18, latest
    generation: int | None = None  # of the one source that is named; None: the active one
    path: str = ""  # only pages below it; * stands for a part of it
    kind: str = "text"  # HitKind; "code": only in code blocks
    language: str = ""  # only in code blocks of this language
    context: str | None = None  # ContextKind: the text around each hit
    budget: int | None = None  # tokens that texts and contexts may take together: as many hits as fit
    limit: int = 10
