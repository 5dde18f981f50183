"""Reader processes: a page that hangs or crashes one costs that page and nothing else."""

import asyncio
import os
import signal
import subprocess
import sys

import pytest

from kept.errors import SourceUnavailable
from kept.extract.reader_pool import pool as pool_module
from kept.extract.reader_pool.pool import ReaderPool
from kept.extract.sections import Unreadable
from kept.model.document import ParsedPage

URL = "https://docs.test/page"


def test_a_reader_process_gives_the_same_results_as_this_process() -> None:
    async def scenario() -> None:
        pool = ReaderPool(2)
        try:
            pages = [f"# Page {number}\n\nWords.".encode() for number in range(20)]
            readings = await asyncio.gather(*(pool.read(page, "text/markdown", URL) for page in pages))
            assert [one.content.title for one in readings if isinstance(one, ParsedPage)] == [
                f"Page {number}" for number in range(20)
            ]
        finally:
            await pool.close()

    asyncio.run(scenario())


UNDER_A_LIMIT = """
import asyncio, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (700_000_000, 700_000_000))
from kept.extract.reader_pool.pool import ReaderPool
async def main():
    pool = ReaderPool(1)
    try:
        page = await pool.read(b"# Page", "text/markdown", "https://docs.test/")
        print(page.content.title)
    finally:
        await pool.close()
asyncio.run(main())
"""


def test_pages_are_read_under_a_memory_limit_below_that_of_the_readers() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", UNDER_A_LIMIT],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert (ran.stdout, ran.stderr) == ("Page\n", "")


def test_readers_that_do_not_start_are_no_fault_of_the_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "_START", "raise SystemExit(1)")

    async def scenario() -> None:
        pool = ReaderPool(1)
        try:
            async with asyncio.timeout(30):
                with pytest.raises(SourceUnavailable, match="does not start"):
                    await pool.read(b"# Page", "text/markdown", URL)
        finally:
            await pool.close()

    asyncio.run(scenario())


def test_ctrl_c_does_not_reach_the_readers() -> None:
    async def scenario() -> None:
        pool = ReaderPool(2)
        try:
            await pool.start()
            assert [os.getpgid(reader.pid) for reader in pool._readers] == [reader.pid for reader in pool._readers]
        finally:
            await pool.close()

    asyncio.run(scenario())


def test_large_pages_are_read_one_at_a_time_and_small_ones_in_parallel() -> None:
    async def scenario() -> None:
        pool = ReaderPool(1, seconds=60.0)
        try:
            assert isinstance(await pool.read(b"# First", "text/markdown", URL), ParsedPage)
            os.kill(pool._readers[0].pid, signal.SIGSTOP)
            large, small = b"words " * 100_000, b"words"
            reading = [
                asyncio.create_task(pool.read(page, "text/plain", URL)) for page in (large, large, small, large, small)
            ]
            await asyncio.sleep(0)  # each has run as far as its pipe, or its turn
            assert [page[0] for page, _ in pool._readers[0].pending] == [large, small, small]
            os.kill(pool._readers[0].pid, signal.SIGCONT)
            assert {type(answer) for answer in await asyncio.gather(*reading)} == {ParsedPage}
        finally:
            await pool.close()

    asyncio.run(scenario())


def test_a_page_that_takes_too_long_is_given_up_and_the_others_are_read() -> None:
    async def scenario() -> None:
        pool = ReaderPool(1, seconds=-1.0)  # nothing at all for half a megabyte, a second for a whole one
        try:
            intricate = b"<p>" + b"<b><i><a href=x>word</a></i></b> " * 13_000
            answers = await asyncio.gather(
                pool.read(intricate, "text/html", URL), pool.read(b"plain words\n" * 90_000, "text/plain", URL)
            )
            assert [type(answer) for answer in answers] == [Unreadable, ParsedPage]
            assert isinstance(answers[0], Unreadable)
            assert (answers[0].reason, answers[0].is_reader_failure) == ("reading it took too long", True)
        finally:
            await pool.close()

    asyncio.run(scenario())


def test_a_killed_reader_costs_only_the_page_it_was_reading() -> None:
    async def scenario() -> None:
        pool = ReaderPool(1, seconds=60.0)
        try:
            assert isinstance(await pool.read(b"# First", "text/markdown", URL), ParsedPage)
            os.kill(pool._readers[0].pid, signal.SIGSTOP)
            reading = [asyncio.create_task(pool.read(b"# Next", "text/markdown", URL)) for _ in range(3)]
            await asyncio.sleep(0)  # each has run as far as its pipe
            assert len(pool._readers[0].pending) == 3
            os.kill(pool._readers[0].pid, signal.SIGKILL)
            answers = await asyncio.gather(*reading)
            assert [type(answer) for answer in answers] == [Unreadable, ParsedPage, ParsedPage]
            assert answers[0] == Unreadable(reason="its reader crashed", is_reader_failure=True)
        finally:
            await pool.close()

    asyncio.run(scenario())


def test_a_page_that_takes_too_much_memory_is_given_up() -> None:
    async def scenario() -> None:
        pool = ReaderPool(1, seconds=60.0, memory=200 * 1024 * 1024)
        try:
            body = b"<p>" + b"many words " * 8_000_000
            given_up = await pool.read(body, "text/html", URL)
            assert isinstance(given_up, Unreadable)
            assert given_up.is_reader_failure
            assert isinstance(await pool.read(b"# Small", "text/markdown", URL), ParsedPage)
        finally:
            await pool.close()

    asyncio.run(scenario())


def test_a_reader_that_hangs_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "WALL_CLOCK_FACTOR", 0.001)

    async def scenario() -> None:
        pool = ReaderPool(1, seconds=60.0)
        try:
            await pool.start()
            os.kill(pool._readers[0].pid, signal.SIGSTOP)
            answer = await pool.read(b"# First", "text/markdown", URL)
            assert isinstance(answer, Unreadable)
            assert answer.reason == "its reader hung"
        finally:
            await pool.close()

    asyncio.run(scenario())


def test_a_reader_that_sends_an_invalid_result_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    babbling = "import sys; sys.stdout.write('ready\\0\\0\\0\\5words'); sys.stdout.flush(); sys.stdin.read()"

    async def scenario() -> None:
        pool = ReaderPool(1)
        try:
            with monkeypatch.context() as patched:
                patched.setattr(pool_module, "_START", babbling)
                await pool.start()
            answers = await asyncio.gather(*(pool.read(b"# First", "text/markdown", URL) for _ in range(2)))
            assert [type(answer) for answer in answers] == [Unreadable, ParsedPage]
            assert isinstance(answers[0], Unreadable)
            assert answers[0].reason.startswith("its reader sent an invalid result: UnpicklingError")
        finally:
            await pool.close()

    asyncio.run(scenario())
