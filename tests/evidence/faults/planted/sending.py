"""Faults of what is sent: the result is changed before it is signed."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.payload.result import Measured, Measurement, Result, Trace
from bench_protocol.payload.witness import Witness

from ..fault import SENDERS_CLOCK, Fault, Setup
from .optimiser import JAX, MLX, TF, TORCH

CUDA = replace(TORCH, device="cuda")
Sent = Callable[[Result], Result]


def measurement(change: Callable[[Measurement], dict[str, Any]]) -> Sent:
    """The measurement with other fields, in an outcome that says measured."""

    def sent(result: Result) -> Result:
        if result.measurement is None:
            return result
        changed = result.measurement.model_copy(update=change(result.measurement))
        return result.model_copy(update={"outcome": Measured(measurement=changed)})

    return sent


def traces(optimizer: str, factor: float) -> Sent:
    """Losses of the second step and later ones, off by a factor."""

    def off(trace: Trace) -> Trace:
        if trace.optimizer != optimizer or trace.steps:
            return trace
        first, *later = trace.losses
        moved = (first, *(loss and loss * factor for loss in later))
        return trace.model_copy(update={"losses": moved})

    return measurement(lambda made: {"traces": tuple(off(trace) for trace in made.traces)})


def witness(**fields: Any) -> Sent:
    def change(made: Measurement) -> dict[str, Any]:
        told = made.witness
        return {"witness": told and told.model_copy(update=fields)}

    return measurement(change)


def moves_too_far(made: Measurement) -> dict[str, Any]:
    """The second reading of a session with a wrong learning rate, beside the losses of a right one:
    under Adam a movement grows with the rate."""
    told = made.witness
    if told is None or told.rewound is None:
        return {}
    moved = tuple(norm and 1.01 * norm for norm in told.rewound.movements)
    again = told.rewound.model_copy(update={"movements": moved})
    return {"witness": told.model_copy(update={"rewound": again})}


def one_reading(told: Witness) -> Witness:
    """The first step's loss alone, in both readings."""
    again = told.rewound and told.rewound.model_copy(update={"losses": told.rewound.losses[:1]})
    first = {"steps": told.steps[:1], "losses": told.losses[:1], "rewound": again}
    return told.model_copy(update=first)


def smaller_window(result: Result) -> Result:
    """Blocks and window of half the time: parent and worker lie alike."""

    def change(made: Measurement) -> dict[str, Any]:
        halved = tuple(duration // 2 for duration in made.blocks.durations_ns)
        window = made.window
        if window is not None:
            began_ns = window.started_ns
            received_ns = tuple((began_ns + at_ns) // 2 for at_ns in window.received_ns)
            window = window.model_copy(update={"received_ns": received_ns})
        return {
            "blocks": made.blocks.model_copy(update={"durations_ns": halved}),
            "window": window,
        }

    return measurement(change)(result)


def cell(change: Callable[[Any], dict[str, Any]]) -> Sent:
    return lambda result: result.model_copy(
        update={"cell": result.cell.model_copy(update=change(result.cell))}
    )


def as_workload(name: str) -> Sent:
    workload = workload_named(name)
    return cell(lambda _: {"workload": name, "workload_digest": workload.digest})


LIMITS = "within the derived limits of a GPU that nobody measured; measured ones would tell"
FAULTS = tuple(
    Fault(name, words, where, setup, sent=sent, unseen=unseen)
    for name, words, where, setup, sent, unseen in (
        ("G1", "own optimiser's losses off by 77 %", "traces", CUDA, traces("workload", 1.77), ""),
        ("G2", "SGD's losses off by 0.9 %", "traces", CUDA, traces("sgd", 1.009), LIMITS),
        ("N37", "witness left out", "run/repeat.py", TORCH,
         measurement(lambda made: {"witness": None}), ""),
        ("N38", "window left out", "run/repeat.py", JAX,
         measurement(lambda made: {"window": None}), ""),
        ("N39", "traces left out", "run/repeat.py", MLX,
         measurement(lambda made: {"traces": ()}), ""),
        ("N40", "long trace left out", "run/repeat.py", TF,
         measurement(lambda made: {"traces": made.traces[:2]}), ""),
        ("N41", "a witness of one reading in place of three", "run/repeat.py", TORCH,
         measurement(lambda made: {"witness": made.witness and one_reading(made.witness)}), ""),
        ("N42", "a witness without movements", "run/repeat.py", MLX, witness(movements=()), ""),
        ("N43", "batch 32 trained, batch 64 stated", "run/repeat.py", JAX,
         cell(lambda made: {"batch_size": 2 * made.batch_size}), ""),
        ("N44", "mnist-dense trained, fashion-mlp stated", "run/repeat.py", TF,
         as_workload("fashion-mlp"), ""),
        ("N45", "bfloat16 trained, float32 stated", "run/repeat.py",
         Setup("mnist-dense", "torch", precision="mixed_bfloat16"),
         cell(lambda _: {"precision": "float32"}), ""),
        ("N46", "a witness without masks", "run/repeat.py", Setup("fashion-mlp", "jax"),
         witness(masks=()), ""),
        ("N47", "blocks and window halved alike", "run/repeat.py", TORCH, smaller_window,
         SENDERS_CLOCK),
        ("N48", "learning rate 1 % too high, losses copied", "run/repeat.py", TORCH,
         measurement(moves_too_far), ""),
    )
)  # fmt: skip
