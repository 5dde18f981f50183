"""Compare refreshes with the first crawl and with a bare loop of conditional requests, in one run.

    python -m bench.refresh [--manual javadoc|postgres|FOLDER] [--pages N]

A copy of the manual is served by nginx on loopback and crawled into SQLite; then it is refreshed unchanged, with 1 %,
10 % and all of its pages edited, and unchanged again; then without validators. Seconds are those of
the job; bytes are from the log of the server, with headers; rows are those that differ in a table afterwards. With
``--pages`` most links are dead: use it to try the program, not to measure.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import apsw

from bench.crawl.nginx import MANUALS, served
from kept.model.source import Access

NOTED = ("documents", "versions", "contents", "sections", "frontier", "crawl_jobs", "generations", "sources")
PAGE = "</h1>"  # what is edited stands behind it; else before the end of the page


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    name: str
    seconds: float
    counts: dict[str, int]
    answers: Counter[int]  # of the pages, by status
    bytes: int
    rows: dict[str, int]


class Bench:
    def __init__(self, folder: Path, root: str, log: Path) -> None:
        self._folder = folder
        self._root = root
        self._log = log
        self.database = folder / "kept.db"
        self._before = folder / "before.db"

    def step(self, name: str, *command: str) -> Step:
        self._log.write_text("")
        if self.database.exists():
            self._before.unlink(missing_ok=True)
            apsw.Connection(str(self.database)).execute("VACUUM INTO ?", (str(self._before),))
        done = self._kept(*command)
        job = self._kept("job", done["job"])
        started, ended = (datetime.fromisoformat(job[moment]) for moment in ("started_at", "completed_at"))
        answers, sent = Counter[int](), 0
        for line in self._log.read_text().splitlines():
            status, size, path = line.split(" ", 2)
            answers[int(status)] += path.endswith(".html")
            sent += int(size)
        step = Step(
            name=name,
            seconds=(ended - started).total_seconds(),
            counts=done["counts"],
            answers=answers,
            bytes=sent,
            rows=self._rows(),
        )
        print(f"{name}: {step.seconds:.2f} s, {done['counts']}", flush=True)
        return step

    def bare_loop(self) -> float:
        """Return the seconds of a conditional request for every page."""
        list_file = self._folder / "pages.txt"
        rows = apsw.Connection(str(self.database)).execute(
            "SELECT url, COALESCE(etag, ''), COALESCE(last_modified, '') FROM versions WHERE died IS NULL"
        )
        list_file.write_text("\n".join("\t".join(row) for row in rows))
        command = [sys.executable, "-m", "bench.conditional", list_file, str(Access().concurrency)]
        return min(float(subprocess.check_output(command, text=True).split()[0]) for _ in range(3))

    def _kept(self, *command: str) -> dict:  # type: ignore[type-arg]
        whole = [sys.executable, "-m", "kept", "--json", "--database", f"sqlite:///{self.database}", *command]
        run = subprocess.run(whole, capture_output=True, text=True)
        if run.returncode:
            sys.exit(f"{' '.join(command)} ended with {run.returncode}: {run.stderr[-2000:]}")
        return json.loads(run.stdout)  # type: ignore[no-any-return]

    def _rows(self) -> dict[str, int]:
        """Return how many rows of each table are new or changed."""
        db = apsw.Connection(str(self.database))
        if not self._before.exists():
            return {table: db.execute(f"SELECT count(*) FROM {table}").get for table in NOTED}
        db.execute("ATTACH ? AS before", (str(self._before),))
        other = "SELECT count(*) FROM (SELECT * FROM main.{0} EXCEPT SELECT * FROM before.{0})"
        return {table: db.execute(other.format(table)).get for table in NOTED}


def main() -> None:
    parser = argparse.ArgumentParser("bench.refresh", description="Measure the cost of refreshes.")
    parser.add_argument("--manual", default="javadoc", metavar="NAME|FOLDER", help=", ".join(MANUALS))
    parser.add_argument("--pages", type=int, help="limit the number of pages")
    arguments = parser.parse_args()
    manual = MANUALS.get(arguments.manual, Path(arguments.manual))
    if not manual.is_dir():
        sys.exit(f"There is no folder {manual}. Debian has it in a package: see bench/crawl/served.py.")
    with tempfile.TemporaryDirectory(prefix="bench") as own:
        folder = Path(own)
        folder.chmod(0o755)
        copy, log = folder / "manual", folder / "answers.log"
        pages = _copy(manual, copy, arguments.pages)
        with served(copy, log=log) as root:
            bench = Bench(folder, root, log)
            steps = [bench.step("first crawl", "add", root, "--name", "manual")]
            bare = bench.bare_loop()
            steps.append(bench.step("unchanged", "refresh", "manual"))
            for percent in (1, 10, 100):
                _edit(pages[:: 100 // percent], f"edited with {percent} %")
                steps.append(bench.step(f"{percent} % changed", "refresh", "manual"))
            steps.append(bench.step("unchanged again", "refresh", "manual"))
        port = int(root.split(":")[2].split("/")[0])
        with served(copy, log=log, port=port, validators=False):
            steps.append(bench.step("validators gone", "refresh", "manual"))
            steps.append(bench.step("no validators", "refresh", "manual"))
    print("\n".join(_table(steps, bare)))


def _copy(manual: Path, to: Path, most: int | None) -> list[Path]:
    """Copy the manual and return the pages of the copy."""
    pages = sorted(manual.rglob("*.html"))[:most]
    index = manual / "index.html"
    for page in {*pages, index}:
        target = to / page.relative_to(manual)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(page, target)
    return [to / page.relative_to(manual) for page in pages]


def _edit(pages: Sequence[Path], words: str) -> None:
    for page in pages:
        text = page.read_text("utf-8", "surrogateescape")
        place = PAGE if PAGE in text else "</body>"
        edit = f"<p>This page was {words}.</p>"
        new = text.replace(place, place + edit if place == PAGE else edit + place, 1)
        page.write_text(new, "utf-8", "surrogateescape")


def _table(steps: Sequence[Step], bare: float) -> Iterator[str]:
    first = steps[0]
    yield ""
    yield "| | seconds | × first | MB on the wire | of first's | 304 | changed | rows written, by table |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |"
    for step in steps:
        rows = ", ".join(f"{table} {number:,}" for table, number in step.rows.items() if number)
        yield (
            f"| {step.name} | {step.seconds:.2f} | {step.seconds / first.seconds:.2f} | {step.bytes / 1e6:.2f} "
            f"| {step.bytes / first.bytes:.1%} | {step.answers[304] / max(1, step.answers.total()):.1%} "
            f"| {step.counts['changed']:,} | {rows} |"
        )
    unchanged = steps[1].seconds
    yield ""
    speed = bare / unchanged
    yield f"A bare loop of conditional requests takes {bare:.2f} s; an unchanged refresh has {speed:.2f} of its speed."
    yield f"1 % changed takes {steps[2].seconds / unchanged:.2f} × the unchanged refresh."


if __name__ == "__main__":
    main()
