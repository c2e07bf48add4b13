"""A server full of invented results, for page tests and pictures: no figure here was measured.

``python -m tests.fakes.fleet FOLDER`` makes ``FOLDER/server.db`` and its keys. Everything goes
through the server's own functions, so that checks, ranks and the log are as they would be.
"""

import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench_protocol import acts, conformance
from bench_protocol.catalogue import workload_named
from bench_protocol.errors import ProtocolError
from bench_protocol.machine import Cpu, Environment, Gpu, Machine, OperatingSystem
from bench_protocol.matrix import Cell, Device
from bench_protocol.result import (
    Blocks,
    Challenge,
    Clocks,
    Conditions,
    Energy,
    Gemm,
    Measurement,
    Result,
    Startup,
    Telemetry,
    Trace,
)
from bench_server import challenges, enroll, ingest, log, moderation, published, schema
from bench_server.authority import Authority, load_authority
from bench_server.db import Store
from bench_server.settings import Settings

from . import results

MARKUP = '<img src=x onerror=alert(1)>"\u202e & Sons'
START = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)
OWNERS = ("Ada", "Basel lab", "Chiyo", "Diego", "Edda", "Farid", "Grünwald HPC", "Hana")
WORKLOADS = ("mnist-cnn", "fashion-cnn", "cifar100-vgg16", "fashion-mlp", "fashion-lstm")
OVERHEAD_US = {"tensorflow": 900, "mlx": 320, "jax": 210, "torch": 420}
RECIPES = {"naive": 1.0, "pipeline": 0.62, "tuned": 0.4}


@dataclass(frozen=True)
class Kind:
    """One model of hardware: ``teraflops`` it reaches when busy, ``watts`` it draws then.
    ``cores``: GPU cores on Apple's, processor cores of a CPU."""

    name: str
    device: str
    teraflops: float
    watts: float
    cores: int | None = None
    owners: int = 1


CUDA = tuple(
    Kind(name, "cuda", teraflops, watts, owners=owners)
    for name, teraflops, watts, owners in (
        ("NVIDIA B200", 31, 760, 1),
        ("NVIDIA H200", 26, 540, 4),
        ("NVIDIA H100 80GB HBM3", 24, 560, 3),
        ("NVIDIA A100-SXM4-80GB", 9.4, 330, 3),
        ("NVIDIA A100-SXM4-40GB", 9.0, 310, 1),
        ("NVIDIA L40S", 21, 300, 1),
        ("NVIDIA L4", 7.6, 70, 2),
        ("NVIDIA A10G", 8.2, 190, 1),
        ("NVIDIA T4", 2.7, 68, 3),
        ("NVIDIA Tesla V100-SXM2-16GB", 7.1, 250, 1),
        ("NVIDIA GeForce RTX 4090", 27, 390, 3),
        ("NVIDIA GeForce RTX 4080", 17, 290, 1),
        ("NVIDIA GeForce RTX 4070 SUPER", 13, 205, 2),
        ("NVIDIA GeForce RTX 4060 Laptop GPU", 5.6, 90, 1),
        ("NVIDIA GeForce RTX 3090", 12.8, 340, 2),
        ("NVIDIA GeForce RTX 3080", 11, 310, 1),
        ("NVIDIA GeForce RTX 3060", 4.8, 160, 1),
        ("NVIDIA GeForce RTX 2080 Ti", 5.5, 245, 1),
        ("NVIDIA GeForce RTX 2070", 3.2, 170, 1),
        ("NVIDIA GeForce GTX 1080 Ti", 4.2, 230, 1),
    )
)
METAL = tuple(
    Kind(name, "metal", teraflops, watts, cores, owners)
    for name, teraflops, watts, cores, owners in (
        ("Apple M1", 1.0, 14, 8, 2),
        ("Apple M1 Pro", 2.0, 24, 16, 1),
        ("Apple M1 Max", 4.0, 42, 32, 3),
        ("Apple M1 Ultra", 7.3, 80, 64, 1),
        ("Apple M2", 1.4, 15, 10, 2),
        ("Apple M2 Pro", 2.6, 27, 19, 1),
        ("Apple M2 Max", 4.1, 40, 30, 4),
        ("Apple M2 Max", 5.2, 47, 38, 1),
        ("Apple M2 Ultra", 9.8, 92, 76, 1),
        ("Apple M3", 1.6, 15, 10, 1),
        ("Apple M3 Pro", 2.8, 26, 18, 1),
        ("Apple M3 Max", 6.0, 52, 40, 2),
        ("Apple M4", 1.8, 16, 10, 3),
        ("Apple M4 Pro", 3.7, 34, 20, 1),
        ("Apple M4 Max", 7.2, 58, 40, 3),
    )
)
CPUS = tuple(
    Kind(name, "cpu", teraflops, watts, cores, owners)
    for name, teraflops, watts, cores, owners in (
        ("AMD EPYC 9654 96-Core Processor", 2.4, 340, 96, 1),
        ("AMD EPYC 7763 64-Core Processor", 1.3, 270, 64, 2),
        ("AMD Ryzen 9 7950X 16-Core Processor", 0.94, 165, 16, 1),
        ("AMD Ryzen 7 5800X 8-Core Processor", 0.42, 105, 8, 1),
        ("13th Gen Intel(R) Core(TM) i9-13900K", 0.88, 190, 24, 1),
        ("13th Gen Intel(R) Core(TM) i7-13700KF", 0.62, 150, 16, 1),
        ("Intel(R) Core(TM) i7-8700 CPU @ 3.20GHz", 0.21, 78, 6, 3),
        ("Intel(R) Core(TM) i5-8250U CPU @ 1.60GHz", 0.09, 22, 4, 1),
        ("Apple M1", 0.35, 16, 8, 2),
    )
)


