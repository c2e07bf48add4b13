"""Prometheus metrics: requests by route and status, their duration, the process."""

import time
from collections.abc import Callable, Iterator

from fastapi import APIRouter, Request, Response
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from sqlalchemy.exc import SQLAlchemyError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..db.store import Store
from ..projection import position
from ..recompute import jobs

router = APIRouter(tags=["health"])
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """Middleware. Routes are named by their template, so that ids create no series."""

    def __init__(self, app: ASGIApp, registry: CollectorRegistry) -> None:
        self.app = app
        self.requests = Counter(
            "trainmark_requests_total",
            "Requests by method, route and status",
            ("method", "route", "status"),
            registry=registry,
        )
        self.seconds = Histogram(
            "trainmark_request_seconds",
            "Time until the last byte was handed over, in seconds",
            ("route",),
            buckets=SECONDS,
            registry=registry,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun, status = time.perf_counter(), 500

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, noted)
        finally:
            route = getattr(scope.get("route"), "path", "none")
            method = scope["method"] if scope["method"] in ("GET", "HEAD", "POST") else "other"
            self.requests.labels(method, route, str(status)).inc()
            self.seconds.labels(route).observe(time.perf_counter() - begun)


def registry(store: Callable[[], Store]) -> CollectorRegistry:
    """Metrics of the process, and of the projector and the recomputations in ``store``."""
    made = CollectorRegistry()
    ProcessCollector(registry=made)
    made.register(ProjectionCollector(store))
    return made


class ProjectionCollector(Collector):
    """Reads the projector's position when metrics are scraped; none if the database is down."""

    def __init__(self, store: Callable[[], Store]) -> None:
        self.store = store

    def collect(self) -> Iterator[GaugeMetricFamily]:
        try:
            with self.store().reading() as session:
                lag = position.lag(session)
                waiting, waiting_real = jobs.pending(session), jobs.pending_on_real_data(session)
        except SQLAlchemyError:
            return
        for name, words, value in (
            ("log_entries", "Entries of the log", lag.size),
            ("projection_lag_entries", "Entries that are not projected yet", lag.entries),
            ("recompute_pending", "Jobs on generated data to be recomputed", waiting),
            ("recompute_pending_real", "Jobs on real data to be recomputed", waiting_real),
            (
                "projection_stopped",
                "1 if an entry cannot be projected",
                lag.stopped_reason is not None,
            ),
        ):
            yield GaugeMetricFamily(f"trainmark_{name}", words, float(value))


@router.get(
    "/metrics",
    summary="Figures of this process for Prometheus",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
def get_metrics(request: Request) -> Response:
    return Response(generate_latest(request.app.state.metrics), media_type=CONTENT_TYPE_LATEST)
