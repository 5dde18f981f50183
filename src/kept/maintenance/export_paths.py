"""Where a document lies in a tree of Markdown files that people read: as it lies below its source's root."""

import hashlib
import re
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from kept.model.source import Source

_UNSAFE = re.compile(r'[\x00-\x1f\x7f<>:"\\|?*]')
_SUFFIX = re.compile(r"(?<=.)\.(?:md|markdown|x?html?|mdx)$", re.IGNORECASE)
_MAX_NAME_CHARS = 120  # characters of a name: at most 480 bytes before it is cut further


def tree_paths(source: Source, urls: Mapping[str, str]) -> dict[str, str]:
    """A path for each document, by id: safe on every file system, and no two alike, whatever case they are in."""
    taken: set[str] = set()
    paths: dict[str, str] = {}
    for id, url in sorted(urls.items(), key=lambda pair: pair[1]):
        parts = [_safe_name(part) for part in _parts_below_root(source.root, url)]
        stem = "/".join([_safe_name(source.label), *parts])
        tries = (f"{stem}.md", f"{stem}-{id[-8:]}.md", f"{stem}-{id}.md")
        path = next(path for path in tries if path.casefold() not in taken)
        taken.add(path.casefold())
        paths[id] = path
    return paths


def _parts_below_root(root: str, url: str) -> list[str]:
    """The parts of a URL below its source's root; of another host, below that host."""
    one, other = urlsplit(root), urlsplit(url)
    path = unquote(other.path, errors="replace")
    folder = unquote(one.path, errors="replace")
    folder = folder if one.scheme == "file" else folder[: folder.rfind("/") + 1]
    same = (one.scheme, one.netloc) == (other.scheme, other.netloc)
    if same and path.startswith(folder.rstrip("/") + "/"):
        path = path[len(folder.rstrip("/")) :]
    elif same and path == folder:
        path = "/" + path.rsplit("/", 1)[-1]
    parts = [part for part in path.split("/") if part not in ("", ".", "..")]
    parts += ["index"] if path.endswith("/") or not parts else []
    parts[-1] = _SUFFIX.sub("", parts[-1]) + "".join(f" {extra}" for extra in (other.query, other.fragment) if extra)
    return parts if same else [other.netloc, *parts]


def _safe_name(part: str) -> str:
    """A name that every file system takes; one that had to be cut ends with what tells it from others."""
    name = _UNSAFE.sub("_", part).strip(" ").rstrip(".").replace("/", "_") or "_"
    name = f"_{name[1:]}" if name.startswith(".") else name
    if len(name) <= _MAX_NAME_CHARS and len(name.encode("utf-8", "surrogatepass")) <= 200:
        return name
    cut = name[:_MAX_NAME_CHARS].encode("utf-8", "replace")[:190].decode("utf-8", "ignore")
    return f"{cut}~{hashlib.sha256(part.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
