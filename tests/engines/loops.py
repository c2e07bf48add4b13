"""Which loops a test trains: every framework with every recipe."""

from collections.abc import Iterable

import pytest

from bench_agent import engines

PAIRS = [
    (framework, recipe)
    for framework in engines.names()
    for recipe in engines.engine_named(framework).recipes
]
every_framework = pytest.mark.parametrize("framework", engines.names())
every_pair = pytest.mark.parametrize(("framework", "recipe"), PAIRS)


def every_pair_with(names: Iterable[str], *, further_long: bool = False) -> pytest.MarkDecorator:
    """Every pair with the first workload. With each further one every framework trains one recipe,
    ``naive`` and ``tuned`` in turns; the other recipes are left to the long tests. With
    ``further_long`` so is every pair, where the first workload has what the test is about."""
    return pytest.mark.parametrize(
        ("name", "framework", "recipe"),
        [
            pytest.param(
                *(name, framework, recipe),
                marks=[pytest.mark.long]
                if number and (further_long or recipe != ("tuned", "naive")[number % 2])
                else [],
            )
            for number, name in enumerate(names)
            for framework, recipe in PAIRS
        ],
    )
