"""Which loops a test trains.

A rule of the loop itself (order, counting, synchronisation, restarts) is tested with every recipe
of every framework. A rule of the model (layers, precision) is tested without ``pipeline``, whose
model and arithmetic are those of ``naive``.
"""

from collections.abc import Iterable

import pytest

from bench_agent import engines

PAIRS = [
    (framework, recipe)
    for framework in engines.names()
    for recipe in engines.engine_named(framework).recipes
]
MODELS = [(framework, recipe) for framework, recipe in PAIRS if recipe != "pipeline"]
every_framework = pytest.mark.parametrize("framework", engines.names())
every_pair = pytest.mark.parametrize(("framework", "recipe"), PAIRS)
every_model = pytest.mark.parametrize(("framework", "recipe"), MODELS)


def every_pair_with(
    names: Iterable[str], pairs: Iterable[tuple[str, str]] = PAIRS
) -> pytest.MarkDecorator:
    """Further workloads have one recipe a framework, ``naive`` and ``tuned`` in turns."""
    return pytest.mark.parametrize(
        ("name", "framework", "recipe"),
        [
            pytest.param(
                *(name, framework, recipe),
                marks=[pytest.mark.long]
                if number and recipe != ("tuned", "naive")[number % 2]
                else [],
            )
            for number, name in enumerate(names)
            for framework, recipe in pairs
        ],
    )
