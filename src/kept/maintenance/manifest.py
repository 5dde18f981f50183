"""Loads and checks the manifest of an export.

Everything is checked before anything is imported: a manifest that is broken anywhere is refused as a whole, with the
place and the reason. One without ``format`` was not written by Kept: see ``legacy_manifest``.
"""

import re
from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from kept.errors import InvalidInput, NotFound
from kept.maintenance.export import EXPORT_FORMAT, MANIFEST_NAME
from kept.maintenance.export_folder import ExportFolder
from kept.maintenance.json_object import JsonObject, check_number, check_text, parse_json, refuse
from kept.model.document import Lifecycle
from kept.model.export import ExportRecord, ManifestDocument, ManifestGeneration, ManifestSource, ManifestVersion
from kept.model.generation import Tally
from kept.model.job import CrawlMode
from kept.model.package import parse_package
from kept.model.repository import repository_from_root
from kept.model.root import check_label
from kept.model.source import Authority, RenderMode, SourceKind, SourceSettings, format_label
from kept.model.url import MAX_URL_LENGTH, canonicalize_route_url, canonicalize_url

CheckSettings = Callable[[SourceSettings], None]  # raises InvalidInput for values that no interface would accept

_DEFAULT_SETTINGS = SourceSettings().as_json()
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_MAX_FOLDER_NAME_BYTES = 255


class _ExportedState(StrEnum):
    ACTIVE = "active"
    RETIRED = "retired"


def find(path: Path) -> Path:
    """Return the manifest file in a folder, or the file itself if it is one. Raises NotFound."""
    file = path / MANIFEST_NAME if path.is_dir() else path
    if not file.is_file():
        raise NotFound(f"There is no {file}. 'kept import' takes a folder that 'kept export' wrote, or its manifest.")
    return file


def read(file: Path) -> JsonObject:
    """Return the manifest in a file. Raises InvalidInput if it is none that can be imported."""
    content = ExportFolder(file.parent).read(file.name, limit=None)
    if content is None:
        raise NotFound(f"{file} cannot be read.")
    manifest = JsonObject(parse_json(content, str(file)), file.name)
    if not isinstance(manifest.values.get("files"), dict):
        refuse(file.name, "it is not the manifest of an export, which lists 'files' and their doc_ids")
    if manifest.values.get("tree"):
        raise InvalidInput(f"{file} belongs to an export with --tree, which is for reading. Export again without it.")
    written_by = manifest.values.get("format", EXPORT_FORMAT)
    if written_by != EXPORT_FORMAT:
        refuse(file.name, f"it is a {written_by!r:.60}, and this Kept reads a '{EXPORT_FORMAT}'")
    return manifest


def parse(manifest: JsonObject, now: datetime, check_settings: CheckSettings) -> list[ManifestSource]:
    """Return the sources of a manifest that Kept wrote, with their documents. Raises InvalidInput."""
    sources = {
        label: _parse_source(label, source, now, check_settings) for label, source in manifest.members("sources")
    }
    for path, entry in manifest.members("files"):
        source = sources.get(entry.text("source"))
        if source is None:
            refuse(entry.at("source"), "there is no such source in the manifest")
        source.documents.append(_parse_document(path, entry, source, now))
    check_unique(list(sources.values()))
    return list(sources.values())


def check_unique(sources: list[ManifestSource]) -> None:
    """Raise InvalidInput if two sources have the same root, or two documents the same id."""
    roots: dict[tuple[str, str], str] = {}
    ids: dict[str, str] = {}
    for source in sources:
        other = roots.setdefault((source.root, source.version), source.place)
        if other != source.place:
            refuse(source.place, f"it has the same root and version as {other}")
        for document in source.documents:
            id = document.doc_id.lower() if is_uuid(document.doc_id) else document.doc_id
            other = ids.setdefault(id, document.place)
            if other != document.place:
                refuse(f"{document.place}['doc_id']", f"{other} has the same one")


def is_uuid(doc_id: str) -> bool:
    """Whether a doc_id has the form of Kept's own ids."""
    return _UUID.fullmatch(doc_id) is not None


