"""A published package as an origin: the documentation in its archive. Hashes of its files are the validators."""

import asyncio
import hashlib
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

from kept.model.package import PYTHON_MODULE_TYPE, Package
from kept.model.source import Access, SourceSettings
from kept.origins.file_selection import (
    DOCUMENTATION_FOLDERS,
    NON_DOCUMENTATION_FOLDERS,
    FileSelection,
    is_in_documentation,
)
from kept.origins.file_tree import FileTooLarge, TreeFile, TreeOrigin, tree_file_url
from kept.origins.packages.archive import unpack_archive
from kept.origins.packages.download import download_package, extract_readme, make_gated_environment
from kept.origins.web.client_factory import make_http_client
from kept.origins.web.gate_proxy import GateProxy


class PackageOrigin(TreeOrigin):
    def __init__(
        self,
        package: Package,
        settings: SourceSettings,
        *,
        type_of: Callable[[str], str | None],
        environment: Mapping[str, str],
        uses_user_tools: bool = True,
    ) -> None:
        super().__init__(settings.limits.max_bytes)
        self._package = package
        self._type_of_name = type_of
        self._selection = FileSelection(settings.scope, self._type_of)
        self._environment = environment
        self._uses_user_tools = uses_user_tools
        self._settings = settings
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    async def open(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="kept-", ignore_cleanup_errors=True)
        folder = Path(self._folder.name)
        if self._uses_user_tools:
            archive = await download_package(self._package, folder, self._environment)
        else:
            archive = await self._download_behind_gate(folder)
        await asyncio.to_thread(self._load_files, archive, folder)

    async def _download_behind_gate(self, folder: Path) -> Path:
        """Download with a program that has no configuration of the user and reaches public hosts only."""
        client = make_http_client("", replace(self._settings, access=Access()))
        try:
            async with GateProxy(client) as proxy:
                environment = make_gated_environment(self._environment, proxy)
                return await download_package(self._package, folder, environment)
        finally:
            await client.close()

    async def close(self) -> None:
        if self._folder:
            self._folder.cleanup()

    def why_excluded(self, url: str) -> str | None:
        if not url.startswith(self._package.base_url):
            return "no file of this package"
        return self._selection.why_excluded(unquote(url.removeprefix(self._package.base_url)))

    def _load_files(self, archive: Path, folder: Path) -> None:
        files = unpack_archive(archive, folder, lambda path: self._type_of(path) is not None or _is_metadata(path))
        for path in [path for path in files if _is_metadata(path)]:
            metadata = files.pop(path)
            if readme := extract_readme(metadata.read_bytes()):
                name, text = readme
                metadata.write_bytes(text)
                files.setdefault(name, metadata)
        for path in self._select(files):
            url, content_type = tree_file_url(self._package.base_url, path), self._type_of(path)
            if url and content_type:
                etag = hashlib.sha256(files[path].read_bytes()).hexdigest()
                self._files[url] = TreeFile(key=str(files[path]), etag=etag, content_type=content_type)

    def _select(self, files: Mapping[str, Path]) -> list[str]:
        """Return the files to keep; modules only where there is no documentation, or where a pattern names them."""
        selected = self._selection.select(sorted(files))
        if self._settings.scope.include or not any(map(is_in_documentation, selected)):
            return selected
        return [path for path in selected if not path.endswith(".py")]

    def _type_of(self, path: str) -> str | None:
        if self._package.registry == "pypi" and path.endswith(".py"):
            return PYTHON_MODULE_TYPE if _is_public_module(path) else None
        return self._type_of_name(path)

    async def _read_file(self, file: TreeFile) -> bytes:
        body = await asyncio.to_thread(Path(file.key).read_bytes)
        if len(body) > self._max_bytes:
            raise FileTooLarge
        return body


def _is_public_module(path: str) -> bool:
    *folders, name = path.lower().split("/")
    if name != "__init__.py" and name.startswith("_"):
        return False
    names = {*folders, name.removesuffix(".py")}
    return not any(folder.startswith("_") for folder in folders) and not (
        names & NON_DOCUMENTATION_FOLDERS or DOCUMENTATION_FOLDERS.intersection(folders)
    )


def _is_metadata(path: str) -> bool:
    return path.count("/") == 1 and path.endswith(".dist-info/METADATA")
