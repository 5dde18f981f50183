"""Measure the quality of search with the index of a manual as ground truth.

    python -m bench.quality [--manual django|javadoc|git]… [--store sqlite|postgres|plain]… [--half tune|test]
                            [--by lexical|meaning|fused]… [--missed] [--check]

    plain pages       FTS5, BM25, whole pages; a hit on the right page counts
    plain sections    FTS5, BM25, sections: title × 10, headings × 5, porter; all words, then any
    kept sqlite       the results of `kept search`
    kept postgres     the same on PostgreSQL
    … by meaning      with vectors of the built-in model, alone or fused with words: --by

Queries and expected places come from bench/quality/labels.py. Rankings are tuned on one half of each set and reported
on the other. --check fails on figures below those of bench/floors.toml.
"""

import argparse
import asyncio
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from bench.quality.baselines import plain_pages, plain_sections
from bench.quality.judge import DEPTH, Judge, JudgedHit, Score, summary
from bench.quality.labels import MANUALS, Label, labels
from bench.quality.manuals import on_postgres, on_sqlite
from kept.embed import static
from kept.model.search_request import SearchRequest
from kept.search.vector_search import VectorSearchOptions
from kept.service import search
from kept.store.database import open_database

FLOORS = Path(__file__).parent.parent / "floors.toml"
Searcher = Callable[[Sequence[Label]], list[list[JudgedHit]]]
Figures = dict[tuple[str, str], dict[str, float]]  # (set, contender)


def main() -> None:
    arguments = _arguments()
    figures: Figures = {}
    with ExitStack() as stack:
        postgres = stack.enter_context(on_postgres()) if "postgres" in arguments.store else None
        for manual in arguments.manual:
            kept = on_sqlite(manual)
            judge = Judge(kept, MANUALS[manual])
            wanted = [label for label in labels(manual) if label.half == arguments.half]
            for name, searcher in _contenders(manual, kept, arguments.store, arguments.by, postgres):
                scores = _judged(judge, wanted, searcher(wanted), pages=name == "plain pages")
                for of_set in sorted({label.set for label in wanted}):
                    figures[of_set, name] = summary([one for label, one in scores if label.set == of_set])
                if arguments.missed and name.startswith("kept"):
                    _show_missed(scores)
    print(_table(figures, arguments.half))
    if arguments.check:
        sys.exit(_check(figures))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("bench.quality", description="Measure the quality of search.")
    parser.add_argument("--manual", action="append", choices=list(MANUALS))
    parser.add_argument("--store", action="append", choices=["plain", "sqlite", "postgres"])
    parser.add_argument("--half", default="test", choices=["tune", "test"])
    parser.add_argument("--by", action="append", choices=["lexical", "meaning", "fused"])
    parser.add_argument("--missed", action="store_true", help="show the queries whose first hit is wrong")
    parser.add_argument("--check", action="store_true", help="fail if a figure is below bench/floors.toml")
    arguments = parser.parse_args()
    arguments.manual = arguments.manual or list(MANUALS)
    arguments.store = arguments.store or ["plain", "sqlite", "postgres"]
    arguments.by = arguments.by or ["lexical"]
    return arguments


def _contenders(
    manual: str, kept: Path, stores: Sequence[str], modes: Sequence[str], postgres: Callable[[str], str] | None
) -> Iterator[tuple[str, Searcher]]:
    root = f"{MANUALS[manual].as_uri()}/"
    if "plain" in stores:
        for name, plain in (("plain pages", plain_pages(kept, root)), ("plain sections", plain_sections(kept, root))):
            yield name, lambda wanted, plain=plain: [plain.search(label.query) for label in wanted]  # type: ignore[misc]
    urls = {"kept sqlite": f"sqlite:///{kept}"} if "sqlite" in stores else {}
    if postgres:
        urls["kept postgres"] = postgres(manual)
    for name, url in urls.items():
        for mode in modes:
            label = name if mode == "lexical" else f"{name}, {mode}"
            yield label, lambda wanted, url=url, mode=mode: asyncio.run(_kept(url, root, wanted, mode))  # type: ignore[misc]


async def _kept(url: str, root: str, wanted: Sequence[Label], mode: str) -> list[list[JudgedHit]]:
    by = None if mode == "lexical" else VectorSearchOptions(mode, {static.MODEL: static.StaticEmbedder()}.get)
    db = await open_database(url)
    try:
        return [
            [
                JudgedHit(
                    _page(hit.url, root), hit.anchor, hit.text, tuple(_page(other["url"], root) for other in hit.also)
                )
                for hit in await search.search_sections(db, SearchRequest(text=label.query, limit=DEPTH), vectors=by)
            ]
            for label in wanted
        ]
    finally:
        await db.close()


def _page(url: str, root: str) -> str:
    return url.partition("#")[0].removeprefix(root)


def _judged(
    judge: Judge, wanted: Sequence[Label], found: list[list[JudgedHit]], *, pages: bool
) -> list[tuple[Label, Score]]:
    return [(label, judge.score(label, hits, pages=pages)) for label, hits in zip(wanted, found, strict=True)]


def _show_missed(scores: Sequence[tuple[Label, Score]]) -> None:
    for label, score in scores:
        if score.first != 1:
            print(f"{label.set}: {label.query!r} found at {score.first}, not first; wanted {min(label.places)}")


def _table(figures: Figures, half: str) -> str:
    lines = ["", f"| {half} half | | hit@1 | hit@5 | MRR@10 | nDCG@10 |", "| --- | --- | ---: | ---: | ---: | ---: |"]
    for of_set, name in sorted(figures):
        lines.append(
            f"| {of_set} | {name} | " + " | ".join(f"{value:.3f}" for value in figures[of_set, name].values()) + " |"
        )
    return "\n".join(lines)


def _check(figures: Figures) -> int:
    """Return the number of figures that are too low."""
    floors = tomllib.loads(FLOORS.read_text("utf-8"))
    low = [
        f"{of_set}, {name}: MRR@10 is {found['MRR@10']:.3f}, the floor is {floor}"
        for (of_set, name), found in figures.items()
        if (floor := floors.get(name, {}).get(of_set)) is not None and found["MRR@10"] < floor
    ]
    print("\n".join(low) or "No figure is below its floor.")
    return len(low)


if __name__ == "__main__":
    main()
