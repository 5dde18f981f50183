"""Companions of a page: the bytes of files that it includes, and the places of other pages that it refers to."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final, NamedTuple


class PlaceTarget(NamedTuple):
    """A place that pages can refer to by a name."""

    url: str
    anchor: str = ""
    title: str = ""


class Companions(NamedTuple):
    """All that a page's reader is given beside its bytes. A tuple, like everything that passes between processes."""

    files: Mapping[str, bytes] = {}  # included files, by the name that the page gives them
    targets: Mapping[str, tuple[PlaceTarget, ...]] = {}  # by the name that refers to them
    settings: Mapping[str, str] = {}  # of the manual

    @property
    def digest(self) -> str:
        """Return a hash of everything: with other companions, equal bytes are another page."""
        parts = [sorted(part.items()) for part in (self.files, self.targets, self.settings)]
        return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


NO_COMPANIONS: Final = Companions()
