"""The rank of a machine in words: its hardware's rank, and the machine beside the figure that has
this rank. The page of a machine and the end of a run say the same."""

from collections.abc import Mapping
from typing import Any

from ..base import format as people


def rank_words(place: Mapping[str, Any]) -> str:
    """``15th of 47 on mnist-cnn``, from a place of the API that has a rank."""
    return f"{people.ordinal(place['rank'])} of {place['ranked']} on {place['workload']}"


def beside_words(place: Mapping[str, Any]) -> str:
    """``; this machine is 1.02 times as fast as the median one``; of a machine that was measured in
    a slower set-up than the ranked one, ``; this machine, with mlx naive, takes 3.20 times as long
    as the ranked set-up``. Empty where nothing is compared."""
    if not place.get("in_ranked_setup", True):
        ratio = place["of_ranked"]
        if not ratio:
            return "; this machine was not measured in the way that is ranked"
        own = f"with {place['framework']} {place['recipe']}"
        return f"; this machine, {own}, {people.faster_than(ratio)} the ranked set-up"
    if place["machines"] > 1 and place["of_hardware"]:
        return f"; this machine {people.faster_than(place['of_hardware'])} the median one"
    return ""
