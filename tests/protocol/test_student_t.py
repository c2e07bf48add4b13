"""Quantiles and tails of Student's t compared with SciPy."""

import math

import pytest
from scipy.special import stdtr, stdtrit

from bench_protocol.statistics import student_t

FREEDOM = (1, 1.0001, 1.3, 2, 2.5, 3, 4, 5, 7.3, 10, 20, 50, 99.5, 200, 299.9, 300, 1000, 1e4, 1e8)
CONFIDENCE = (0.001, 0.01, 0.1, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999, 0.9999)


@pytest.mark.parametrize("freedom", FREEDOM)
def test_as_scipy(freedom: float) -> None:
    for confidence in CONFIDENCE:
        expected = float(stdtrit(freedom, (1 + confidence) / 2))
        assert math.isclose(student_t.quantile(freedom, confidence), expected, rel_tol=1e-10)


@pytest.mark.parametrize("freedom", FREEDOM[:-1])
def test_tails_as_scipy(freedom: float) -> None:
    for t in (0, 1e-9, 0.1, 0.7, 1, 2, 3.3, 10, 1e3, 1e9):
        expected = 2 * float(stdtr(freedom, -t))
        assert math.isclose(student_t.tails(freedom, t), expected, rel_tol=1e-7, abs_tol=1e-8)
