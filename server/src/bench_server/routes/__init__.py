"""Routes: one module a resource, each route a few lines."""

from . import acts, compare, health, keys, leaderboard, log, pages, results, workloads

ROUTERS = (
    workloads.router,
    leaderboard.router,
    compare.router,
    results.router,
    keys.router,
    acts.router,
    log.router,
    health.router,
    pages.router,
)
