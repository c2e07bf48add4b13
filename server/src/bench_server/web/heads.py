"""Heads of tables: what each column means, and by what it sorts. One table for all pages."""

from typing import NamedTuple


class Head(NamedTuple):
    """A head. ``meaning``: one or two sentences for its popover; ``href``: the part of the method
    that defines it. ``sort``: the parameter of a board that sorts by it, in the useful direction
    (:data:`..answers.parameters.SORT_FIELDS`)."""

    label: str
    meaning: str
    href: str
    sort: str = ""


HEADS: dict[str, Head] = {
    "rank": Head(
        "Rank",
        "The place on the whole board, whatever is searched for. Rows that more owners measured "
        "go first; published figures have no rank.",
        "/methodology#tiers-and-places",
    ),
    "hardware": Head(
        "Hardware",
        "A GPU or CPU in its fastest set-up among those with the best evidence. The chips name the "
        "device, framework and recipe.",
        "/methodology#recipes",
        "hardware",
    ),
    "set-up": Head(
        "Set-up",
        "Device, framework, recipe (how the training loop is written) and batch size of a figure.",
        "/methodology#recipes",
    ),
    "throughput": Head(
        "Samples per second",
        "Training samples in a second: the median over owners, machines, runs and repeats; of an "
        "even number the slower of the two in the middle. Start-up and data loading are not in "
        "it. The whiskers span the repeats.",
        "/methodology#figures-of-hardware",
        "-samples_per_second",
    ),
    "time": Head(
        "Epoch",
        "The time of one pass over the training samples: its full batches times the time of a "
        "batch.",
        "/methodology#figures",
        "epoch_seconds",
    ),
    "energy": Head(
        "Energy of an epoch",
        "What the machine's own meter counts during an epoch: of the GPU alone, of the processor "
        "package or of the whole chip, never of the wall socket. Only equal kinds compare.",
        "/methodology#energy",
        "joules_per_epoch",
    ),
    "mfu": Head(
        "Share of peak (MFU)",
        "Model FLOP utilisation: the FLOP/s of the training over the peak that the vendor states.",
        "/methodology#figures",
        "-mfu",
    ),
    "speed-up": Head(
        "Speed-up",
        "How many times as fast as the baseline, on the same kind of data and timing. Below it is "
        "the 95 % interval, where both sides have three independent values.",
        "/methodology#verdicts",
        "-speed_up",
    ),
    "spread": Head(
        "Spread",
        "The widest difference behind the figure, as a share of its time. Of blocks it is the "
        "interquartile range; of repeats, runs or machines too, or the full range of fewer than "
        "eight. It is no confidence interval. Above 20 % the row is marked unsteady.",
        "/methodology#spread",
        "spread",
    ),
    "evidence": Head(
        "Evidence",
        "How many runs on how many machines count, and the trust level. 1: signed. 2: made for a "
        "challenge of this server. 3: its training was checked. 4: other owners reproduced it.",
        "/methodology#trust-levels",
        "-trust_level",
    ),
    "workload": Head(
        "Workload and set-up",
        "What is trained, and how: the model with its data, then framework, recipe and batch size.",
        "/methodology#the-same-training-everywhere",
    ),
    "baseline": Head(
        "The baseline",
        "The speed of the thing that the others are compared with: the first one chosen.",
        "/methodology#verdicts",
    ),
    "compared": Head(
        "What is compared",
        "How many times as fast as the baseline it is, then its speed, then the 95 % interval of "
        "the speed-up or the reason that there is none.",
        "/methodology#verdicts",
    ),
}
