"""Fit the weights of the ranking to judged queries, cross-validated by manual.

    python -m bench.quality.fit --database NAME=FILE … --manual NAME=FOLDER … [--features FILE] [--ablate] [--write]

The features of every candidate are computed once from databases of kept manuals and stored in a file; the rest is
linear algebra. The weights minimise the logistic loss of the order of each right section and each wrong one that was
found with it. A feature that can only speak for a section never gets a negative weight.
"""

import argparse
import asyncio
import json
from pathlib import Path
from typing import Any

import numpy as np

from bench.quality.index_terms import index_queries
from bench.quality.judgements import TEST, TUNE, FoundPlace, JudgedQuery, PlaceJudge, judged_queries
from kept.model.section import SectionMatch
from kept.search import features
from kept.search.rank import WEIGHTS_FILE, fitted_weights
from kept.search.search import SearchScope, find_candidates
from kept.search.suggest import check_query
from kept.store.database import open_database

SPEAKS_AGAINST = frozenset({"short", "low_value", "depth"})
FREE = frozenset({"first", "question_first", "question_above", "question_body"})
RIDGE = 0.02
STEPS = 500
HARD = 30  # wrong candidates of a query that are looked at


async def collect(manual: str, database: Path, folder: Path) -> list[dict[str, Any]]:
    """Return the features and the right answers of each query of a manual."""
    judge, found = PlaceJudge(database, {manual: folder}), []
    root = folder.resolve().as_uri() + "/"
    db = await open_database(f"sqlite:///{database}")
    try:
        async with db.snapshot() as snapshot:
            for judged in [*judged_queries(manual), *index_queries(manual, folder)]:
                query = (await check_query(snapshot, judged.text, None)).query
                matches, _ = await find_candidates(snapshot, query, SearchScope(generations=None), limit=10)
                rows = features.compute_features(query, matches, query.frequencies, {})
                found.append(
                    {
                        "manual": manual,
                        "kind": judged.kind,
                        "query": judged.text,
                        "right": [_is_right(judge, judged, match, root) for match in matches],
                        "pages": [match.document_id for match in matches],
                        "urls": [f"{match.url}#{match.anchor}" for match in matches],
                        "features": [[round(value, 4) for value in row] for row in rows],
                    }
                )
    finally:
        await db.close()
    return found


def _is_right(judge: PlaceJudge, judged: JudgedQuery, match: SectionMatch, root: str) -> bool:
    page = match.url.partition("#")[0].removeprefix(root)
    return judge.is_right(FoundPlace(judged.manual, page, match.anchor, match.text), judged)


