"""Figures of hardware, computed from repeats without a database."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from bench_server.ranking.figures import Figure
from bench_server.ranking.medians import combined, of_machines
from bench_server.ranking.owners import NEW, OwnerFacts


def figures(
    repeats: Iterable[Figure],
    kinds: Mapping[str, int] = MappingProxyType({}),
    areas: Mapping[str, int] = MappingProxyType({}),
) -> list[Figure]:
    """One figure for each hardware, workload and set-up, fastest first; other owners are new."""
    labels = kinds.keys() | areas.keys()
    facts = {one: OwnerFacts(kinds.get(one, NEW), areas.get(one)) for one in labels}
    made = of_machines(combined(combined(repeats, "run"), "machine"), facts)
    return sorted(made, key=lambda f: (f.ns_per_sample, f.hardware_slug, f.setup))
