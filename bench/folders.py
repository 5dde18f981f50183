"""An unchanged refresh of a folder, beside a bare walk of it: `python -m bench.folders [FILES]` prints the ratio.

The walk is what Python needs at least: os.scandir and one stat a file. Both are measured in turn; the best of each
counts, for the machine may be busy.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 5


def make(root: Path, files: int) -> None:
    for number in range(files):
        path = root / f"part{number // 200:04}" / f"page{number:06}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# Page {number}\n\nSome words about number {number}, and a few more.\n")
        os.utime(path, (1_600_000_000, 1_600_000_000))


def walk(root: str) -> int:
    """How many files there are."""
    count, folders = 0, [root]
    while folders:
        with os.scandir(folders.pop()) as found:
            for entry in found:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    entry.stat()
                    count += 1
    return count


def kept(database: str, *arguments: str) -> float:
    command = [sys.executable, "-m", "kept", "--database", database, *arguments, "--json"]
    told = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    assert told["status"] == "completed"
    return float(told["seconds"])


async def refresh(database: str, name: str) -> float:
    """The job's own time, to more than a tenth of a second."""
    from kept import settings
    from kept.runtime import open_runtime
    from kept.service import crawls

    said = settings.load(environment=os.environ, folder=Path("/"), database=database)
    async with open_runtime(said) as runtime:
        began = time.perf_counter()
        await runtime.reap()
        job = await runtime.run_job(await crawls.request_crawl(runtime.db, name))
        seconds = time.perf_counter() - began
        assert job.progress.tally.changed == job.progress.tally.new == 0
    return seconds


def main() -> None:
    files = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    with tempfile.TemporaryDirectory() as folder:
        root, database = Path(folder, "docs"), f"sqlite:///{folder}/kept.db"
        make(root, files)
        first = kept(database, "add", str(root), "--name", "docs")
        walks, refreshes = [], []
        for _ in range(ROUNDS):
            began = time.perf_counter()
            assert walk(str(root)) == files
            walks.append(time.perf_counter() - began)
            refreshes.append(asyncio.run(refresh(database, "docs")))
        bare, ours = min(walks), min(refreshes)
        print(f"{files:,} files: first crawl {first:.1f} s; unchanged refresh {ours:.3f} s, bare walk {bare:.3f} s")
        print(f"ratio {ours / bare:.1f}")


if __name__ == "__main__":
    main()
