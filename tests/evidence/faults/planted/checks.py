"""A fault for each check that no other one exercises."""

from typing import Any

from bench_protocol.catalogue.matrix import Device
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.readings import Energy
from bench_protocol.payload.result import Measurement, Result

from ..fault import Fault
from .keyed import DENSE
from .optimiser import rate
from .sending import CUDA, Sent, cell, measurement, workload_of


def says_another_device(session: Any) -> None:
    session.placement = lambda: "cuda:0"


def long_import(made: Measurement) -> dict[str, Any]:
    return {"startup": made.startup.model_copy(update={"import_ns": 10**13})}


def instant_block(made: Measurement) -> dict[str, Any]:
    durations_ns = (1, *made.blocks.durations_ns[1:])
    return {"blocks": made.blocks.model_copy(update={"durations_ns": durations_ns})}


def untrained_accuracy(workload: Workload) -> Sent:
    def change(made: Measurement) -> dict[str, Any]:
        told = made.evaluation
        guessed = {"epochs": workload.epochs, "accuracy": 0.1}
        return {"evaluation": told and told.model_copy(update=guessed)}

    return measurement(change)


def powerful(result: Result) -> Result:
    """A card with a limit of 100 W says 1 kW."""
    gpus = tuple(gpu.model_copy(update={"power_limit_watts": 100.0}) for gpu in result.machine.gpus)
    machine = result.machine.model_copy(update={"gpus": gpus})
    energy = Energy(source="nvml", scope="gpu", energy_mj=10**7, window_ns=10**10)
    changed = measurement(lambda _: {"energy": energy})(result)
    return changed.model_copy(update={"machine": machine})


def signed_late(result: Result) -> Result:
    """The monotonic clock ran on by a minute, the wall clock did not."""
    clocks = result.clocks.model_copy(update={"signed_ns": result.clocks.signed_ns + 60 * 10**9})
    return result.model_copy(update={"clocks": clocks})


TORCH, JAX, MLX, TF = (DENSE[name] for name in ("torch", "jax", "mlx", "tensorflow"))
POWER = "mean power is a doubt: sensors err"
FAULTS = (
    Fault("P1", "learning rate of 1e20: finite_loss", "engines/torch/optimizer.py", TORCH,
          rate(1e23)),
    Fault("P2", "trained on another device: placement", "engines/mlx/sessions.py", MLX,
          lambda here: here.sessions(says_another_device)),
    Fault("P3", "a device that the machine does not list: device_listed", "run/repeat.py", JAX,
          sent=cell(lambda _: {"device": Device(kind="cuda")})),
    Fault("P4", "a batch larger than the data: batch_fits", "run/repeat.py", TORCH,
          sent=cell(lambda _: {"batch_size": 100_000})),
    Fault("P5", "an import of hours: times_fit", "run/repeat.py", JAX,
          sent=measurement(long_import)),
    Fault("P6", "a block of a nanosecond: possible_speed", "run/repeat.py", TF,
          sent=measurement(instant_block), slip=False),
    Fault("P7", "accuracy of guessing after all epochs: accuracy", "run/repeat.py", MLX,
          sent=untrained_accuracy(workload_of(MLX))),
    Fault("P8", "1 kW of a card limited to 100 W: energy", "run/timed_part.py", CUDA,
          sent=powerful, slip=False, unseen=POWER),
    Fault("P9", "another data set's digest: data_digest", "worker/repeat.py", TORCH,
          sent=measurement(lambda _: {"data_digest": "0" * 64})),
    Fault("P10", "a monotonic clock a minute ahead: clocks", "run/repeat.py", JAX,
          sent=signed_late),
)  # fmt: skip
