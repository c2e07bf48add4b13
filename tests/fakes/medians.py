"""Figures of hardware, computed from repeats without a database."""

from collections.abc import Iterable, Mapping

from bench_server.ranking.figures import Figure
from bench_server.ranking.medians import ALL_NEW, combined, of_machines


def figures(repeats: Iterable[Figure], kinds: Mapping[str, int] = ALL_NEW) -> list[Figure]:
    """One figure for each hardware, workload and set-up, fastest first."""
    made = of_machines(combined(combined(repeats, "run"), "machine"), kinds)
    return sorted(made, key=lambda f: (f.ns_per_sample, f.hardware_slug, f.setup))
