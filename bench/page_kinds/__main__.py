"""Compare the kinds that Kept recognises with those of pages that were labelled by hand.

    python -m bench.page_kinds FOLDER [--wrong]

FOLDER has the Debian packages of `labels.csv`, unpacked with `dpkg -x`. Precision and recall are printed for each
kind; index and contents also as one, because nothing treats them differently.
"""

from __future__ import annotations

import argparse
import csv
from collections import Counter
from pathlib import Path

from kept.extract.reader import parse_page
from kept.model.document import ParsedPage

LABELS = Path(__file__).with_name("labels.csv")
LISTS = {"index", "contents"}


def recognise(path: Path) -> str:
    page = parse_page(path.read_bytes(), content_type="text/html", url=f"https://docs.test/{path.as_posix()}")
    return page.content.kind.value if isinstance(page, ParsedPage) else "unreadable"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--wrong", action="store_true", help="list the pages that were recognised wrongly")
    arguments = parser.parse_args()
    found: Counter[tuple[str, str]] = Counter()
    missing = 0
    for row in csv.DictReader(LABELS.open()):
        path = arguments.folder / row["path"]
        if not path.is_file():
            missing += 1
            continue
        kind = recognise(path)
        found[row["kind"], kind] += 1
        if arguments.wrong and kind != row["kind"]:
            print(f"{row['kind']:10} read as {kind:10} {row['path']}")
    kinds = sorted({kind for pair in found for kind in pair})
    groups = {kind: {kind} for kind in kinds} | {"index or contents": LISTS}
    print(f"{sum(found.values())} pages, {missing} not there")
    for name, group in groups.items():
        labelled = sum(n for (label, _), n in found.items() if label in group)
        recognised = sum(n for (_, kind), n in found.items() if kind in group)
        right = sum(n for (label, kind), n in found.items() if label in group and kind in group)
        print(f"{name:18} precision {right}/{recognised}  recall {right}/{labelled}")


if __name__ == "__main__":
    main()
