"""Companions of a page: the files that it includes and the places of other pages that it refers to.

A reader runs in a process of its own and sees nothing but what it is given. So before a page is read, the crawl asks
the origin for what the page names, inside the source only. Only origins that list everything can be asked.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias
from urllib.parse import quote, urljoin

from kept.extract.asciidoc import lines as asciidoc_lines
from kept.extract.reader import is_asciidoc, is_restructured_text
from kept.extract.rst.names import (
    LABEL_ROLES,
    find_includes,
    find_references,
    key_of,
    object_ids,
    qualify_role,
    scan_names,
)
from kept.extract.rst.page import Page
from kept.model.companions import Companions, PlaceTarget
from kept.model.frontier import Fetched, ListedUrl
from kept.origins.origin import Origin

MAX_FILES: Final = 100  # that one page includes, directly and through others
MAX_FILE_BYTES: Final = 2_000_000  # of all of them together
MAX_PAGES: Final = 20_000  # whose names are known; beyond, references stay text
MAX_CANDIDATES: Final = 50  # places of one name
MIN_SLASHES: Final = 3  # of a folder's URL: "https://host/"
CONFIGURATION: Final = "conf.py"
_SETTING: Final = re.compile(
    r"^(highlight_language|add_module_names|primary_domain|default_role)[ \t]*=[ \t]*[\"']?([\w:+-]+)",
    re.MULTILINE,
)
FindIncludes: TypeAlias = Callable[[str], list[tuple[str, bool]]]
"""Returns the names of the files that a text includes, and whether they may include others."""


class CompanionFinder:
    """Finds the companions of one source's pages. What all pages share is read once."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._lock = asyncio.Lock()
        self._places: dict[str, list[PlaceTarget]] | None = None  # by "ref:label", "id:name", "page:URL"
        self._settings: dict[str, tuple[str, dict[str, str]]] = {}  # by folder: that of conf.py, and what it says

    async def find(self, fetched: Fetched, url: str) -> Companions | None:
        """Return the companions of a page; None if its format has none."""
        if not self._origin.lists_everything:
            return None
        if is_asciidoc(fetched.body, fetched.content_type, url):
            files = await self._read_included(_decode(fetched.body), url, url, _find_asciidoc_includes)
            return Companions(files=files) if files else None
        if not is_restructured_text(fetched.body, fetched.content_type, url):
            return None
        text = _decode(fetched.body)
        root, settings = await self._find_settings(url.rpartition("/")[0] + "/")
        files = await self._read_included(text, url, root)
        places = await self._known_places()
        whole = "\n".join([text, *map(_decode, files.values())])
        return Companions(files=files, targets=dict(_select_targets(whole, url, root, places)), settings=settings)

    async def _find_settings(self, folder: str) -> tuple[str, dict[str, str]]:
        """Return the folder of the manual and a few of its settings: those of the nearest conf.py above, never run."""
        if folder not in self._settings:
            body = await self._origin.read_file(f"{folder}{CONFIGURATION}")
            parent = folder.rstrip("/").rpartition("/")[0] + "/"
            if body is not None:
                self._settings[folder] = folder, dict(_SETTING.findall(_decode(body)))
            elif parent.count("/") <= MIN_SLASHES:
                self._settings[folder] = folder, {}
            else:
                self._settings[folder] = await self._find_settings(parent)
        return self._settings[folder]

    async def _read_included(
        self, text: str, url: str, root: str, find_includes: FindIncludes = find_includes
    ) -> dict[str, bytes]:
        files: dict[str, bytes] = {}
        left = MAX_FILE_BYTES
        pending = [(name, is_markup, url) for name, is_markup in find_includes(text)]
        while pending and len(files) < MAX_FILES:
            name, is_markup, base = pending.pop(0)
            if name in files:
                continue
            for candidate in _file_urls(name, url, base, root):
                body = await self._origin.read_file(candidate)
                if body is not None and len(body) <= left:
                    files[name] = body
                    left -= len(body)
                    if is_markup:
                        found = find_includes(_decode(body))
                        pending += [(inner, also_markup, candidate) for inner, also_markup in found]
                    break
        return files

    async def _known_places(self) -> dict[str, list[PlaceTarget]]:
        """Return all names of the source's pages. The pages are read once in a crawl."""
        async with self._lock:
            if self._places is None:
                places: dict[str, list[PlaceTarget]] = {}
                pages = 0
                async for listed in self._origin.list():
                    if not isinstance(listed, ListedUrl) or not listed.url.endswith((".rst", ".txt", ".rest")):
                        continue
                    pages += 1
                    if pages > MAX_PAGES:
                        break
                    body = await self._origin.read_file(listed.url)
                    if body is not None:
                        await asyncio.to_thread(_add_places, places, listed.url, body)
                self._places = places
            return self._places


