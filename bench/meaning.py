"""Measure what the built-in embedding model adds to the cost of adding a manual.

    python -m bench.meaning FOLDER [--rounds 1]

Runs `kept add FOLDER` with and without vectors, alternately, each into a new SQLite file. The best round of each
counts. Target: at most twice the time. Vectors are complete when the command ends, unless it prints otherwise.
"""

import argparse
import json
import os
import sys
import tempfile

from bench.crawl.measurement import Measured, measure

MODES = {"words": "none", "words and vectors": "static"}


def main() -> None:
    parser = argparse.ArgumentParser("bench.meaning", description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()
    best: dict[str, Measured] = {}
    for _ in range(arguments.rounds):
        for mode, provider in MODES.items():
            measured = _add(arguments.folder, provider)
            if mode not in best or measured.seconds < best[mode].seconds:
                best[mode] = measured
    print("| kept with | pages | seconds | CPU s | peak RSS |\n| --- | ---: | ---: | ---: | ---: |")
    for mode, one in best.items():
        print(f"| {mode} | {one.pages:,} | {one.seconds:.1f} | {one.cpu:.1f} | {one.memory >> 20} MB |")
    plain, both = best.values()
    print(f"\nVectors make it {both.seconds / plain.seconds:.2f} × as long, and {both.cpu / plain.cpu:.2f} × the work.")


def _add(folder: str, provider: str) -> Measured:
    with tempfile.TemporaryDirectory(prefix="bench") as scratch:
        os.environ["KEPT_EMBED__PROVIDER"] = provider
        command = [sys.executable, "-m", "kept", "--database", f"sqlite:///{scratch}/kept.db", "add", folder, "--json"]
        return measure(command, lambda printed: int(json.loads(printed)["counts"]["new"]))


if __name__ == "__main__":
    main()
