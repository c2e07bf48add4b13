"""One result with every field filled, signed with a fixed key. The files in tests/golden hold it.

From the first release on a golden file is never regenerated: a signed payload must be readable for
ever. A later version of the payload gets its own files.
"""

import json
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.matrix import Cell, Device
from bench_protocol.payload import statement
from bench_protocol.payload.machine import Cpu, Environment, Gpu, Machine, OperatingSystem
from bench_protocol.payload.readings import Conditions, Energy, Telemetry
from bench_protocol.payload.result import (
    Agent,
    Asked,
    Blocks,
    Challenge,
    Clocks,
    Evaluation,
    Failed,
    Gemm,
    Measured,
    Measurement,
    Placement,
    Result,
    Startup,
    Warn,
)
from bench_protocol.payload.window import Window
from bench_protocol.payload.witness import LastBlock, Reading, Witness
from bench_protocol.signing.keys import key_id

GOLDEN = Path(__file__).parent.parent / "golden"
# RFC 8032 section 7.1, tests 1 and 2.
SEED_1 = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
SEED_2 = bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
KEY_1 = Ed25519PrivateKey.from_private_bytes(SEED_1)
KEY_2 = Ed25519PrivateKey.from_private_bytes(SEED_2)
KEY_ID_1 = key_id(KEY_1.public_key())
KEY_ID_2 = key_id(KEY_2.public_key())

