"""The context of every service function: the database and the origin factory. ``runtime`` builds it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # a service function imports what it needs
    from kept.crawl.lifecycle import LifecycleRules
    from kept.crawl.preview import PagePreview, ScopePreview
    from kept.maintenance.next_run import SchedulePolicy
    from kept.maintenance.reaper import ReapReport
    from kept.model.source import Authority, Source, SourceKind, SourceSettings
    from kept.origins.origin import Origin
    from kept.search.rerank import Reranking
    from kept.search.vector_search import VectorSearchOptions
    from kept.secrets import SecretStore
    from kept.service.previews import PreviewLimits
    from kept.store.database import Connection, Database, ReadableDatabase


class Services(Protocol):
    @property
    def db(self) -> "Database": ...

    @property
    def lifecycle_rules(self) -> "LifecycleRules": ...

    @property
    def schedule_policy(self) -> "SchedulePolicy": ...

    @property
    def secrets(self) -> "SecretStore": ...

    @property
    def preview_limits(self) -> "PreviewLimits": ...

    async def reap_jobs(self) -> "ReapReport":
        """Requeue the jobs of dead workers. A crawl that is requested afterwards joins the requeued job."""

    def vector_search(self) -> "VectorSearchOptions | None":
        """Return how searches use vectors, or None when they are purely lexical."""

    def reranking(self) -> "Reranking | None":
        """Return the reranker for one search, or None when none is configured."""

    def why_excluded(self, source: "Source", url: str) -> str | None:
        """Return why the settings of a source leave a URL out; None when they admit it."""

    def make_origin(
        self,
        kind: "SourceKind",
        root: str,
        settings: "SourceSettings",
        authority: "Authority",
        before: "SourceSettings | None" = None,
    ) -> "Origin":
        """Build an origin from the settings of a request, and check them. Connects to nothing; close it afterwards.

        Raises InvalidInput where root or settings are not valid, or refer to a stored secret that ``before``, the
        settings they replace, did not refer to.
        """

    async def preview_scope(
        self, kind: "SourceKind", root: str, settings: "SourceSettings", authority: "Authority"
    ) -> "ScopePreview":
        """Return the pages that a crawl would begin with. Nothing is stored."""

    async def preview_page(
        self, kind: "SourceKind", url: str, settings: "SourceSettings", authority: "Authority"
    ) -> "PagePreview":
        """Fetch one page and return how it would be read. Nothing is stored."""


class SharedSnapshot:
    """One open snapshot in place of a database."""

    def __init__(self, connection: "Connection") -> None:
        self._connection = connection

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator["Connection"]:
        yield self._connection


@asynccontextmanager
async def share_snapshot(db: "ReadableDatabase") -> AsyncIterator[SharedSnapshot]:
    """Open one snapshot for several reads, so that an answer made of them shows one moment.

    The result takes the place of the database in every function that only reads. The reads come one after another.
    """
    async with db.snapshot() as connection:
        yield SharedSnapshot(connection)
