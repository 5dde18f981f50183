"""Compare an unchanged refresh of a folder with a bare walk of it: `python -m bench.folders [FILES]` prints the ratio.

The walk is the least that Python needs: os.scandir and one stat a file. The refresh is a command of its own, measured
by the `seconds` of its job. They alternate, and the best of each counts, as the machine may be busy.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 5


def make_files(root: Path, files: int) -> None:
    for number in range(files):
        path = root / f"part{number // 200:04}" / f"page{number:06}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# Page {number}\n\nSome words about number {number}, and a few more.\n")
        os.utime(path, (1_600_000_000, 1_600_000_000))


def walk(root: str) -> int:
    """Stat every file. Returns how many there are."""
    count, folders = 0, [root]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    entry.stat()
                    count += 1
    return count


def run_kept(database: str, *arguments: str) -> float:
    """Run a crawl. Returns the seconds of its job."""
    command = [sys.executable, "-m", "kept", "--database", database, *arguments, "--json"]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}  # compiled once, like an installation
    answer = json.loads(subprocess.run(command, check=True, capture_output=True, env=environment).stdout)
    assert answer["status"] == "completed"
    return float(answer["seconds"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=int, nargs="?", default=20_000)
    files = parser.parse_args().files
    with tempfile.TemporaryDirectory() as folder:
        root, database = Path(folder, "docs"), f"sqlite:///{folder}/kept.db"
        make_files(root, files)
        first = run_kept(database, "add", str(root), "--name", "docs")
        walks, refreshes = [], []
        for _ in range(ROUNDS):
            started = time.perf_counter()
            assert walk(str(root)) == files
            walks.append(time.perf_counter() - started)
            refreshes.append(run_kept(database, "refresh", "docs"))
        bare, ours = min(walks), min(refreshes)
        print(f"{files:,} files: first crawl {first:.1f} s; unchanged refresh {ours:.3f} s, bare walk {bare:.3f} s")
        print(f"ratio {ours / bare:.1f}")


if __name__ == "__main__":
    main()
