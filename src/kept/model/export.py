"""Documents and versions as an export writes them."""

from dataclasses import dataclass
from typing import Any

ExportRecord = dict[str, Any]
"""One object of the manifest or of a ``version.json``: times as text, links as lists, no row ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedVersion:
    born: int
    died: int | None
    url: str
    title: str
    content_id: int
    content_hash: str
    record: ExportRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedDocument:
    id: str
    record: ExportRecord
    versions: list[ExportedVersion]  # oldest first

    @property
    def latest(self) -> ExportedVersion:
        return self.versions[-1]