@dataclass(frozen=True)
class Session:
    """One run of one machine: who sends it, on what, when, and in which environment."""

    key: Ed25519PrivateKey
    kind: Kind
    machine: Machine
    environment: Environment
    at: datetime
    speed: float = 1.0


# The processors beside these GPUs, measured on the same machines.
BESIDE = {
    ("Apple M2 Max", 30): Kind("Apple M2 Max", "cpu", 0.66, 36, 12, 3),
    ("Apple M4 Max", 40): Kind("Apple M4 Max", "cpu", 1.1, 48, 16, 3),
}


def fill(store: Store, authority: Authority, workloads: Sequence[str] = WORKLOADS) -> None:
    """Enroll eight owners, half of them confirmed, and post everything they would have."""
    keys = [results.private_key(seed) for seed in range(1, len(OWNERS) + 1)]
    with store.writing() as session:
        log.begin(session, authority)
        published.import_published(session)
    for number, (key, owner) in enumerate(zip(keys, OWNERS, strict=True)):
        body = results.enrollment(key, owner)
        enroll.tell(body, store, authority, "open", START)
        whose: dict[str, Any] = {"key": results.key_id(key), "owner": owner}
        moderation.decide(store, authority, START, "assign", **whose)
        if number % 2 == 0:
            moderation.decide(store, authority, START, "confirm", owner=owner)
    fleet = [(kind, number) for kind in (*CUDA, *METAL, *CPUS) for number in range(kind.owners)]
    for place, (kind, number) in enumerate(fleet):
        of_machine = Session(
            keys[(place * 3) % len(keys)],
            kind,
            _machine(kind, place),
            _environment(kind),
            START + timedelta(days=place, hours=place % 7),
            random.Random(place).uniform(0.975, 1.025),
        )
        send(store, authority, of_machine, _cells(kind, workloads, thorough=number == 0))
        if processor := BESIDE.get((kind.name, kind.cores)):
            send(
                store,
                authority,
                replace(of_machine, kind=processor),
                _cells(processor, workloads, thorough=True),
            )
    _history(store, authority, keys[0])
    _oddities(store, authority, keys[3])


