"""Search one database for many queries, as ``kept search`` does, and print the hits as JSON.

    echo '{"database": "sqlite:///…", "queries": ["…"], "vectors": null}' | python bench/quality/run_queries.py

It runs with the ``kept`` that Python finds, so that two versions of it can be compared: PYTHONPATH=…/src.
"""

import asyncio
import json
import sys
import time
from types import SimpleNamespace
from typing import Any

from kept.errors import InvalidInput
from kept.model.search_request import SearchRequest
from kept.service import search
from kept.store.database import open_database

DEPTH = 10


async def run(asked: dict[str, Any]) -> list[dict[str, Any]]:
    """Return for each query its hits and how long they took."""
    db = await open_database(asked["database"])
    services: Any = SimpleNamespace(db=db, vector_search=lambda: None, reranking=lambda: None)
    found = []
    try:
        for query in asked["queries"]:
            begin = time.perf_counter()
            try:
                result = await search.run_search(services, SearchRequest(text=query, limit=DEPTH))
                hits = result.hits
            except InvalidInput:
                hits = []
            found.append(
                {
                    "query": query,
                    "ms": round((time.perf_counter() - begin) * 1000, 1),
                    "hits": [
                        {"source": hit.source, "url": hit.url, "anchor": hit.anchor, "text": hit.text,
                         "also": [other["url"] for other in hit.also if other["source"] == hit.source]}
                        for hit in hits
                    ],
                }
            )  # fmt: skip
    finally:
        await db.close()
    return found


if __name__ == "__main__":
    json.dump(asyncio.run(run(json.load(sys.stdin))), sys.stdout)
