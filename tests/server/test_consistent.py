"""Documents that contradict themselves are not ranked; honest odd machines are."""

from typing import Any

import pytest
from tests.fakes import results
from tests.server.test_result_checks import verdicts_of

from bench_protocol.payload.machine import Cpu, Gpu, Machine, OperatingSystem
from bench_server.checks.machine import RULES
from bench_server.checks.verdicts import CheckVerdict

M2, XEON, EPYC = "Apple M2 Max", "Intel(R) Xeon(R) Gold 6430", "AMD EPYC 9654 96-Core Processor"
I3 = "Intel(R) Core(TM) i3-4005U CPU @ 1.70GHz"
METAL, CUDA = ("metal", "Apple M2 Max"), ("cuda", "NVIDIA H200")


def machine(
    brand: str,
    architecture: str,
    system: str = "linux",
    sets: tuple[str, ...] = (),
    gpus: tuple[tuple[str, str], ...] = (),
    **facts: Any,
) -> Machine:
    nesting = {k: v for k, v in facts.items() if k in OperatingSystem.model_fields}
    cores = {k: v for k, v in facts.items() if k in Cpu.model_fields}
    return Machine(
        machine_hash="0" * 64,
        cpu=Cpu(brand=brand, architecture=architecture, instruction_sets=sets, **cores),
        gpus=tuple(
            Gpu(kind=kind, index=index, name=name)  # type: ignore[arg-type]
            for index, (kind, name) in enumerate(gpus)
        ),
        os=OperatingSystem(name=system, version="1", **nesting),  # type: ignore[arg-type]
    )


def verdict(of: Machine) -> CheckVerdict:
    return verdicts_of(results.make_result().model_copy(update={"machine": of}))["consistent"]


