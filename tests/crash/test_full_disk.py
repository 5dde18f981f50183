"""The disk of the database is full, or fails, during a refresh.

The active generation stays searchable, the error is one sentence, and when the disk works again the same job goes on
to the same result as an undisturbed one.
"""

import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.crash.crawler import Crawlers, Run, kept
from tests.crash.docs import Folder
from tests.crash.killed_crawls import Scenario, Store, check_interim, prepare
from tests.crash.state import difference, everything

WRITING = "pwrite64,write,fsync,fdatasync,ftruncate"


@pytest.fixture(scope="module")
def refresh(crawlers: Crawlers, tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    folder = tmp_path_factory.mktemp("disk")
    return prepare("a refresh", Store(folder), crawlers, Folder(folder / "docs", 40))


def test_a_refresh_on_a_disk_that_fills_up_goes_on_when_there_is_space(refresh: Scenario, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        full = 0
        for free in range(40, 1000, 96):
            base = disk.copy(refresh)
            disk.set_free(free * 1024)
            run = refresh.crawl(base)
            full += failed_with_advice(run)
            check_interim(base, refresh)  # here, on the full disk
            disk.set_free(8 * 1024 * 1024)
            goes_on_to_the_end(refresh, base)
    assert full >= 5


@pytest.mark.parametrize(("error", "times"), [("ENOSPC", 12), ("EIO", 8)])
def test_a_refresh_goes_on_after_a_disk_error_at_any_write(
    refresh: Scenario, chance: random.Random, error: str, times: int, tmp_path: Path
) -> None:
    need_strace()
    step = refresh.undisturbed.writes // times
    failed = 0
    for number in range(times):
        n = chance.randint(number * step + 1, number * step + step)
        until = "+" if error == "ENOSPC" else ""  # a full disk stays full
        with refresh.store.database(refresh.base) as url:
            run = refresh.crawl(url, inject=f"{WRITING}:error={error}:when={n}{until}")
            failed += failed_with_advice(run)
            with refresh.store.at_rest(url) as left:
                check_interim(left, refresh)
            goes_on_to_the_end(refresh, url)
    assert failed >= 3


def test_a_refresh_goes_on_after_its_files_may_grow_again(
    refresh: Scenario, chance: random.Random, tmp_path: Path
) -> None:
    with refresh.store.database(refresh.base) as url:
        size = os.stat(url.removeprefix("sqlite:///")).st_size
    for _ in range(3):
        with refresh.store.database(refresh.base) as url:
            run = refresh.crawl(url, longest_file=chance.randrange(size // 4, size // 2))
            assert failed_with_advice(run)
            with refresh.store.at_rest(url) as left:
                check_interim(left, refresh)
            goes_on_to_the_end(refresh, url)


def test_the_command_line_says_in_one_sentence_that_the_disk_is_full(refresh: Scenario) -> None:
    with refresh.store.database(refresh.base) as url:
        size = os.stat(url.removeprefix("sqlite:///")).st_size
        refreshed = kept(url, "refresh", "docs", longest_file=size // 3)
        assert refreshed.returncode == 1
        assert refreshed.stdout == ""
        *_, sentence = refreshed.stderr.splitlines()
        assert sentence.endswith("run the same command again: it goes on where it was.")
        assert "Traceback" not in refreshed.stderr
        again = kept(url, "refresh", "docs")
        assert again.returncode == 0, again.stderr
        goes_on_to_the_end(refresh, url)


def failed_with_advice(run: Run) -> bool:
    """Return whether it failed, with one sentence that says what to do; False if it succeeded."""
    assert not run.killed
    if run.error is None:
        return False
    assert run.error.startswith("StoreFull: "), run.error
    assert "\n" not in run.error
    assert run.error.endswith("run the same command again: it goes on where it was.")
    return True


def goes_on_to_the_end(scenario: Scenario, url: str) -> None:
    run = scenario.crawl(url)
    assert not run.error, run.error
    different = difference(everything(url), scenario.expected)
    assert not different, different


class SmallDisk:
    """A file system in memory with an adjustable size."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def copy(self, scenario: Scenario) -> str:
        """Copy the scenario's database to the empty disk."""
        assert scenario.base is not None
        for file in self.folder.iterdir():
            file.unlink()
        shutil.copyfile(scenario.base.removeprefix("sqlite:///"), self.folder / "kept.db")
        return f"sqlite:///{self.folder / 'kept.db'}"

    def set_free(self, free: int) -> None:
        """Resize the disk to the used bytes plus ``free``."""
        taken = sum(file.stat().st_blocks * 512 for file in self.folder.iterdir())
        subprocess.run(["mount", "-o", f"remount,size={taken + free}", self.folder], check=True)


@contextmanager
def small_disk(folder: Path) -> Iterator[SmallDisk]:
    folder.mkdir()
    mount = [shutil.which("mount") or "false", "-t", "tmpfs", "-o", "size=8m", "kept", folder]
    mounted = subprocess.run(mount, capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("a file system of its own can only be mounted by root")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def need_strace() -> None:
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    tried = subprocess.run(["strace", "-qq", "-o", os.devnull, "true"], capture_output=True, check=False)
    if tried.returncode:
        pytest.skip("strace may not trace processes here")