def check_folder_name(name: str, place: str) -> str:
    """Return a text that can be the name of a folder. Raises InvalidInput if it could lead out of the export."""
    if not name or name in (".", "..") or set(name) & set("/\\\0") or len(name.encode()) > _MAX_FOLDER_NAME_BYTES:
        refuse(place, f"{name!r:.100} cannot be the name of a folder")
    return name


def check_url(url: str, place: str) -> str:
    """Return the URL of a document, in the form in which it is looked up. Raises InvalidInput."""
    is_known = url.startswith(("http:", "https:", "file:"))
    if (
        not 0 < len(url) <= MAX_URL_LENGTH
        or not (url.isascii() and url.isprintable() and " " not in url and ":" in url)
        or (is_known and url not in (canonicalize_url(url), canonicalize_route_url(url)))
    ):
        refuse(place, f"{url!r:.200} is not the URL of a document in its canonical form")
    return url


def _parse_source(label: str, source: JsonObject, now: datetime, check_settings: CheckSettings) -> ManifestSource:
    name, version = source.text("name"), source.text("version", "")
    try:
        check_label(name, version)
    except InvalidInput as error:
        refuse(source.at("name"), str(error).rstrip("."))
    if label != format_label(name, version):
        refuse(source.at("name"), f"expected the name and version of {label!r:.100}")
    kind = source.choice("kind", SourceKind)
    settings = _parse_settings(source.object("settings"), check_settings)
    generations = [
        _parse_generation(generation, settings, now, check_settings) for generation in source.objects("generations")
    ]
    active = source.count("generation", least=1)
    numbers = [generation.record["number"] for generation in generations]
    if sorted(set(numbers)) != numbers:
        refuse(source.at("generations"), "the numbers are not in order, or not different")
    if [one.record["number"] for one in generations if one.record["state"] == "active"] != [active] or (
        active != numbers[-1]
    ):
        refuse(source.at("generation"), "the last generation, and no other, should be active and have this number")
    return ManifestSource(
        place=source.place,
        name=name,
        version=version,
        kind=kind,
        root=_check_root(kind, source.text("root"), source.at("root")),
        settings=settings,
        created_at=source.time("created_at", now),
        generation=active,
        generations=tuple(generations),
    )


def _check_root(kind: SourceKind, root: str, place: str) -> str:
    try:
        match kind:
            case SourceKind.WEB:
                is_valid = root.startswith(("http", "file:")) and canonicalize_url(root) == root
            case SourceKind.FOLDER:
                is_valid = root.startswith("file:") and canonicalize_url(root) == root
            case SourceKind.GIT:
                repository = repository_from_root(root)
                remote = repository.remote
                is_local = remote.startswith("file:///") and canonicalize_url(remote) == remote
                is_valid = repository.root == root and (is_local or not remote.startswith("file:"))
                is_valid = is_valid and re.match(r"file:///|(https?|git|ssh)://|\w[\w.-]*@\w", remote) is not None
            case SourceKind.PACKAGE:
                package = parse_package(root)
                is_valid = package is not None and package.root == root
    except (InvalidInput, ValueError):
        is_valid = False
    if not is_valid or len(root) > MAX_URL_LENGTH:
        refuse(place, f"{root!r:.200} is not the root of a {kind} source")
    return root


def _parse_settings(settings: JsonObject, check_settings: CheckSettings) -> SourceSettings:
    _check_like(settings.values, _DEFAULT_SETTINGS, settings.place)
    try:
        parsed = SourceSettings.from_json(settings.values)
        check_settings(parsed)
    except InvalidInput as error:
        refuse(settings.place, str(error).rstrip("."))
    return parsed


def _check_like(value: Any, default: Any, place: str) -> None:
    """Raise InvalidInput unless a setting has the type of its default."""
    match default:
        case dict() if place.endswith("['given_by']"):
            given = JsonObject(value, place)
            for name in given.values:
                given.choice(name, Authority)
        case dict():
            for name, one in JsonObject(value, place).values.items():
                if name not in default:
                    refuse(place, f"there is no setting {name!r:.60}; was it written by a newer Kept?")
                _check_like(one, default[name], f"{place}[{name!r}]")
        case bool():
            JsonObject({"": value}, place).flag("")
        case RenderMode():
            JsonObject({"": value}, place).choice("", RenderMode)
        case int():
            if not isinstance(value, int):
                refuse(place, f"expected a whole number, found {value!r:.60}")
            check_number(value, place, least=1)
        case float():
            check_number(value, place, least=0)
        case None:
            if value is not None:
                check_number(value, place, least=0)
        case str():
            check_text(value, place)
        case _ if place.endswith("['headers']"):
            for header in JsonObject({"headers": value}, place).objects("headers"):
                if header.values.keys() != {"name", "value"}:
                    refuse(header.place, "expected a name and a value")
                header.text("name"), header.text("value")
        case _:
            JsonObject({"": value}, place).texts("")


