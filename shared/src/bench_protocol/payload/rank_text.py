"""A machine in words: beside those of its kind, beside its fastest set-up, and the rank of its
hardware. The page of a machine and the end of a run say the same."""

from collections.abc import Mapping
from typing import Any

from ..base import format as people

# A machine is typical up to this ratio of its speed and the median of its kind, either way.
TYPICAL = 1.05


def kind_words(name: str, place: Mapping[str, Any]) -> str:
    """``This Apple M2 Max is typical: 1.02 times the median of 5 like it (tensorflow tuned,
    mnist-cnn)``, from a place of the API; of the only one, that nothing like it was measured."""
    setup = f"({place['framework']} {place['recipe']}, {place['workload']})"
    ratio, machines = place["of_median"], place["machines"]
    if machines < 2:
        only = "the only machine here" if place.get("alone") else "the only one of its kind here"
        return f"This {name} is {only} {setup}"
    median = f"the median of {machines} like it {setup}"
    if 1 / TYPICAL <= ratio <= TYPICAL:
        return f"This {name} is typical: {people.times(ratio)} times {median}"
    if 0.5 < ratio < 2:
        more = "faster" if ratio > 1 else "slower"
        return f"This {name} is {100 * abs(ratio - 1):.0f} % {more} than {median}"
    return f"This {name} trains {people.times(ratio)} times as fast as {median}"


def faster_setup_words(place: Mapping[str, Any]) -> str:
    """``MLX tuned on the same chip is 1.60 times as fast (1.45 to 1.77)``; empty where no faster
    set-up is known."""
    faster = place["faster"]
    if faster is None:
        return ""
    same = faster["hardware"] == place["hardware"]
    where = "the same chip" if same else f"the {faster['hardware']}"
    setup = f"{people.framework(faster['framework'])} {faster['recipe']} on {where}"
    low, high = faster["speed_up_low"], faster["speed_up_high"]
    between = f" ({people.interval(low, high, people.times)})" if low and high else ""
    return f"{setup} is {people.times(faster['speed_up'])} times as fast{between}"


def rank_words(place: Mapping[str, Any]) -> str:
    """``15th of 47 on mnist-cnn``, from a place of the API that has a rank; without a rank where
    no other machine has a figure."""
    if place.get("alone"):
        return f"in the only machine measured on {place['workload']} here"
    return f"{people.ordinal(place['rank'])} of {place['ranked']} on {place['workload']}"


def beside_words(place: Mapping[str, Any]) -> str:
    """``; this machine is 1.12 times as fast as the median one``; of a machine that was measured in
    a slower set-up than the ranked one, ``; this machine, with mlx naive, is 0.312 times as fast as
    the ranked set-up``. Empty where nothing is compared."""
    if not place.get("in_ranked_setup", True):
        ratio = place["of_ranked"]
        if not ratio:
            return "; this machine was not measured in the way that is ranked"
        own = f"with {place['framework']} {place['recipe']}"
        return f"; this machine, {own}, {people.faster_than(ratio)} the ranked set-up"
    if place["machines"] > 1:
        return f"; this machine {people.faster_than(place['of_median'])} the median one"
    return ""
