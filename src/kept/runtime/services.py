"""The context that service functions receive, built from the settings and an open database."""

from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from kept.model.source import Authority, Source, SourceKind, SourceSettings
from kept.runtime import origin_factory, preview
from kept.runtime.models import SearchModels
from kept.settings import Settings
from kept.store.database import Database

if TYPE_CHECKING:  # heavy: a search needs none of them
    from kept.crawl.lifecycle import LifecycleRules
    from kept.crawl.preview import PagePreview, ScopePreview
    from kept.maintenance.gc import Retention
    from kept.maintenance.next_run import SchedulePolicy
    from kept.maintenance.reaper import Reaper, ReapReport
    from kept.origins.origin import Origin
    from kept.search.rerank import Reranking
    from kept.search.vector_search import VectorSearchOptions
    from kept.secrets import SecretStore
    from kept.service.previews import PreviewLimits


class AppServices:
    """Implements ``service.context.Services``. Parts are loaded on first use: ``kept search`` needs few of them."""

    def __init__(self, settings: Settings, db: Database) -> None:
        self.settings = settings
        self.db = db
        self.models = SearchModels(settings, lambda reference: self.secrets.look_up(reference))

    @cached_property
    def secrets(self) -> "SecretStore":
        from kept.secrets import SecretStore

        return SecretStore(self.settings.secrets_file, self.settings.environment)

    @cached_property
    def lifecycle_rules(self) -> "LifecycleRules":
        from kept.crawl.lifecycle import LifecycleRules

        crawl = self.settings.crawl
        return LifecycleRules(
            grace_crawls=crawl.grace_crawls,
            grace_period=timedelta(days=crawl.grace_days),
            brake_share=crawl.brake_percent / 100,
            brake_documents=crawl.brake_documents,
        )

    @cached_property
    def schedule_policy(self) -> "SchedulePolicy":
        from kept.crawl.change_rate import RefreshBounds
        from kept.maintenance.next_run import SchedulePolicy

        schedule = self.settings.schedule
        bounds = RefreshBounds(
            shortest=timedelta(hours=schedule.shortest_hours), longest=timedelta(days=schedule.longest_days)
        )
        return SchedulePolicy(bounds=bounds, full_every=schedule.full_every)

    @cached_property
    def retention(self) -> "Retention":
        from kept.maintenance.gc import Retention

        history = self.settings.history
        return Retention(generations=history.generations, younger_than=timedelta(days=history.days), jobs=history.jobs)

    @cached_property
    def preview_limits(self) -> "PreviewLimits":
        from kept.service.previews import PreviewLimits

        return PreviewLimits()

    @cached_property
    def _reaper(self) -> "Reaper":
        from kept.maintenance.reaper import Reaper

        return Reaper(timedelta(seconds=self.settings.work.silent_seconds))

    async def reap_jobs(self) -> "ReapReport":
        """Requeue the jobs of dead workers. A crawl that is requested afterwards joins the requeued job."""
        return await self._reaper.reap(self.db)

    def vector_search(self) -> "VectorSearchOptions | None":
        """Return how searches use vectors, or None when they are purely lexical."""
        return self.models.vector_search()

    def reranking(self) -> "Reranking | None":
        """Return the reranker for one search, or None when none is configured."""
        return self.models.reranking()

    def why_excluded(self, source: Source, url: str) -> str | None:
        origin = origin_factory.make_origin(source.kind, source.root, source.settings, self.settings, source.authority)
        return origin.why_excluded(url)

    def make_origin(
        self,
        kind: SourceKind,
        root: str,
        settings: SourceSettings,
        authority: Authority,
        before: SourceSettings | None = None,
    ) -> "Origin":
        return origin_factory.make_checked_origin(kind, root, settings, self.settings, authority, before=before)

    async def preview_scope(
        self, kind: SourceKind, root: str, settings: SourceSettings, authority: Authority
    ) -> "ScopePreview":
        return await preview.preview_scope(self.settings, kind, root, settings, authority)

    async def preview_page(
        self, kind: SourceKind, url: str, settings: SourceSettings, authority: Authority
    ) -> "PagePreview":
        return await preview.preview_page(self.settings, kind, url, settings, authority)