def _find_asciidoc_includes(text: str) -> list[tuple[str, bool]]:
    return [(name, True) for name in asciidoc_lines.find_includes(text)]


def _decode(body: bytes) -> str:
    return body.decode("utf-8", "replace").replace("\r\n", "\n")


def _add_places(places: dict[str, list[PlaceTarget]], url: str, body: bytes) -> None:
    if not is_restructured_text(body, "", url):
        return
    names = scan_names(_decode(body))
    places[f"page:{url}"] = [PlaceTarget(url, "", names.title)]
    for label, (anchor, title) in names.labels.items():
        places.setdefault(f"ref:{label}", []).append(PlaceTarget(url, anchor, title))
    for id_ in names.ids:
        places.setdefault(f"id:{key_of(id_)}", []).append(PlaceTarget(url, id_))


def _file_urls(name: str, page: str, base: str, root: str) -> Iterator[str]:
    """Yield where a file may be that a page names: beside it, beside the file that names it, or below the root."""
    path = quote(name.replace("\\", "/"), safe="/.-_~")
    if path.startswith("/"):
        yield root + path.lstrip("/")
    elif "://" not in name:
        yield urljoin(page, path)
        if base != page:
            yield urljoin(base, path)


def _select_targets(
    text: str, url: str, root: str, places: dict[str, list[PlaceTarget]]
) -> Iterator[tuple[str, tuple[PlaceTarget, ...]]]:
    """Yield the places that a page refers to, the nearest pages first."""
    for role, target in sorted(find_references(text)):
        if role in LABEL_ROLES or role == "keyword":
            key = f"ref:{' '.join(target.lower().split())}"
            if key in places:
                yield key, _nearest(places[key], url)
        if role in ("doc", "any"):
            yield from _page_target(target, url, root, places)
        if role not in ("doc", "ref"):
            for name in _qualified(role, target):
                key = f"id:{key_of(name)}"
                if key in places:
                    yield key, _nearest(places[key], url)
    for target in _toctree_entries(text):
        yield from _page_target(target, url, root, places)


def _qualified(role: str, target: str) -> list[str]:
    names = object_ids(qualify_role(role, "py"), target, Page())
    return [*names, *object_ids(f"c:{role}", target, Page())] if ":" not in role else names


_TOCTREE: Final = re.compile(r"^([ \t]*)\.\. toctree::[^\n]*\n((?:\1[ \t]+[^\n]*\n|[ \t]*\n)*)", re.MULTILINE)


def _toctree_entries(text: str) -> Iterator[str]:
    for match in _TOCTREE.finditer(f"{text}\n"):
        for line in match[2].split("\n"):
            entry = line.strip()
            if entry and entry[0] != ":":
                yield entry.rpartition("<")[2].rstrip("> ") if entry.endswith(">") else entry


def _page_target(
    target: str, url: str, root: str, places: dict[str, list[PlaceTarget]]
) -> Iterator[tuple[str, tuple[PlaceTarget, ...]]]:
    for base in _file_urls(target, url, url, root):
        for extension in (".rst", ".txt", ".rest", ""):
            if found := places.get(f"page:{base}{extension}"):
                yield f"doc:{target}", tuple(found)
                return


def _nearest(found: list[PlaceTarget], url: str) -> tuple[PlaceTarget, ...]:
    """Return the places, those of pages beside this one first: a repository may hold a manual in several languages."""

    def distance(place: PlaceTarget) -> int:
        pairs = zip(place.url.split("/"), url.split("/"), strict=False)
        return -next((number for number, (one, other) in enumerate(pairs) if one != other), 1000)

    return tuple(sorted(found, key=distance)[:MAX_CANDIDATES])
