"""Results and envelopes for tests: complete and plausible, with overrides."""

import itertools
import secrets
from datetime import datetime, timedelta
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench_protocol.base import units
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.matrix import PRODUCTS, Cell, Device
from bench_protocol.catalogue.nonces import seed_of
from bench_protocol.payload import acts, statement
from bench_protocol.payload.machine import Cpu, Environment, Gpu, Machine, OperatingSystem
from bench_protocol.payload.result import (
    Agent,
    Blocks,
    Clocks,
    Evaluation,
    Failed,
    Gemm,
    Measured,
    Measurement,
    Placement,
    Result,
    Startup,
)
from bench_protocol.payload.window import Window
from bench_protocol.payload.witness import Witness
from bench_protocol.recompute import generated_digest
from bench_protocol.signing import envelope, keys
from bench_protocol.training import loss_by_steps
from bench_protocol.training.recomputation import SessionJob

from . import seeding

AT = "2026-11-21T03:42:00.000000Z"
_runs = itertools.count(1)


def private_key(seed: int = 1) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32)


def key_id(key: Ed25519PrivateKey) -> str:
    return keys.key_id(key.public_key())


def make_machine(
    brand: str = "Intel(R) Core(TM) i7-8700 CPU @ 3.20GHz",
    gpu: tuple[str, str, int | None] | None = None,
    seed: int = 1,
    **system: Any,
) -> Machine:
    """A machine; ``gpu`` is kind, name and number of cores."""
    gpus = () if gpu is None else (Gpu(kind=gpu[0], index=0, name=gpu[1], cores=gpu[2]),)  # type: ignore[arg-type]
    apple = brand.startswith("Apple")
    return Machine(
        machine_hash=f"{seed:064x}",
        cpu=Cpu(
            brand=brand,
            architecture="arm64" if apple else "x86_64",
            physical_cores=12 if apple else 6,
            logical_cores=12,
        ),
        memory_bytes=32 * 2**30,
        gpus=gpus,
        os=OperatingSystem(
            name="macos" if apple else "linux", version="14.6" if apple else "12", **system
        ),
    )


def utc_text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def clocks_of(began: datetime, took_ns: int) -> Clocks:
    """The clocks of a run that began then, took that long, and was signed at its end."""
    start, end = map(utc_text, (began, began + timedelta(microseconds=took_ns / 1e3)))
    return Clocks(
        run_started=start,
        started=start,
        signed=end,
        started_ns=0,
        finished_ns=took_ns,
        signed_ns=took_ns,
    )


def clocks_from(day: int, minute: int = 0) -> Clocks:
    started = f"2026-10-{day:02d}T00:{minute:02d}:00.000000Z"
    return make_result().clocks.model_copy(update={"started": started})


def make_cell(workload: str = "mnist-cnn", **overrides: Any) -> Cell:
    standard = workload_named(workload)
    fields: dict[str, Any] = {
        "workload": workload,
        "workload_digest": standard.digest,
        "framework": "tensorflow",
        "device": Device(kind="cpu"),
        "recipe": "naive",
        "batch_size": standard.batch_size,
        "precision": "float32",
        "data": "generated",
    }
    return Cell(**fields | overrides)


