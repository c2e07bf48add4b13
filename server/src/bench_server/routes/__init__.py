"""Routes: one module a resource, each route a few lines."""

from .. import metrics
from . import (
    acts,
    catalog,
    compare,
    dumps,
    exports,
    health,
    keys,
    leaderboard,
    log,
    pages,
    results,
    sharing,
    studies,
    workloads,
)

# Asked for in this order: first where most requests go.
ROUTERS = (
    results.router,
    workloads.router,
    leaderboard.router,
    compare.router,
    catalog.router,
    studies.router,
    exports.router,
    dumps.router,
    keys.router,
    acts.router,
    log.router,
    health.router,
    metrics.router,
    sharing.router,
    pages.router,
)
