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
    "in_ranked_setup": False,
    "of_ranked": 0.5,
    "ranked_framework": "mlx",
    "ranked_recipe": "naive",
}
LIKE_IT = "the median of 5 like it (tensorflow tuned, mnist-cnn)"


@pytest.mark.parametrize(
    ("ratio", "words"),
    [
        (1.02, f"is typical: 1.02 times {LIKE_IT}"),
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
    ("fields", "words"),
    [
        ({}, "MLX naive on the same chip is 2.00 times as fast"),
        ({"in_ranked_setup": True}, ""),
        ({"of_ranked": None}, ""),
        ({"of_ranked": 1.1}, ""),
    ],
)
def test_a_faster_set_up_of_the_same_hardware(fields: dict[str, Any], words: str) -> None:
    assert faster_setup_words(PLACE | fields) == words