MEASUREMENT = Measurement(
    startup=Startup(
        import_ns=2_417_033_125,
        data_ns=181_402_958,
        build_ns=240_118_042,
        first_step_ns=912_337_541,
    ),
    blocks=Blocks(
        steps_per_block=47,
        durations_ns=(502_113_958, 498_870_125, 501_020_333),
        stop_reason="settled",
        warm_up_steps=31,
        warm_up_ns=420_018_917,
        last_block=LastBlock(steps=11, duration_ns=117_402_118),
    ),
    layers="safe",
    parameter_count=93_322,
    last_loss=0.287,
    peak_memory_bytes=402_653_184,
    host_peak_memory_bytes=1_288_490_188,
    data_digest="5d" * 32,
    evaluation=Evaluation(epochs=10, samples=10_000, loss=0.031, accuracy=0.9907),
    gemm=Gemm(size=4_096, precision="float32", duration_ns=13_041_208),
    energy=Energy(source="ioreport", scope="gpu", energy_mj=412_880, window_ns=12_004_118_000),
    placement=Placement(reported="/device:GPU:0", matches=True),
    recipe_settings={"prefetch": "autotune", "steps_per_call": "1"},
    witness=Witness(
        step_count=184,
        counted_by="optimizer",
        movements=(1.25, 0.03125, 2.5, None, 0.75),
        start_loss=2.299931,
        readings=(
            Reading(
                loss=1.5412,
                movements=(1.25, 0.03125, 2.5, None, 0.5),
                durations_ns=(502_313_958, 212_870_125),
            ),
            Reading(loss=None, movements=(0.5,), durations_ns=(32_870_125,)),
        ),
    ),
    window=Window(
        received_ns=(8_300_114_250, 8_802_240_000, 9_301_121_375, 9_802_150_250, 9_921_400_125),
        blocks_agree=True,
    ),
)
MACHINE = Machine(
    machine_hash="a7" * 32,
    model="Mac14,6",
    cpu=Cpu(
        brand="Apple M2 Max",
        architecture="arm64",
        physical_cores=12,
        logical_cores=12,
        performance_cores=8,
        efficiency_cores=4,
        available_cores=12,
        quota_cores=12.0,
        sockets=1,
        maximum_clock_mhz=3_696,
        instruction_sets=("neon", "fp16", "bf16"),
    ),
    memory_bytes=34_359_738_368,
    gpus=(
        Gpu(
            kind="metal",
            index=0,
            name="Apple M2 Max",
            cores=30,
            memory_bytes=26_800_603_136,
            unified_memory=True,
            driver="Metal 3",
            maximum_clock_mhz=1_398,
        ),
        # No Mac has one: it is here so that every field of a GPU is in the golden file.
        Gpu(
            kind="cuda",
            index=0,
            name="NVIDIA H200",
            cores=132,
            memory_bytes=150_754_820_096,
            driver="580.95.05",
            compute_capability="9.0",
            mig=True,
            mig_profile="1g.18gb",
            ecc=True,
            power_limit_watts=700.0,
            default_power_limit_watts=700.0,
            maximum_clock_mhz=1_980,
            maximum_memory_clock_mhz=3_201,
        ),
    ),
    os=OperatingSystem(
        name="macos",
        version="14.6",
        kernel="Darwin 23.6.0",
        container="docker",
        virtual_machine="apple",
    ),
)
RESULT = Result(
    schema_version=1,
    run_id="0193" + "5e" * 14,
    repeat=2,
    cell=Cell(
        workload="mnist-cnn",
        workload_digest=workload_named("mnist-cnn").digest,
        framework="tensorflow",
        device=Device(kind="metal"),
        recipe="pipeline",
        batch_size=64,
        precision="float32",
        data="generated",
    ),
    seed="0" * 32,
    preset="standard",
    challenge=Challenge(id="c4" * 16, nonce="9e" * 32, server_origin="bench.example"),
    agent=Agent(version="0.1.0", key_id=KEY_ID_1),
    machine=MACHINE,
    environment=Environment(
        python="3.12.7",
        packages={"keras": "3.15.1", "tensorflow": "2.18.1", "tensorflow-metal": "1.2.0"},
        libraries={"blas": "Accelerate"},
        settings={"OMP_NUM_THREADS": "8", "température": "été \U0001f321"},
    ),
    outcome=Measured(measurement=MEASUREMENT),
    clocks=Clocks(
        run_started="2026-11-21T03:42:00.000000Z",
        started="2026-11-21T03:42:01.250000Z",
        started_ns=1_250_000_417,
        finished_ns=14_500_125_458,
        signed="2026-11-21T03:42:14.503000Z",
        signed_ns=14_503_000_083,
    ),
    conditions=Conditions(
        waited_ns=2_000_000_000,
        load_average=0.31,
        cpu_utilisation_percent=2.5,
        gpu_utilisation_percent=0.0,
        gpu_processes=0,
        gpu_memory_used_bytes=0,
        available_memory_bytes=21_474_836_480,
        on_battery=False,
        low_power_mode=False,
        thermal_pressure="nominal",
        cpu_governor="performance",
    ),
    telemetry=Telemetry(
        at_ns=(9_300_000_000, 10_300_000_000),
        columns={"cpu_utilisation_percent": (31.5, 30.25), "gpu_temperature_celsius": (None, 52.0)},
    ),
    warnings=(Warn(code="few_blocks", figures={"blocks": 3.0, "wanted": "10"}),),
    asked=Asked(root="a5" * 32, reason="outlier", result="9f" * 8),
)
FAILURE = RESULT.model_copy(
    update={
        "outcome": Failed(
            kind="crashed", phase="timing", exception_class="RuntimeError", exit_code=-11
        ),
        "challenge": None,
        "nonce": "9e" * 32,
        "conditions": None,
        "telemetry": Telemetry(),
        "warnings": (),
        "asked": None,
    }
)

PAYLOAD = statement.result_payload(RESULT)
Place = tuple[str | int, ...]


def altered(path: Place, value: Any, base: bytes = PAYLOAD) -> bytes:
    """The golden payload with one value replaced; ``...`` as value removes it."""
    document = json.loads(base)
    part = document
    for step in path[:-1]:
        part = part[step]
    if value is ...:
        del part[path[-1]]
    else:
        part[path[-1]] = value
    return json.dumps(document, ensure_ascii=False).encode()
