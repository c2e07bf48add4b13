"""The trust levels in one table: what each needs, and what a cheater could still do at it.

The page ``/trust`` and docs/methodology.md show this table. The words of the assurance are those of
in-toto's proposal of an ``eval-result`` predicate (in-toto/attestation, pull request 575).
"""

from dataclasses import dataclass
from typing import Literal

from ..catalogue.matrix import DeviceKind, Precision
from ..training.witness_limits import can_conform, is_measured

Assurance = Literal["self_attested", "third_party", "reproduced"]
ASSURANCE_WORDS: dict[Assurance, str] = {
    "self_attested": "self-attested",
    "third_party": "third party",
    "reproduced": "reproduced",
}
DEVICES = {"cuda": "CUDA", "metal": "Metal", "cpu": "CPU"}


@dataclass(frozen=True)
class TrustLevel:
    """One level. ``assurance``: whose word it is; None for a figure that nobody signed."""

    number: int
    name: str
    assurance: Assurance | None
    needs: str
    still: str

    @property
    def words(self) -> str:
        return "unsigned" if self.assurance is None else ASSURANCE_WORDS[self.assurance]


LEVELS = (
    TrustLevel(
        0,
        "published",
        None,
        "Others published it. It is copied with its source, unsigned.",
        "Publish any figure. It gets no rank here.",
    ),
    TrustLevel(
        1,
        "signed",
        "self_attested",
        "An enrolled key signed it, and the log holds it. Not ranked.",
        "Send any figure, measured at any time or never.",
    ),
    TrustLevel(
        2,
        "fresh",
        "self_attested",
        "It was also measured under a fresh challenge of the server, and its clocks agree.",
        "Invent figures that contradict neither each other nor the bound of the device, with a "
        "program that waits as long as it claims to measure.",
    ),
    TrustLevel(
        3,
        "conformant",
        "third_party",
        "No check failed, and the server has recomputed the timed session's readings from the "
        "challenge's nonce; without the data, it applies a wide range.",
        "Train what is recomputed, and report other times or other hardware.",
    ),
    TrustLevel(
        4,
        "reproduced",
        "reproduced",
        "It also agrees with two or more other confirmed owners of this set-up and hardware, as "
        "far as owners differ.",
        "Exceed the truth as far as honest owners differ, at most 11 %; agree on a figure with "
        "another confirmed owner, where few others measure.",
    ),
)
HIGHEST = LEVELS[-1].number
# The server has recomputed the readings of results at this level and above.
THIRD_PARTY = 3
WIDE_RANGE = "with the losses of its session checked by a wide range, not recomputed"
DERIVED = "with derived limits"


def not_checkable(device: DeviceKind, precision: Precision) -> str | None:
    """Why no result of this kind of device and precision can have level 3 yet, such as ``not yet
    checkable in tf32 on CUDA``; None where it can."""
    if can_conform(device, precision):
        return None
    return f"not yet checkable in {precision} on {DEVICES[device]}"


def words(level: int, device: DeviceKind, precision: Precision, wide_range: bool = False) -> str:
    """A level as pages write it: ``level 2 of 4: level 3 is not yet checkable in tf32 on CUDA``."""
    if level >= THIRD_PARTY:
        how = [WIDE_RANGE] if wide_range else []
        how += [] if is_measured(device, precision) else [DERIVED]
        return ", ".join([f"level {level} of {HIGHEST}", *how])
    why = not_checkable(device, precision) if level == 2 else None
    return f"level {level} of {HIGHEST}{f': level 3 is {why}' if why else ''}"