# Each with a part of the reason.
CONTRADICTIONS = {
    "Apple, x86-64, Linux, AVX-512, in a virtual machine": (
        machine(M2, "x86_64", sets=("avx2", "avx512f"), virtual_machine="kvm"),
        "AVX-512",
    ),
    "Apple with AVX-512 on Arm": (machine(M2, "arm64", "macos", ("avx512f",)), "AVX-512"),
    "Rosetta with AVX-512": (
        machine("VirtualApple @ 2.50GHz", "x86_64", "macos", ("avx512f",), rosetta=True),
        "AVX-512",
    ),
    "AVX on Arm": (machine("Neoverse-N1", "aarch64", sets=("avx2",)), "sets are of x86-64"),
    "AMX of Intel on Arm": (machine("x", "ARM64", sets=("amx_bf16",)), "sets are of x86-64"),
    "SVE on x86-64": (machine(XEON, "x86_64", sets=("sve2",)), "sets are of Arm"),
    "NEON on x86-64": (machine(XEON, "AMD64", sets=("asimd",)), "sets are of Arm"),
    "Metal, Linux": (machine(M2, "aarch64", gpus=(METAL,)), "Metal is"),
    "Metal, Windows": (machine(XEON, "AMD64", "windows", gpus=(("metal", "x"),)), "Metal is"),
    "CUDA, macOS": (machine(XEON, "x86_64", "macos", gpus=(CUDA,)), "CUDA has"),
    "CUDA of Apple": (machine(M2, "aarch64", gpus=(("cuda", "Apple M2"),)), "has no CUDA"),
    "Apple's GPU in an Intel": (machine(XEON, "x86_64", "macos", gpus=(METAL,)), "part of a chip"),
    "WSL, macOS": (machine(M2, "arm64", "macos", wsl=True), "WSL"),
    "Rosetta, Linux": (machine("VirtualApple", "x86_64", rosetta=True), "Rosetta"),
    "physical above logical": (
        machine(I3, "x86_64", physical_cores=9, logical_cores=4),
        "more physical",
    ),
    "available above logical": (
        machine(I3, "x86_64", logical_cores=4, available_cores=9),
        "more logical",
    ),
    "kinds above physical": (
        machine(M2, "arm64", "macos", physical_cores=4, performance_cores=8, efficiency_cores=4),
        "performance and efficiency",
    ),
    "sockets above cores": (machine(EPYC, "x86_64", physical_cores=2, sockets=4), "sockets"),
    "more cores than named": (
        machine(EPYC, "x86_64", physical_cores=128, sockets=1),
        "named processor",
    ),
}
HONEST = {
    "Mac": machine(M2, "arm64", "macos", ("bf16", "fp16", "dotprod", "sme"), (METAL,)),
    "Mac under Rosetta": machine(
        "VirtualApple @ 2.50GHz", "x86_64", "macos", ("i8mm", "avx2"), (METAL,), rosetta=True
    ),
    "Mac under Rosetta by its own name": machine(M2, "x86_64", "macos", ("sme",), rosetta=True),
    "virtual Mac": machine("Apple M1 (Virtual)", "arm64", "macos", virtual_machine="apple"),
    "Linux on a Mac": machine(M2, "aarch64", sets=("asimd", "i8mm"), logical_cores=12),
    "Linux under Rosetta": machine("VirtualApple @ 2.50GHz", "x86_64", sets=("avx2",)),
    "Windows on a Mac": machine("Apple Silicon", "ARM64", "windows", virtual_machine="parallels"),
    "Intel Mac": machine(XEON, "x86_64", "macos", ("avx2",), (("metal", "AMD Radeon Pro"),)),
    "WSL": machine(EPYC, "x86_64", sets=("avx512f",), gpus=(CUDA,), wsl=True),
    "emulated on Windows on Arm": machine("Snapdragon(R) X Elite", "AMD64", "windows"),
    "emulated by QEMU on Arm": machine("Neoverse-N1", "x86_64", sets=("asimd", "sve")),
    "emulated by QEMU on x86-64": machine(XEON, "aarch64", sets=("avx512f",)),
    "Windows": machine(EPYC, "AMD64", "windows", gpus=(CUDA,)),
    "Arm server": machine("Neoverse-V2", "aarch64", sets=("sve2", "bf16"), gpus=(CUDA,)),
    "encrypted memory of AMD": machine(EPYC, "x86_64", sets=("avx2", "sme")),
    "Arm of AMD": machine("AMD Opteron(tm) A1100", "aarch64", sets=("asimd",)),
    "POWER": machine("POWER9", "ppc64le", physical_cores=16, logical_cores=64, gpus=(CUDA,)),
    "container on few cores": machine(
        EPYC, "x86_64", container="docker", logical_cores=192, available_cores=2, quota_cores=1.5
    ),
    "container that sees the host": machine(
        EPYC, "x86_64", container="lxc", physical_cores=96, logical_cores=4, available_cores=192
    ),
    "quota above the cores": machine(I3, "x86_64", logical_cores=4, quota_cores=64.0),
    "virtual machine of few cores": machine(
        EPYC, "x86_64", virtual_machine="kvm", physical_cores=2, logical_cores=2, sockets=2
    ),
    "virtual machine of many cores": machine(
        EPYC, "x86_64", virtual_machine="kvm", physical_cores=128, logical_cores=128, sockets=1
    ),
    "two sockets": machine(EPYC, "x86_64", physical_cores=192, logical_cores=384, sockets=2),
    "cores switched off": machine(EPYC, "x86_64", physical_cores=8, logical_cores=8, sockets=1),
    "big.LITTLE": machine(
        "Cortex-X925", "aarch64", physical_cores=20, performance_cores=10, efficiency_cores=10
    ),
    "nothing known": machine("unknown x86_64 CPU", "unknown", "other"),
    # Nothing in the document says that this processor has two.
    "the sender's word": machine(I3, "x86_64", physical_cores=128, logical_cores=128, sockets=1),
}


@pytest.mark.parametrize("kind", CONTRADICTIONS)
def test_a_machine_that_contradicts_itself_is_not_ranked(kind: str) -> None:
    of, reason = CONTRADICTIONS[kind]
    judged = verdict(of)
    assert (judged.passed, judged.effect) == (False, "unranked")
    assert reason in judged.sentence


@pytest.mark.parametrize("kind", HONEST)
def test_an_honest_odd_machine_contradicts_nothing(kind: str) -> None:
    assert verdict(HONEST[kind]).passed, verdict(HONEST[kind]).sentence


def test_each_rule_has_a_case() -> None:
    said = " ".join(verdict(of).sentence for of, _ in CONTRADICTIONS.values())
    two = machine(XEON, "x86_64", gpus=(CUDA,))
    said += verdict(two.model_copy(update={"gpus": two.gpus * 2})).sentence
    assert [words for words in RULES if words not in said] == []