def send(store: Store, authority: Authority, run: Session, cells: Iterable[Cell]) -> list[str]:
    """Post three repeats of each cell under one challenge; gives the results' ids."""
    asked = acts.ChallengeAsked(key_id=results.key_id(run.key))
    given = challenges.give(acts.payload(asked), store, authority, run.at, 24)
    bound = Challenge(id=given.id, nonce=given.nonce, server_origin=given.server_origin)
    made = [
        _result(run, cell, repeat, bound, random.Random(f"{given.id}{cell.digest}{repeat}"))
        for cell in cells
        for repeat in (1, 2, 3)
    ]
    span_ns = max(result.clocks.finished_ns for result in made) + 5_000_000_000
    finished = run.at + timedelta(seconds=span_ns / 1e9)
    envelopes = [results.sealed(_closed(result, run.at, span_ns), run.key) for result in made]
    ids = []
    for answer in ingest.Inbox(store, authority).accept_all(envelopes, finished):
        if isinstance(answer, ProtocolError):
            raise answer
        ids.append(answer.submission.id)
    return ids


def _cells(kind: Kind, workloads: Sequence[str], *, thorough: bool) -> Iterator[Cell]:
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
            own = {"framework": framework, "device": device}
            yield results.make_cell(workload, recipe="tuned", data="real", **own)
            if kind.owners > 2 and (thorough or workload == "mnist-cnn"):
                yield results.make_cell(workload, recipe="naive", data="real", **own)
                yield results.make_cell(workload, recipe="pipeline", data="real", **own)
            if thorough and kind.owners > 2 and workload == "fashion-mlp":
                for size in (32, 512, 1024):
                    yield results.make_cell(
                        workload, recipe="tuned", data="real", batch_size=size, **own
                    )


def _step_ns(kind: Kind, cell: Cell) -> float:
    """What a step might take: the framework's overhead, and the products at a rate that rises with
    the batch."""
    workload = workload_named(cell.workload)
    host = {"cuda": 1.0, "metal": 1.6, "cpu": 0.35}[kind.device]
    overhead_ns = OVERHEAD_US[cell.framework] * 1e3 * RECIPES[cell.recipe] * host
    half_full = {"cuda": 48, "metal": 24, "cpu": 6}[kind.device]
    filled = cell.batch_size / (cell.batch_size + half_full)
    flops = workload.training_flops_per_sample * cell.batch_size
    return overhead_ns + flops / (kind.teraflops * 1e3 * filled)


def _result(
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


def _closed(result: Result, began: datetime, span_ns: int) -> Result:
    """The result with clocks of one run: all repeats begin with it and are signed at its end."""
    end = _text(began + timedelta(seconds=span_ns / 1e9))
    clocks = Clocks(
        run_started=_text(began),
        started=_text(began),
        finished=end,
        started_ns=1_000,
        finished_ns=span_ns,
        signed=end,
        signed_ns=span_ns,
    )
    return result.model_copy(update={"clocks": clocks})


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
            started_ns=6_000_000_000,
            target_spread=0.03,
            budget_ns=60_000_000_000,
        ),
        last_loss=round(dice.uniform(0.08, 0.4), 4),
        traces=_traces(cell, dice),
        gemm=Gemm(
            size=4_096, precision="float32", duration_ns=int(1.37e14 / (kind.teraflops * 2e3))
        ),
        energy=Energy(
            source=source,  # type: ignore[arg-type]
            scope=scope,
            energy_mj=int(kind.watts * window_ns / 1e6 * dice.uniform(0.9, 1.0)),
            window_ns=window_ns,
            samples=window_ns // 1_000_000_000,
            started_ns=6_000_000_000,
        ),
        peak_memory_bytes=None if kind.device == "cpu" else 612 * 2**20,
    )


