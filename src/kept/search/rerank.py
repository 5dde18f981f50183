"""Reorders the top hits with a reranker."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kept.embed.embedder import embedding_text
from kept.embed.reranker import Reranker
from kept.errors import RerankerUnavailable
from kept.log import Log
from kept.search.search import Hit

log = Log(__name__)


@dataclass(slots=True, kw_only=True)
class Reranking:
    """The reranking of one search, and whether it worked."""

    reranker: Reranker
    top_n: int  # hits that are sent to the reranker
    error: str | None = None  # why the hits were not reordered

    async def apply(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        """Return all hits, the first ``top_n`` ordered by the reranker's scores. Unchanged if it is not available."""
        first, rest = hits[: self.top_n], hits[self.top_n :]
        if not first:
            return []
        try:
            texts = [embedding_text(hit.title, "\n".join(hit.headings), hit.text) for hit in first]
            scores = await self.reranker.rerank(query, texts)
        except RerankerUnavailable as error:
            log.warning("searching without the reranker", reason=str(error))
            self.error = str(error)
            return list(hits)
        rescored = [replace(hit, score=score) for hit, score in zip(first, scores, strict=True)]
        return [*sorted(rescored, key=lambda hit: -hit.score), *rest]
