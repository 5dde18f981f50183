"""The documents of a source as the folders they lie in."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from kept.service.documents import DocumentSummary


@dataclass(slots=True)
class Folder:
    """What lies in it, and below."""

    name: str
    folders: "dict[str, Folder]" = field(default_factory=dict)
    documents: list[tuple[str, DocumentSummary]] = field(default_factory=list)  # with its own part of the path

    @property
    def count(self) -> int:
        return len(self.documents) + sum(folder.count for folder in self.folders.values())


def build_tree(documents: Iterable[DocumentSummary], root: str) -> Folder:
    """Folders below the root's own; a folder that holds nothing but one other is joined with it."""
    base = urlsplit(root)
    top = Folder("")
    for one in documents:
        at = urlsplit(one.url)
        folder = top if at.netloc == base.netloc else top.folders.setdefault(at.netloc, Folder(at.netloc))
        *above, last = at.path.removeprefix(base.path).lstrip("/").split("/")
        for name in above:
            folder = folder.folders.setdefault(name, Folder(unquote(name)))
        rest = f"?{at.query}" if at.query else ""
        route = f"#{at.fragment}" if at.fragment else ""
        folder.documents.append((unquote(f"{last}{rest}{route}"), one))
    return _collapse(top)


def _collapse(folder: Folder) -> Folder:
    for key, below in list(folder.folders.items()):
        folder.folders[key] = _collapse(below)
    if folder.name and not folder.documents and len(folder.folders) == 1:
        [only] = folder.folders.values()
        return Folder(f"{folder.name}/{only.name}", only.folders, only.documents)
    return folder
