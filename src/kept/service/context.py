"""What verbs stand on: the store, and whoever can reach the origins. ``runtime`` builds it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # a verb loads what it needs
    from kept.crawl.lifecycle import LifecycleRules
    from kept.crawl.preview import PagePreview, ScopePreview
    from kept.maintenance.next_run import SchedulePolicy
    from kept.maintenance.reaper import ReapReport
    from kept.model.source import Source, SourceKind, SourceSettings
    from kept.origins.origin import Origin
    from kept.search.rerank import Reranking
    from kept.search.vector_search import VectorSearchOptions
    from kept.secrets import SecretStore
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

    async def reap_jobs(self) -> "ReapReport":
        """Requeue the jobs of dead workers. A crawl that is requested afterwards joins the requeued job."""

    def vector_search(self) -> "VectorSearchOptions | None":
        """What a search goes by; None: words alone."""

    def reranking(self) -> "Reranking | None":
        """Who orders the first hits of a search anew; None: nobody."""

    def why_excluded(self, source: "Source", url: str) -> str | None:
        """Why a URL is none of a source, by its settings; None: it could be."""

    def make_origin(
        self, kind: "SourceKind", root: str, settings: "SourceSettings", before: "SourceSettings | None" = None
    ) -> "Origin":
        """Build an origin from the settings of a request, and check them. Connects to nothing; close it afterwards.

        Raises InvalidInput where root or settings are not valid, or refer to a stored secret that ``before``, the
        settings they replace, did not refer to.
        """

    async def preview_scope(self, kind: "SourceKind", root: str, settings: "SourceSettings") -> "ScopePreview":
        """What a source would begin with. Nothing is kept."""

    async def preview_page(self, kind: "SourceKind", url: str, settings: "SourceSettings") -> "PagePreview":
        """One page as a source of its own would keep it. Nothing is kept."""


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
