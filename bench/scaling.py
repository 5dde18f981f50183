"""Measure how time and memory of a crawl grow with the size of the site.

    python -m bench.scaling [--pages 2000 4000 8000 16000] [--rounds 3]

Sites of these sizes, served by nginx on loopback, are crawled with the defaults of `kept add` into an SQLite file. The
best round of each counts. The seconds grow with a power of the pages: the exponent is shown relative to the size
before, and fitted through all sizes. Target: 1.05. Start-up time lowers it, so look at the largest sizes.
"""

import argparse
import json
import math
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.crawl.measurement import Measured, measure
from bench.crawl.nginx import served
from tests.sites import manual


def main() -> None:
    parser = argparse.ArgumentParser("bench.scaling", description=__doc__)
    parser.add_argument("--pages", type=int, nargs="+", default=[2000, 4000, 8000, 16000])
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    best: dict[int, Measured] = {}
    for number in range(1, arguments.rounds + 1):
        for pages in arguments.pages:
            found = _crawl(pages)
            print(f"round {number}: {found.pages:6,} pages {found.seconds:7.1f} s", flush=True)
            if pages not in best or found.seconds < best[pages].seconds:
                best[pages] = found
    print("\n| pages | seconds | pages/s | CPU s per 1,000 pages | peak RSS | exponent |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    points: list[tuple[float, float]] = []
    for one in best.values():
        points.append((one.pages, one.seconds))
        cpu, since = one.cpu * 1000 / one.pages, f"{exponent(points[-2:]):.2f}" if len(points) > 1 else ""
        print(f"| {one.pages:,} | {one.seconds:.1f} | {one.rate:,.0f} | {cpu:.2f} | {one.memory >> 20} MB | {since} |")
    print(f"\nThe exponent through all sizes is {exponent(points):.3f}.")


def exponent(points: Sequence[tuple[float, float]]) -> float:
    """Return the slope of the line fitted through the logarithms."""
    xs, ys = [math.log(x) for x, _ in points], [math.log(y) for _, y in points]
    x_mean, y_mean = sum(xs) / len(xs), sum(ys) / len(ys)
    rise = sum((x - x_mean) * (y - y_mean) for x, y in zip(xs, ys, strict=True))
    return rise / sum((x - x_mean) ** 2 for x in xs)


def _crawl(pages: int) -> Measured:
    with tempfile.TemporaryDirectory(prefix="bench") as folder:
        site = Path(folder) / "site"
        manual.write(site, pages)
        Path(folder).chmod(0o755)  # nginx is another user
        with served(site) as root:
            database = f"sqlite:///{folder}/kept.db"
            command = [sys.executable, "-m", "kept", "--database", database, "add", root, "--json"]
            return measure(command, lambda printed: int(json.loads(printed)["counts"]["new"]))


if __name__ == "__main__":
    main()