def make_measurement(
    cell: Cell, step_ns: int = 1_000_000, block_count: int = 12, **overrides: Any
) -> Measurement:
    """Blocks of 10 steps around ``step_ns``, median and mean exactly there."""
    wave = (0, -13, 8, 0, 5, -4, 0, 11, -7, 0, 2, -2)
    durations = tuple(step_ns * 10 + step_ns * wave[i % 12] // 100 for i in range(block_count))
    blocks = overrides.get("blocks") or Blocks(
        steps_per_block=10,
        durations_ns=durations,
        stop_reason="settled",
        warm_up_steps=20,
        warm_up_ns=step_ns * 20,
    )
    fields: dict[str, Any] = {
        "startup": Startup(
            import_ns=2_100_000_000,
            data_ns=180_000_000,
            build_ns=240_000_000,
            first_step_ns=900_000_000,
        ),
        "blocks": blocks,
        "layers": "stock",
        "parameter_count": workload_named(cell.workload).parameter_count,
        "last_loss": 0.31,
        "host_peak_memory_bytes": 910 * 2**20,
        "placement": Placement(reported=f"/device:{cell.device.kind.upper()}:0", matches=True),
        "recipe_settings": {"steps_per_call": "1"},
    }
    return Measurement(**fields | overrides)


def make_evaluation(cell: Cell, measurement: Measurement) -> Evaluation:
    blocks, workload = measurement.blocks, workload_named(cell.workload)
    samples = loss_by_steps.evaluated_samples(workload)
    tried = Evaluation(epochs=0, samples=samples, loss=1.0, accuracy=0.75)
    steps = 1 + blocks.warm_up_steps + blocks.steps
    verdict = loss_by_steps.judge(cell, workload, steps, tried)
    if verdict.lowest is None or verdict.highest is None:
        return tried
    return tried.model_copy(update={"loss": (verdict.lowest + verdict.highest) / 2})


def make_witness(cell: Cell, measurement: Measurement | None = None, **overrides: Any) -> Witness:
    measurement = measurement or make_measurement(cell)
    job = SessionJob(workload_named(cell.workload), seeding.OWN_NONCE, cell.batch_size, cell.data)
    told = seeding.witness_of(job, measurement, seeding.invented_for(job))
    return told.model_copy(update=overrides)


def with_witness(cell: Cell, measurement: Measurement, **overrides: Any) -> Measurement:
    """A measurement with the evidence that it lacks, or that the overrides have."""
    fields: dict[str, Any] = {
        "witness": make_witness(cell, measurement),
        "window": make_window(measurement.blocks),
        "data_digest": make_data_digest(cell),
        "evaluation": make_evaluation(cell, measurement),
        "gemm": make_product(cell, measurement),
    }
    lacking = {name: made for name, made in fields.items() if not getattr(measurement, name)}
    return measurement.model_copy(update=lacking | overrides)


def make_window(blocks: Blocks, started_ns: int = 4_000_000_000, share: float = 1.0) -> Window:
    """A window of which the blocks take this share; messages arrive without delay."""
    ends_ns = itertools.accumulate(blocks.all_durations_ns, initial=0)
    received_ns = (min(started_ns + round(end / share), units.LARGEST_INTEGER) for end in ends_ns)
    return Window(received_ns=tuple(received_ns), blocks_agree=True)


def make_data_digest(cell: Cell) -> str:
    if cell.data == "real":
        return "e" * 64
    return generated_digest(workload_named(cell.workload).data_set)


def make_product(cell: Cell, measurement: Measurement) -> Gemm:
    """A matrix product at a third of the training's rate: no limit of a rate is near."""
    blocks, size = measurement.blocks, 1024
    flops = workload_named(cell.workload).training_flops_per_sample * cell.batch_size * blocks.steps
    duration_ns = min(max(1, 3 * 2 * size**3 * blocks.total_ns // flops), units.LARGEST_INTEGER)
    return Gemm(size=size, precision=PRODUCTS[cell.precision], duration_ns=duration_ns)


def make_result(
    *,
    key: Ed25519PrivateKey | None = None,
    cell: Cell | None = None,
    machine: Machine | None = None,
    measurement: Measurement | None = None,
    step_ns: int = 1_000_000,
    witness: bool = True,
    **overrides: Any,
) -> Result:
    """A result of ``mnist-cnn`` on a CPU; ``witness``: with all of level 3 but a challenge."""
    cell = cell or make_cell()
    measurement = measurement or make_measurement(cell, step_ns)
    if witness:
        measurement = with_witness(cell, measurement)
    blocks = measurement.blocks
    took_ns = min(5_000_000_000 + blocks.warm_up_ns + sum(blocks.durations_ns), 2**53 - 10_000)
    fields: dict[str, Any] = {
        "schema_version": 1,
        "run_id": f"{next(_runs):032x}",
        "repeat": 1,
        "cell": cell,
        "seed": seed_of(seeding.OWN_NONCE, cell.workload_digest),
        "preset": "smoke",
        "agent": Agent(version="0.1.0", key_id=key_id(key or private_key())),
        "machine": machine or make_machine(),
        "environment": Environment(
            python="3.11.7",
            packages={"tensorflow": "2.18.1", "keras": "3.15.1", "numpy": "2.0.2"},
            libraries={"onednn": "on"},
            settings={"OMP_NUM_THREADS": "6"},
        ),
        "outcome": Measured(measurement=measurement),
        "clocks": Clocks(
            run_started=AT,
            started=AT,
            started_ns=1_000,
            finished_ns=1_000 + took_ns,
            signed=AT,
            signed_ns=2_000 + took_ns,
        ),
    }
    fields |= overrides
    if not fields.get("challenge"):
        fields.setdefault("nonce", seeding.OWN_NONCE)
    result = Result(**fields)
    return result if result.nonce == seeding.OWN_NONCE else seeding.under_nonce(result)


def make_complete(
    cell: Cell | None = None, measured: dict[str, Any] | None = None, **overrides: Any
) -> Result:
    """A result with all of level 3 but a challenge; ``overrides``: of :func:`with_witness`."""
    cell = cell or make_cell()
    measurement = with_witness(cell, make_measurement(cell, **(measured or {})), **overrides)
    return make_result(cell=cell, measurement=measurement, witness=False)


def make_failure(kind: str = "crashed", phase: str = "timing", **overrides: Any) -> Result:
    outcome = Failed(kind=kind, phase=phase, exception_class="RuntimeError", exit_code=-11)  # type: ignore[arg-type]
    return make_result(outcome=outcome, **overrides)


def sealed(result: Result, key: Ed25519PrivateKey | None = None) -> bytes:
    payload = statement.result_payload(result)
    return envelope.seal(statement.RESULT_PAYLOAD_TYPE, payload, key or private_key())


def challenge_request(
    key: Ed25519PrivateKey | None = None, origin: str = "bench.test", run_id: str = "a" * 32
) -> bytes:
    key = key or private_key()
    asked = acts.ChallengeRequest(
        id=secrets.token_hex(16), run_id=run_id, key_id=key_id(key), server_origin=origin
    )
    return envelope.seal(acts.CHALLENGE_REQUEST_PAYLOAD_TYPE, acts.payload(asked), key)


def enrollment(key: Ed25519PrivateKey | None = None) -> bytes:
    key = key or private_key()
    payload = statement.key_event_payload(statement.enroll_event(key.public_key(), AT))
    inner = envelope.seal(statement.KEY_EVENT_PAYLOAD_TYPE, payload, key)
    return b'{"envelope":%s,"invite":null}' % inner
