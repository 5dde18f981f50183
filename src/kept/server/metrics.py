"""Metrics for Prometheus: requests and their duration, jobs, documents, sections."""

import time

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kept.model.job import JobStatus
from kept.service import health
from kept.service.context import Services


class Metrics:
    """The metrics of one server, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.requests = Counter("kept_requests", "Requests answered.", ["method", "route", "status"], registry=registry)
        self.request_seconds = Histogram(
            "kept_request_seconds", "Until the response began.", ["route"], registry=registry
        )
        self.jobs = Gauge("kept_jobs", "Crawl jobs.", ["status"], registry=registry)
        self.totals = {
            name: Gauge(f"kept_{name}", f"Number of {name}.", registry=registry)
            for name in ("sources", "documents", "sections")
        }

    async def render(self, services: Services) -> Response:
        by_status, sizes = await health.count_jobs_and_documents(services.db)
        for status in JobStatus:
            self.jobs.labels(status).set(by_status.get(status, 0))
        for name, gauge in self.totals.items():
            gauge.set(sizes[name])
        return Response(generate_latest(self.registry), media_type=CONTENT_TYPE_LATEST)


class MetricsMiddleware:
    """Counts requests by route, not by path: the number of paths has no bound."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        started, status = time.perf_counter(), 500

        async def send_and_measure(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._metrics.request_seconds.labels(_route(scope)).observe(time.perf_counter() - started)
            await send(message)

        try:
            return await self._app(scope, receive, send_and_measure)
        finally:
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self._metrics.requests.labels(method, _route(scope), status).inc()


_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def _route(scope: Scope) -> str:
    if scope["path"].startswith("/mcp"):
        return "/mcp"
    route = str(getattr(scope.get("route"), "path", "other"))
    return f"/api/v1{route}" if scope["path"].startswith("/api/v1/") and route.startswith("/") else route
