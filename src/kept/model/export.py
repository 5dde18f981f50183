"""Documents and versions as an export writes them, and as an import reads them."""

from dataclasses import dataclass, field
from typing import Any

from kept.model.source import SourceKind, SourceSettings, format_label

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
    former_id: str | None  # the doc_id of the manifest that it was imported from, if that was no id of Kept's
    record: ExportRecord
    versions: list[ExportedVersion]  # oldest first

    @property
    def doc_id(self) -> str:
        return self.former_id or self.id

    @property
    def latest(self) -> ExportedVersion:
        return self.versions[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestVersion:
    """A version that a manifest lists."""

    born: int
    died: int | None
    folder: tuple[str, ...]  # of its content.md, below that of the manifest
    record: ExportRecord | None = None  # None: it is in version.json, beside content.md


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestDocument:
    """A document that a manifest lists."""

    path: str  # its key in the manifest
    place: str  # of the entry, for messages
    doc_id: str
    record: ExportRecord
    versions: tuple[ManifestVersion, ...]  # oldest first; empty: there is no content
    is_incomplete: bool = False  # a version that it lists has no content


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestGeneration:
    settings: SourceSettings
    record: ExportRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestSource:
    """A source that a manifest lists, or that follows from its paths."""

    place: str
    name: str
    version: str
    kind: SourceKind
    root: str
    settings: SourceSettings
    created_at: str
    generation: int  # the active one
    generations: tuple[ManifestGeneration, ...]
    is_legacy: bool = False  # its contents have to be read, and its generations to be counted
    documents: list[ManifestDocument] = field(default_factory=list)

    @property
    def label(self) -> str:
        return format_label(self.name, self.version)