def _parse_generation(
    generation: JsonObject, settings: SourceSettings, now: datetime, check_settings: CheckSettings
) -> ManifestGeneration:
    number = generation.count("number", least=1)
    base = generation.optional_count("base", least=1)
    if base is not None and base >= number:
        refuse(generation.at("base"), f"expected a number below {number}")
    counts = generation.object("counts")
    if unknown := counts.values.keys() - Tally().as_json().keys():
        refuse(counts.place, f"there is no outcome {min(unknown)!r:.60}")
    record: ExportRecord = {
        "number": number,
        "base": base,
        "state": str(generation.choice("state", _ExportedState)),
        "mode": None if generation.values.get("mode") is None else str(generation.choice("mode", CrawlMode)),
        "documents": generation.count("documents"),
        "partial": generation.optional_text("partial"),
        "reason": generation.optional_text("reason"),
        "created_at": generation.time("created_at", now),
        "activated_at": generation.time("activated_at", now),
        "whole": generation.flag("whole"),
        "changed": generation.flag("changed"),
        "counts": {name: counts.count(name, 0) for name in Tally().as_json()},
    }
    if "settings" in generation.values:
        settings = _parse_settings(generation.object("settings"), check_settings)
    return ManifestGeneration(settings=settings, record=record)


def _parse_document(path: str, entry: JsonObject, source: ManifestSource, now: datetime) -> ManifestDocument:
    doc_id = check_folder_name(entry.text("doc_id"), entry.at("doc_id"))
    versions = _parse_versions(entry, doc_id, source.generation)
    lifecycle = entry.choice("status", Lifecycle)
    is_living = versions[-1].died is None
    if (lifecycle is Lifecycle.ACTIVE and not is_living) or (lifecycle is Lifecycle.DELETED and is_living):
        refuse(entry.at("status"), f"a document whose last version has {'not ' * is_living}ended cannot be {lifecycle}")
    last_seen = entry.time("last_seen", now)
    first_generation = entry.count("first_generation", versions[0].born, least=1)
    if first_generation > versions[0].born:
        refuse(entry.at("first_generation"), f"expected at most {versions[0].born}, which has its first version")
    return ManifestDocument(
        path=path,
        place=entry.place,
        doc_id=doc_id,
        versions=versions,
        record={
            "first_generation": first_generation,
            "lifecycle": str(lifecycle),
            "missed_crawls": entry.count("missed_crawls", 0),
            "retry_count": entry.count("retry_count", 0),
            "reason": entry.optional_text("reason"),
            "first_seen": entry.time("first_seen", now, last_seen),
            "since": None if lifecycle is Lifecycle.ACTIVE else entry.time("since", now, last_seen),
            "verified_at": entry.optional_time("verified_at", now),
        },
    )


def _parse_versions(entry: JsonObject, doc_id: str, active: int) -> tuple[ManifestVersion, ...]:
    versions: list[ManifestVersion] = []
    for listed in entry.objects("versions"):
        born, died = listed.count("version_id", least=1), listed.optional_count("until", least=1)
        if born > active or (died is not None and not born < died <= active):
            refuse(listed.place, f"expected version_id < until, and neither above {active}, the active generation")
        if versions and (versions[-1].died is None or versions[-1].died > born):
            refuse(listed.place, "it begins before the version before it has ended")
        folder = ("documents", doc_id) if died is None else ("documents", doc_id, "versions", str(born))
        versions.append(ManifestVersion(born=born, died=died, folder=folder))
    if not versions:
        refuse(entry.at("versions"), "a document has at least one version")
    return tuple(versions)