def _traces(cell: Cell, dice: random.Random) -> tuple[Trace, ...]:
    """The reference's losses with a rounding's difference."""
    known = conformance.references()
    return tuple(
        Trace(
            optimizer=optimizer,
            batch_size=right.batch_size,
            seed=right.seed,
            losses=tuple(loss * (1 + dice.gauss(0, 3e-7)) for loss in right.losses),
        )
        for optimizer in conformance.TRACED
        if (right := known.get((cell.workload_digest, optimizer))) is not None
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


def _machine(kind: Kind, number: int) -> Machine:
    apple = kind.device == "metal" or kind.name.startswith("Apple")
    gpus: tuple[Gpu, ...] = ()
    if kind.device == "cuda":
        gpus = (
            Gpu(kind="cuda", index=0, name=kind.name, memory_bytes=24 * 2**30, driver="580.95"),
        )
    elif kind.device == "metal":
        gpus = (Gpu(kind="metal", index=0, name=kind.name, cores=kind.cores, unified_memory=True),)
    cores = kind.cores if kind.device == "cpu" else 12
    brand = "AMD EPYC 9354 32-Core Processor" if kind.device == "cuda" else kind.name
    return Machine(
        machine_hash=f"{number + 1:064x}",
        model="Mac14,6" if apple else None,
        cpu=Cpu(
            brand=brand,
            architecture="arm64" if apple else "x86_64",
            physical_cores=cores,
            logical_cores=cores,
        ),
        memory_bytes=64 * 2**30,
        gpus=gpus,
        os=OperatingSystem(
            name="macos" if apple else "linux", version="15.5" if apple else "Ubuntu 24.04"
        ),
    )


def _environment(kind: Kind, tensorflow: str = "2.18.1") -> Environment:
    packages = {
        "tensorflow": tensorflow,
        "keras": "3.15.1",
        "torch": "2.9.1",
        "jax": "0.7.2",
        "mlx": "0.30.0",
        "numpy": "2.0.2",
    }
    if kind.device == "metal":
        packages |= {"tensorflow-metal": "1.2.0"}
    libraries = {"cuda": "12.9", "cudnn": "9.14"} if kind.device == "cuda" else {"blas": "openblas"}
    return Environment(python="3.12.7", packages=packages, libraries=libraries)


def _history(store: Store, authority: Authority, key: Ed25519PrivateKey) -> None:
    """A machine measured for months: a new framework makes it faster, a new system slower."""
    kind = next(k for k in METAL if (k.name, k.cores) == ("Apple M2 Max", 30))
    cell = results.make_cell("mnist-cnn", device=Device(kind="metal"), recipe="tuned", data="real")
    for month, (version, system, speed) in enumerate(
        [("2.18.0", "14.6", 1.0)] * 3
        + [("2.18.1", "14.6", 1.11)] * 3
        + [("2.18.1", "15.5", 1.04)] * 3
    ):
        machine = _machine(kind, 900)
        machine = machine.model_copy(update={"os": OperatingSystem(name="macos", version=system)})
        at = START + timedelta(days=20 * month)
        run = Session(key, kind, machine, _environment(kind, version), at, speed)
        send(store, authority, run, [cell])


def _oddities(store: Store, authority: Authority, key: Ed25519PrivateKey) -> None:
    """A failure, a wrong parameter count, a flagged result, and names full of markup."""
    at = START + timedelta(days=150)
    kind = CUDA[8]
    gpu = Device(kind="cuda")
    machine = _machine(kind, 950)
    common: dict[str, Any] = {"key": key, "machine": machine}
    vgg = results.make_cell("cifar100-vgg16", device=gpu, batch_size=128)
    failed = results.make_failure("out_of_memory", "warm_up", cell=vgg, **common)
    cell = results.make_cell("mnist-cnn", device=gpu)
    wrong = results.make_result(
        cell=cell,
        measurement=results.make_measurement(cell, 300_000, parameter_count=93_321),
        **common,
    )
    odd = results.make_result(
        key=key, machine=results.make_machine(MARKUP, seed=951), step_ns=9_000_000
    )
    for result in (failed, wrong, odd):
        ingest.Inbox(store, authority).accept(results.sealed(result, key), at)
    run = Session(key, kind, machine, _environment(kind), at, 2.4)
    cells = [results.make_cell("mnist-cnn", device=gpu, recipe="tuned", data="real")]
    for identity in send(store, authority, run, cells):
        moderation.decide(
            store, authority, at, "flag", result=identity, reason="measured beside another job"
        )


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def make(folder: Path, workloads: Sequence[str] = WORKLOADS) -> str:
    """Make the database and its keys in a folder; gives its address."""
    url = f"sqlite:///{folder / 'server.db'}"
    folder.mkdir(parents=True, exist_ok=True)
    store = Store(url)
    schema.migrate(store.engine)
    fill(store, load_authority(Settings().origin, folder / "server-keys"), workloads)
    store.close()
    return url


if __name__ == "__main__":
    print(make(Path(sys.argv[1])))
