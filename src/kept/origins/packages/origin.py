"""A published package as an origin: the documentation in its archive. Hashes of its files are the validators."""

import asyncio
import hashlib
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

from kept.model.package import Package
from kept.model.source import Access, SourceSettings
from kept.origins.file_selection import FileSelection
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
        self._selection = FileSelection(settings.scope, type_of)
        self._type_of = type_of
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
        for path in self._selection.select(sorted(files)):
            url, content_type = tree_file_url(self._package.base_url, path), self._type_of(path)
            if url and content_type:
                etag = hashlib.sha256(files[path].read_bytes()).hexdigest()
                self._files[url] = TreeFile(key=str(files[path]), etag=etag, content_type=content_type)

    async def _read_file(self, file: TreeFile) -> bytes:
        body = await asyncio.to_thread(Path(file.key).read_bytes)
        if len(body) > self._max_bytes:
            raise FileTooLarge
        return body


def _is_metadata(path: str) -> bool:
    return path.count("/") == 1 and path.endswith(".dist-info/METADATA")
