"""A machine in words."""

from typing import Any

import pytest

from bench_protocol.payload.rank_text import faster_setup_words, kind_words

PLACE: dict[str, Any] = {
    "workload": "mnist-cnn",
    "framework": "tensorflow",
    "recipe": "tuned",
    "machines": 5,
    "of_median": 1.0,
    "hardware": "Apple M2 Max (12-core CPU)",
}
FASTER = {
    "hardware": "Apple M2 Max (12-core CPU)",
    "framework": "mlx",
    "recipe": "naive",
    "speed_up": 1.6,
    "speed_up_low": 1.451,
    "speed_up_high": 1.768,
}
TIMES = "is 1.60 times as fast (1.45 to 1.77)"
GPU = {"hardware": "Apple M2 Max (30-core GPU)"}
LIKE_IT = "the median of 5 like it (tensorflow tuned, mnist-cnn)"


@pytest.mark.parametrize(
    ("ratio", "words"),
    [
        (1.02, f"is typical: 1.020 times {LIKE_IT}"),
        (0.96, f"is typical: 0.960 times {LIKE_IT}"),
        (0.88, f"is 12 % slower than {LIKE_IT}"),
        (1.12, f"is 12 % faster than {LIKE_IT}"),
        (3.0, f"trains 3.00 times as fast as {LIKE_IT}"),
        (0.25, f"trains 0.250 times as fast as {LIKE_IT}"),
    ],
)
def test_a_machine_beside_its_kind(ratio: float, words: str) -> None:
    assert kind_words("M2 Max", PLACE | {"of_median": ratio}) == f"This M2 Max {words}"


def test_the_only_machine_of_its_kind_is_not_called_typical() -> None:
    assert "only one of its kind" in kind_words("M2 Max", PLACE | {"machines": 1})


@pytest.mark.parametrize(
    ("faster", "words"),
    [
        (FASTER, f"MLX naive on the same chip {TIMES}"),
        (FASTER | GPU, f"MLX naive on the {GPU['hardware']} {TIMES}"),
        (None, ""),
    ],
)
def test_a_faster_set_up_of_the_same_hardware(faster: dict[str, Any] | None, words: str) -> None:
    assert faster_setup_words(PLACE | {"faster": faster}) == words
