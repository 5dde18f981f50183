"""A zip file as an origin: damaged members, and many of them."""

import asyncio
import zipfile
from pathlib import Path
from unittest.mock import patch

import pytest

from kept.extract.reader import guess_content_type
from kept.model.frontier import Fetched, FrontierEntry, Unreachable, Visit
from kept.model.source import Limits, Scope
from kept.model.url import file_url
from kept.origins.zip_file import ZipOrigin

PACKINGS = {"deflate": zipfile.ZIP_DEFLATED, "bzip2": zipfile.ZIP_BZIP2, "lzma": zipfile.ZIP_LZMA}
TEXT = "# Page\n\n" + " ".join(f"word{number * number}" for number in range(400))


def make_zip(path: Path, packing: int, members: int = 1) -> ZipOrigin:
    with zipfile.ZipFile(path, "w", packing) as made:
        for number in range(members):
            made.writestr(f"{number}.md", TEXT)
    return ZipOrigin(file_url(str(path)), scope=Scope(), limits=Limits(), type_of=guess_content_type)


async def visited(origin: ZipOrigin) -> list[Visit]:
    await origin.open()
    try:
        urls = [one.url async for one in origin.list()]
        entries = [FrontierEntry(url=url, depth=0, attempts=0, reached=True, base_version=None) for url in urls]
        return [await origin.visit(entry, conditional=False) for entry in entries]
    finally:
        await origin.close()


@pytest.mark.parametrize("packing", PACKINGS)
def test_a_damaged_member_cannot_be_unpacked_with_any_compression(tmp_path: Path, packing: str) -> None:
    path = tmp_path / "docs.zip"
    origin = make_zip(path, PACKINGS[packing])
    (whole,) = asyncio.run(visited(origin))
    assert isinstance(whole, Fetched)
    damaged = bytearray(path.read_bytes())
    damaged[50:120] = b"\xff" * 70
    path.write_bytes(damaged)
    (broken,) = asyncio.run(visited(origin))
    assert isinstance(broken, Unreachable)
    assert broken.reason.startswith("cannot be unpacked")


def test_a_member_whose_name_is_damaged_cannot_be_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "docs.zip"
    origin = make_zip(path, zipfile.ZIP_STORED)
    with zipfile.ZipFile(path, "a") as more:
        more.writestr("é.md", TEXT)
        more.writestr("x.md", TEXT)
    path.write_bytes(path.read_bytes().replace("é".encode(), b"\xff\xff", 1).replace(b"x.md", b"\0.md"))
    whole, broken = asyncio.run(visited(origin))
    assert isinstance(whole, Fetched)
    assert isinstance(broken, Unreachable)


def test_members_are_indexed_once(tmp_path: Path) -> None:
    origin = make_zip(tmp_path / "docs.zip", zipfile.ZIP_STORED, members=20)
    with patch.object(zipfile.ZipFile, "infolist", autospec=True, side_effect=zipfile.ZipFile.infolist) as looked:
        assert len(asyncio.run(visited(origin))) == 20
    assert looked.call_count == 1
