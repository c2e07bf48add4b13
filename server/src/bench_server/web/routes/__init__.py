"""Routes: one module a resource, each route a few lines."""

from .. import metrics
from . import (
    cards,
    compare,
    dumps,
    exports,
    hardware,
    health,
    keys,
    leaderboard,
    log,
    moderation,
    pages,
    results,
    studies,
    workloads,
)

# Asked for in this order: first where most requests go.
ROUTERS = (
    results.router,
    workloads.router,
    leaderboard.router,
    compare.router,
    hardware.router,
    studies.router,
    exports.router,
    dumps.router,
    keys.router,
    moderation.router,
    log.router,
    health.router,
    metrics.router,
    cards.router,
    pages.router,
)
