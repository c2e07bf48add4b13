"""Invented measurements of a machine of the fleet."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.matrix import Cell, Device
from bench_protocol.payload.machine import Environment, Machine
from bench_protocol.payload.readings import Conditions, Energy, Telemetry
from bench_protocol.payload.result import Blocks, Challenge, Gemm, Measurement, Result, Startup

from .. import results
from .hardware import Kind

OVERHEAD_US = {"tensorflow": 900, "mlx": 320, "jax": 210, "torch": 420}
RECIPES = {"naive": 1.0, "pipeline": 0.62, "tuned": 0.4}


@dataclass(frozen=True)
class Session:
    key: Ed25519PrivateKey
    kind: Kind
    machine: Machine
    environment: Environment
    at: datetime
    speed: float = 1.0


def cells_of(kind: Kind, workloads: Sequence[str], *, thorough: bool) -> Iterator[Cell]:
    """The first workload at its default batch; where thorough all of them, and in other recipes and
    batch sizes where the hardware has several owners."""
    frameworks = {"metal": ("tensorflow", "mlx"), "cuda": ("tensorflow", "jax", "torch")}
    device = Device(kind=kind.device)  # type: ignore[arg-type]
    for workload in workloads if thorough else workloads[:1]:
        if workload == "cifar100-vgg16" and kind.teraflops < 0.2:
            continue
        for framework in frameworks.get(kind.device, ("tensorflow", "torch")):
            usual = framework in ("tensorflow", "mlx", "torch")
            if not (usual or (thorough and kind.owners > 2)):
                continue
            place = {"framework": framework, "device": device}
            yield results.make_cell(workload, recipe="tuned", data="real", **place)
            if kind.owners > 2 and (thorough or workload == "mnist-cnn"):
                yield results.make_cell(workload, recipe="naive", data="real", **place)
                yield results.make_cell(workload, recipe="pipeline", data="real", **place)
            if thorough and kind.owners > 2 and workload == "fashion-mlp":
                for size in (32, 512, 1024):
                    yield results.make_cell(
                        workload, recipe="tuned", data="real", batch_size=size, **place
                    )


def _step_ns(kind: Kind, cell: Cell) -> float:
    """The framework's overhead, and the products at a rate that rises with the batch."""
    workload = workload_named(cell.workload)
    host = {"cuda": 1.0, "metal": 1.6, "cpu": 0.35}[kind.device]
    overhead_ns = OVERHEAD_US[cell.framework] * 1e3 * RECIPES[cell.recipe] * host
    half_full = {"cuda": 48, "metal": 24, "cpu": 6}[kind.device]
    filled = cell.batch_size / (cell.batch_size + half_full)
    flops = workload.training_flops_per_sample * cell.batch_size
    return overhead_ns + flops / (kind.teraflops * 1e3 * filled)


def result_of(
    run: Session, cell: Cell, repeat: int, challenge: Challenge, dice: random.Random
) -> Result:
    step_ns = int(_step_ns(run.kind, cell) / run.speed * dice.gauss(1, 0.006))
    measured = _measurement(run.kind, cell, step_ns, dice)
    seconds = int(8 + sum(measured.blocks.durations_ns) / 1e9)
    return results.make_result(
        key=run.key,
        cell=cell,
        machine=run.machine,
        measurement=measured,
        repeat=repeat,
        run_id=challenge.id,
        preset="standard",
        challenge=challenge,
        environment=run.environment,
        telemetry=_telemetry(run.kind, seconds, dice),
        conditions=Conditions(
            waited_ns=2_000_000_000,
            load_average=round(dice.uniform(0.05, 0.4), 2),
            cpu_utilisation_percent=round(dice.uniform(0.5, 4), 1),
            on_battery=False if run.kind.device == "metal" else None,
        ),
    )


def _measurement(kind: Kind, cell: Cell, step_ns: int, dice: random.Random) -> Measurement:
    steps = max(1, round(2e8 / step_ns))
    count = 40 if steps > 1 else 24
    wander = dice.uniform(0.004, 0.03)
    durations = tuple(
        max(1, int(step_ns * steps * (1 + abs(dice.gauss(0, wander)) - wander / 2)))
        for _ in range(count)
    )
    window_ns = max(sum(durations), 10_000_000_000)
    scope, source = {"cuda": ("gpu", "nvml"), "metal": ("soc", "ioreport")}.get(
        kind.device, ("cpu_package", "rapl")
    )
    return results.make_measurement(
        cell,
        startup=Startup(
            import_ns=int(dice.uniform(1.4, 3.2) * 1e9),
            data_ns=int(dice.uniform(0.15, 0.4) * 1e9),
            build_ns=int(dice.uniform(0.1, 0.5) * 1e9),
            first_step_ns=int(dice.uniform(0.4, 2.4) * 1e9),
        ),
        blocks=Blocks(
            steps_per_block=steps,
            durations_ns=durations,
            stop_reason="settled",
            warm_up_steps=steps * 3,
            warm_up_ns=step_ns * steps * 3,
        ),
        last_loss=round(dice.uniform(0.08, 0.4), 4),
        gemm=Gemm(
            size=4_096, precision="float32", duration_ns=int(2 * 4_096**3 / (kind.teraflops * 2e3))
        ),
        energy=Energy(
            source=source,  # type: ignore[arg-type]
            scope=scope,
            energy_mj=int(kind.watts * window_ns / 1e6 * dice.uniform(0.9, 1.0)),
            window_ns=window_ns,
        ),
        peak_memory_bytes=None if kind.device == "cpu" else 612 * 2**20,
    )


def _telemetry(kind: Kind, seconds: int, dice: random.Random) -> Telemetry:
    count = min(max(seconds, 14), 60)
    busy = [second > 5 for second in range(count)]
    columns: dict[str, tuple[float | None, ...]] = {
        "cpu_utilisation_percent": tuple(
            round((24 if on else 70) + dice.gauss(0, 3), 1) for on in busy
        )
    }
    if kind.device == "cuda":
        heat = [38 + 30 * (1 - 0.9**second) for second in range(count)]
        columns |= {
            "gpu_utilisation_percent": tuple(
                float(min(100, max(0, round((96 if on else 4) + dice.gauss(0, 2))))) for on in busy
            ),
            "gpu_power_watts": tuple(
                round((kind.watts if on else 60) * dice.uniform(0.95, 1), 1) for on in busy
            ),
            "gpu_temperature_celsius": tuple(round(t + dice.gauss(0, 0.4), 1) for t in heat),
            "gpu_clock_mhz": tuple(1980.0 if on else 345.0 for on in busy),
        }
    return Telemetry(
        at_ns=tuple(1_000_000_000 * (second + 1) for second in range(count)), columns=columns
    )
