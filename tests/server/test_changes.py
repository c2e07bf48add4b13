"""Words for changes in a machine's history."""

from datetime import UTC, datetime

import pytest

from bench_protocol.payload.differences import Difference
from bench_server.answers.history import Change
from bench_server.web.changes import in_words

MACOS = {"os": {"name": "macos", "version": "15.5"}}


def change(speed_up: float, low: float, high: float, *changed: Difference) -> Change:
    at = datetime(2026, 9, 1, tzinfo=UTC)
    return Change("r" * 32, "0" * 16, at, speed_up, low, high, changed)


@pytest.mark.parametrize(
    ("speed_up", "low", "high", "kind", "words", "interval"),
    [
        (0.939, 0.93, 0.948, "slower", "6.1 % slower", "95 % CI 5.2 to 7 % slower"),
        (1.1, 1.08, 1.12, "faster", "1.10 times as fast", "95 % CI 1.080 to 1.12"),
        (2.5, 2.4, 2.6, "faster", "2.50 times as fast", "95 % CI 2.40 to 2.60"),
        (0.25, 0.2, 0.3125, "slower", "0.250 times as fast", "95 % CI 0.200 to 0.312"),
    ],
)
def test_amount_and_interval(
    speed_up: float, low: float, high: float, kind: str, words: str, interval: str
) -> None:
    found = in_words(change(speed_up, low, high), MACOS)
    assert (found.kind, found.words, found.interval) == (kind, words, interval)


def test_causes() -> None:
    differences = (
        Difference("machine.os.version", "14.6", "15.5"),
        Difference("environment.packages.tensorflow", "2.18.0", "2.18.1"),
        Difference("machine.gpus.0.driver", None, "560.35"),
        Difference("environment.variables.XLA_FLAGS", "a", None),
    )
    found = in_words(change(0.9, 0.8, 1.0, *differences, *differences, *differences), MACOS)
    assert found.causes[:4] == (
        "macOS 14.6 became 15.5",
        "tensorflow 2.18.0 became 2.18.1",
        "driver of GPU 0 560.35 was added",
        "variables XLA_FLAGS a was removed",
    )
    assert (len(found.causes), found.more) == (8, 4)
