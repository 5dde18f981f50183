"""File paths of documents in an exported tree, which follow their paths below the source's root."""

import hashlib
import re
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from kept.model.source import Source

_UNSAFE = re.compile(r'[\x00-\x1f\x7f<>:"\\|?*]')
_SUFFIX = re.compile(r"(?<=.)\.(?:md|markdown|x?html?|mdx)$", re.IGNORECASE)
_MAX_NAME_CHARS = 120  # at most 480 bytes, which are cut further


def tree_paths(source: Source, urls: Mapping[str, str]) -> dict[str, str]:
    """Return a path for each document id: safe on every file system, and unique even if case is ignored."""
    taken: set[str] = set()
    paths: dict[str, str] = {}
    for id, url in sorted(urls.items(), key=lambda pair: pair[1]):
        parts = [_safe_name(part) for part in _parts_below_root(source.root, url)]
        stem = "/".join([_safe_name(source.label), *parts])
        candidates = (f"{stem}.md", f"{stem}-{id[-8:]}.md", f"{stem}-{id}.md")
        path = next(path for path in candidates if path.casefold() not in taken)
        taken.add(path.casefold())
        paths[id] = path
    return paths


def _parts_below_root(root: str, url: str) -> list[str]:
    """Return the path segments of a URL below its source's root; for another host, below that host."""
    base, target = urlsplit(root), urlsplit(url)
    path = unquote(target.path, errors="replace")
    folder = unquote(base.path, errors="replace")
    folder = folder if base.scheme == "file" else folder[: folder.rfind("/") + 1]
    is_same_host = (base.scheme, base.netloc) == (target.scheme, target.netloc)
    if is_same_host and path.startswith(folder.rstrip("/") + "/"):
        path = path[len(folder.rstrip("/")) :]
    elif is_same_host and path == folder:
        path = "/" + path.rsplit("/", 1)[-1]
    parts = [part for part in path.split("/") if part not in ("", ".", "..")]
    parts += ["index"] if path.endswith("/") or not parts else []
    parts[-1] = _SUFFIX.sub("", parts[-1]) + "".join(f" {extra}" for extra in (target.query, target.fragment) if extra)
    return parts if is_same_host else [target.netloc, *parts]


def _safe_name(part: str) -> str:
    """Return a name that is valid on every file system. One that had to be cut ends with a hash of the original."""
    name = _UNSAFE.sub("_", part).strip(" ").rstrip(".").replace("/", "_") or "_"
    name = f"_{name[1:]}" if name.startswith(".") else name
    if len(name) <= _MAX_NAME_CHARS and len(name.encode("utf-8", "surrogatepass")) <= 200:
        return name
    cut = name[:_MAX_NAME_CHARS].encode("utf-8", "replace")[:190].decode("utf-8", "ignore")
    return f"{cut}~{hashlib.sha256(part.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
