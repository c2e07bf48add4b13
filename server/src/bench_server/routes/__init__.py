"""Routes: one module a resource, each route a few lines."""

from . import compare, health, keys, leaderboard, pages, results, workloads

ROUTERS = (
    workloads.router,
    leaderboard.router,
    compare.router,
    results.router,
    keys.router,
    health.router,
    pages.router,
)
