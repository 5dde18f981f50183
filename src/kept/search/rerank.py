"""The first hits in the order of whoever reads them together with the query."""

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
    """What a search asks a reranker, and whether it got an answer."""

    reranker: Reranker
    top_n: int  # that it is shown
    error: str | None = None  # why the hits are in the order they were found in

    async def apply(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        """All of them: those that were shown to it first, by its scores; as they were, if it does not answer."""
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
        better = [replace(hit, score=score) for hit, score in zip(first, scores, strict=True)]
        return [*sorted(better, key=lambda hit: -hit.score), *rest]