def fit(asked: list[dict[str, Any]], without: frozenset[str] = frozenset()) -> "np.ndarray[Any, Any]":
    """Return the weights that order right sections before wrong ones."""
    differences, importance, begin = [], [], np.array(fitted_weights())
    groups: dict[tuple[str, bool], int] = {}
    for one in asked:
        groups[one["manual"], one["kind"] == "index"] = groups.get((one["manual"], one["kind"] == "index"), 0) + 1
    for one in asked:
        values, right = np.array(one["features"]), np.array(one["right"], bool)
        if not right.any() or right.all():
            continue
        share = (0.5 if one["kind"] == "index" else 1.0) / groups[one["manual"], one["kind"] == "index"]
        # Of several right sections the best counts: the others need not be first.
        for good in values[right][:3]:
            # What stands in front matters, not the two hundredth.
            wrong = values[~right][np.argsort(-(values[~right] @ begin), kind="stable")[:HARD]]
            differences.append(good - wrong)
            importance.append(np.full(len(wrong), share / len(wrong) / min(3, right.sum())))
    rows, weight = np.concatenate(differences), np.concatenate(importance)
    weight /= weight.sum()
    names = features.Features._fields
    signs = np.array([0 if name in FREE else -1 if name in SPEAKS_AGAINST else 1 for name in names])
    used = np.array([name not in without for name in names])
    found, momentum, square = np.zeros(len(names)), np.zeros(len(names)), np.zeros(len(names))
    for step in range(1, STEPS + 1):
        # Emphasis on the wrong ones that come near: they are what stands in front.
        margins = np.clip(rows @ found, -30, 30)
        slope = -1 / (1 + np.exp(margins))
        gradient = rows.T @ (weight * slope) + RIDGE * found / len(names)
        momentum = 0.9 * momentum + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        found -= 0.03 * (momentum / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
        found = np.where((signs != 0) & (found * signs < 0), 0, found) * used
    return found


def ranks(asked: list[dict[str, Any]], weights: "np.ndarray[Any, Any]") -> list[int | None]:
    """Return for each query the rank of the first right section, with at most two of a page before others."""
    found = []
    for one in asked:
        order = np.argsort(-(np.array(one["features"]) @ weights), kind="stable") if one["features"] else []
        counts: dict[str, int] = {}
        first, rest = [], []
        for at in order:
            page = one["pages"][at]
            counts[page] = counts.get(page, 0) + 1
            (first if counts[page] <= 2 else rest).append(at)
        found.append(next((rank for rank, at in enumerate([*first, *rest][:10], 1) if one["right"][at]), None))
    return found


def mrr(found: list[int | None]) -> float:
    return sum(1 / rank for rank in found if rank) / max(1, len(found))


def main() -> None:
    parser = argparse.ArgumentParser("bench.quality.fit", description="Fit the weights of the ranking.")
    parser.add_argument("--database", action="append", default=[], metavar="NAME=FILE")
    parser.add_argument("--manual", action="append", default=[], metavar="NAME=FOLDER")
    parser.add_argument("--features", type=Path, default=Path("features.json"))
    parser.add_argument("--write", action="store_true", help="write the weights that the product uses")
    parser.add_argument("--ablate", action="store_true", help="leave out one feature at a time")
    arguments = parser.parse_args()
    if arguments.database:
        folders = dict(pair.split("=", 1) for pair in arguments.manual)
        collected: list[dict[str, Any]] = []
        for name, file in (pair.split("=", 1) for pair in arguments.database):
            collected += asyncio.run(collect(name, Path(file), Path(folders[name])))
        arguments.features.write_text(json.dumps(collected))
    asked = json.loads(arguments.features.read_text())
    tune = [one for one in asked if one["manual"] in TUNE]
    print(f"found at all: {sum(any(one['right']) for one in asked) / len(asked):.3f} of {len(asked)}")
    print(f"as they are: {_figures(asked, np.array(fitted_weights()))}")
    for left_out in TUNE:
        weights = fit([one for one in tune if one["manual"] != left_out])
        print(f"{left_out:9} {_figures([one for one in tune if one['manual'] == left_out], weights)}")
    weights = fit(tune)
    print(f"tune      {_figures(tune, weights)}")
    print(f"test      {_figures([one for one in asked if one['manual'] in TEST], weights)}")
    if arguments.ablate:
        for name in features.Features._fields:
            print(f"without {name:18} {_cross_validated(tune, frozenset([name])):.4f}")
        print(f"with all {'':17} {_cross_validated(tune):.4f}")
    if arguments.write:
        # What never differs among the queries of one manual is not fitted: whether they name their source.
        varies = np.ptp(np.concatenate([np.array(one["features"]) for one in tune if one["features"]]), axis=0) > 0
        weights = np.where(varies, weights, np.array(fitted_weights()))
        named = {name: round(float(weight), 3) for name, weight in zip(features.Features._fields, weights, strict=True)}
        WEIGHTS_FILE.write_text(json.dumps(named, indent=1) + "\n")


def _cross_validated(asked: list[dict[str, Any]], without: frozenset[str] = frozenset()) -> float:
    """Return the mean over the manuals, each ranked by weights that were fitted to the others."""
    found = []
    for manual in TUNE:
        weights = fit([one for one in asked if one["manual"] != manual], without)
        found.append(mrr(ranks([one for one in asked if one["manual"] == manual], weights)))
    return sum(found) / len(found)


def _figures(asked: list[dict[str, Any]], weights: "np.ndarray[Any, Any]") -> str:
    kinds = sorted({one["kind"] for one in asked})
    found = dict(zip(map(id, asked), ranks(asked, weights), strict=True))
    return (
        "  ".join(f"{kind} {mrr([found[id(one)] for one in asked if one['kind'] == kind]):.3f}" for kind in kinds)
        + f"  all {mrr(list(found.values())):.3f}"
    )


if __name__ == "__main__":
    main()
