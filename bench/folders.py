"""An unchanged refresh of a folder, beside a bare walk of it: `python -m bench.folders [FILES]` prints the ratio.

The walk is what Python needs at least: os.scandir and one stat a file. The refresh is a command of its own and counts
by the job's own `seconds`. Both are measured in turn; the best of each counts, for the machine may be busy.
"""

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
    """The job's own seconds."""
    command = [sys.executable, "-m", "kept", "--database", database, *arguments, "--json"]
    compiled = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}  # once, as where it is installed
    told = json.loads(subprocess.run(command, check=True, capture_output=True, env=compiled).stdout)
    assert told["status"] == "completed"
    return float(told["seconds"])


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
            refreshes.append(kept(database, "refresh", "docs"))
        bare, ours = min(walks), min(refreshes)
        print(f"{files:,} files: first crawl {first:.1f} s; unchanged refresh {ours:.3f} s, bare walk {bare:.3f} s")
        print(f"ratio {ours / bare:.1f}")


if __name__ == "__main__":
    main()
