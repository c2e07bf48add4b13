"""HTTP routes: one module per resource, a few lines per route."""

from .. import metrics
from . import (
    cards,
    compare,
    crawlers,
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
)

# Matched in this order: the most requested routes come first.
ROUTERS = (
    results.router,
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
    crawlers.router,
    pages.router,
)
