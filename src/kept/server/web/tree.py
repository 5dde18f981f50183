"""The documents of a source as a tree of folders."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from kept.service.documents import DocumentSummary


@dataclass(slots=True)
class Folder:
    """A folder with its documents and subfolders."""

    name: str
    folders: "dict[str, Folder]" = field(default_factory=dict)
    documents: list[tuple[str, DocumentSummary]] = field(default_factory=list)  # with its file name

    @property
    def count(self) -> int:
        return len(self.documents) + sum(folder.count for folder in self.folders.values())


def build_tree(documents: Iterable[DocumentSummary], root: str) -> Folder:
    """Build the tree below the root. A folder that contains only one other folder is joined with it."""
    base = urlsplit(root)
    top = Folder("")
    for document in documents:
        url = urlsplit(document.url)
        folder = top if url.netloc == base.netloc else top.folders.setdefault(url.netloc, Folder(url.netloc))
        *parents, file = url.path.removeprefix(base.path).lstrip("/").split("/")
        for name in parents:
            folder = folder.folders.setdefault(name, Folder(unquote(name)))
        query = f"?{url.query}" if url.query else ""
        fragment = f"#{url.fragment}" if url.fragment else ""
        folder.documents.append((unquote(f"{file}{query}{fragment}"), document))
    return _collapse(top)


def _collapse(folder: Folder) -> Folder:
    for key, child in list(folder.folders.items()):
        folder.folders[key] = _collapse(child)
    if folder.name and not folder.documents and len(folder.folders) == 1:
        [only] = folder.folders.values()
        return Folder(f"{folder.name}/{only.name}", only.folders, only.documents)
    return folder
