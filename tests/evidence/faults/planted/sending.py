"""Faults of what is sent: the result is changed before it is signed."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.result import Measured, Measurement, Result

from ..fault import Fault, Setup
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


def reading(number: int, **factors: float) -> Sent:
    """One reading's figures, off by factors."""

    def change(made: Measurement) -> dict[str, Any]:
        told = made.witness
        if told is None:
            return {}
        one, readings = told.readings[number], list(told.readings)
        loss = one.loss and one.loss * factors.get("loss", 1.0)
        moved = tuple(norm and norm * factors.get("movement", 1.0) for norm in one.movements)
        readings[number] = one.model_copy(update={"loss": loss, "movements": moved})
        return {"witness": told.model_copy(update={"readings": tuple(readings)})}

    return measurement(change)


def witness(**fields: Any) -> Sent:
    def change(made: Measurement) -> dict[str, Any]:
        told = made.witness
        return {"witness": told and told.model_copy(update=fields)}

    return measurement(change)


def fewer_readings(made: Measurement) -> dict[str, Any]:
    told = made.witness
    return {"witness": told and told.model_copy(update={"readings": told.readings[:1]})}


def without_masks(made: Measurement) -> dict[str, Any]:
    told = made.witness
    if told is None:
        return {}
    readings = (*told.readings[:-2], told.readings[-1], told.readings[-1])
    return {"witness": told.model_copy(update={"readings": readings})}


def cell(change: Callable[[Any], dict[str, Any]]) -> Sent:
    return lambda result: result.model_copy(
        update={"cell": result.cell.model_copy(update=change(result.cell))}
    )


def workload_of(setup: Setup) -> Workload:
    return workload_named(setup.workload)


def as_workload(name: str) -> Sent:
    workload = workload_named(name)
    return cell(lambda _: {"workload": name, "workload_digest": workload.digest})


INVENTED = ("G2", "N46", "N48")
FAULTS = tuple(
    Fault(name, words, where, setup, sent=sent, slip=name not in INVENTED)
    for name, words, where, setup, sent in (
        ("G2", "a short reading's loss off by 0.9 %", "readings", CUDA, reading(1, loss=1.009)),
        ("N37", "witness left out", "run/repeat.py", TORCH,
         measurement(lambda made: {"witness": None})),
        ("N38", "window left out", "run/repeat.py", JAX,
         measurement(lambda made: {"window": None})),
        ("N39", "test loss left out", "run/repeat.py", MLX,
         measurement(lambda made: {"evaluation": None})),
        ("N41", "a witness of one reading in place of three", "run/repeat.py", TORCH,
         measurement(fewer_readings)),
        ("N42", "a witness without movements", "run/repeat.py", MLX, witness(movements=())),
        ("N43", "batch 32 trained, batch 64 stated", "run/repeat.py", JAX,
         cell(lambda made: {"batch_size": 2 * made.batch_size})),
        ("N44", "mnist-dense trained, fashion-mlp stated", "run/repeat.py", TF,
         as_workload("fashion-mlp")),
        ("N45", "bfloat16 trained, float32 stated", "run/repeat.py",
         Setup("mnist-dense", "torch", precision="mixed_bfloat16"),
         cell(lambda _: {"precision": "float32"})),
        ("N46", "a reading with dropout copied from one without", "run/repeat.py",
         Setup("fashion-mlp", "jax"), measurement(without_masks)),
        ("N48", "learning rate 3 % too high, losses copied", "run/repeat.py", TORCH,
         reading(0, movement=1.03)),
    )
)  # fmt: skip
