"""Doctor's checks, each as a function of the facts that it reads: verdicts and fixes."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from bench_agent.base.home import Home
from bench_agent.base.keys import load_or_create_key, machine_hash
from bench_agent.doctor import frameworks, gpu, storage, system
from bench_agent.doctor.finding import Finding, exit_code
from bench_agent.doctor.frameworks import BUNDLED_BLAS, FrameworkProbe, Software
from bench_agent.doctor.gpu import Nvidia
from bench_agent.machine.sensors import Power

GOOD = FrameworkProbe(installed=True, devices=("cpu",), version="1.0")
BROKEN = FrameworkProbe(installed=True, problem="ImportError: libfoo.so")
ABSENT = FrameworkProbe(installed=False)
CUDA_CPU = FrameworkProbe(installed=True, devices=("cuda", "cpu"))
METAL_CPU = FrameworkProbe(installed=True, devices=("metal", "cpu"))
SLOW = FrameworkProbe(installed=True, devices=("cpu",), blas=BUNDLED_BLAS)
FAST = FrameworkProbe(installed=True, devices=("cpu",), blas="libopenblas.so.0")
NEW, MIDDLE, OLD = (
    Nvidia(driver=driver, capabilities=("9.0",)) for driver in ("580.65", "560.35", "535.1")
)
PRESENT = Nvidia(present=True)
MISMATCH = Nvidia(present=True, problem="Driver/library version mismatch")
NO_PACKAGES: Mapping[str, str] = {}
ONLY_MLX, BOTH = {"mlx": "0.32.4"}, "--no-deps mlx==0.32.4 mlx-cpu==0.32.4"
X = Path("/x")
Found = Iterable[Finding]
Check = Callable[..., Found]


def verdicts(findings: Found) -> dict[str, str]:
    return {finding.id: finding.verdict for finding in findings}


def only(findings: Found) -> tuple[str, str]:
    (finding,) = findings
    assert finding.verdict in ("ok", "skip") or finding.hint
    return finding.verdict, finding.hint or ""


def pair(tensorflow: str, plugin: str, numpy: str, on_mac: bool = True) -> Found:
    named = {"tensorflow": tensorflow, "tensorflow-metal": plugin, "numpy": numpy}
    software = Software({name: version for name, version in named.items() if version})
    return gpu.check_pair(software, apple_silicon=on_mac)


def cuda(
    facts: Nvidia, name: str, seen: FrameworkProbe, packages: Mapping[str, str] = NO_PACKAGES
) -> Found:
    own = {"mlx": {"mlx": "0.32.4"}, "tensorflow": {"tensorflow": "2.21.0"}}.get(name, {})
    if "tensorflow-cpu" in packages:
        own = {}
    return gpu.check_cuda(facts, {name: replace(seen, software=Software({**own, **packages}))})


def backend(packages: Mapping[str, str]) -> Found:
    return frameworks.check_mlx_backend(Software(packages), "Linux")


@pytest.mark.parametrize(
    ("check", "facts", "verdict", "hint"),
    [
        (system.check_python, ((3, 11), "Linux"), "ok", ""),
        (system.check_python, ((3, 14), "Darwin"), "ok", ""),
        (system.check_python, ((3, 14), "Linux"), "ok", ""),
        (system.check_python, ((3, 10), "Darwin"), "warn", "--python 3.13"),
        (system.check_python, ((3, 15), "Linux"), "warn", "--python 3.13"),
        (system.check_architecture, ("Darwin", "x86_64", True), "fail", "arch -arm64"),
        (system.check_architecture, ("Linux", "x86_64", True), "fail", "--platform linux/arm64"),
        (system.check_architecture, ("Darwin", "arm64", False), "ok", ""),
        (system.check_architecture, ("Linux", "aarch64", False), "ok", ""),
        (system.check_architecture, ("Darwin", "x86_64", False), "warn", ""),
        (system.check_architecture, ("Linux", "riscv64", False), "warn", ""),
        (system.check_system, ("Windows", None, ()), "fail", "wsl --install"),
        (system.check_system, ("Linux", 1, ()), "fail", "--set-version"),
        (system.check_system, ("Linux", 2, ()), "ok", ""),
        (system.check_system, ("Linux", None, ()), "ok", ""),
        (system.check_system, ("Darwin", None, (13, 6)), "warn", "softwareupdate"),
        (system.check_system, ("Darwin", None, (15, 7)), "ok", ""),
        (system.check_system, ("Darwin", None, (26,)), "warn", "softwareupdate"),
        (system.check_system, ("Darwin", None, (26, 1)), "warn", "softwareupdate"),
        (system.check_system, ("Darwin", None, (26, 2)), "ok", ""),
        (system.check_glibc, ("Linux", (2, 36)), "ok", ""),
        (system.check_glibc, ("Linux", (2, 31)), "warn", "docker run"),
        (system.check_glibc, ("Linux", ()), "fail", "docker run"),
        (system.check_glibc, ("Darwin", ()), "skip", ""),
        (system.check_power, (Power(), "Linux"), "skip", ""),
        (system.check_power, (Power(False, False), "Darwin"), "ok", ""),
        (system.check_power, (Power(None, False), "Linux"), "ok", ""),
        (system.check_energy, (None, "not readable", "Linux"), "skip", ""),
        (system.check_energy, ("nvml", None, "Linux"), "ok", ""),
        (system.check_energy, (None, "no library", "Darwin"), "warn", "locks/energy.txt"),
        (storage.check_disk, (X, None), "skip", ""),
        (storage.check_disk, (X, 2**40), "ok", ""),
        (storage.check_disk, (X, 2**30), "warn", "delete large files"),
        (storage.check_disk, (X, 2**20), "fail", "delete large files on the disk of /x"),
        (frameworks.check_mlx_blas, (SLOW, "Linux"), "warn", "install blas"),
        (frameworks.check_mlx_blas, (FAST, "Linux"), "ok", ""),
        (frameworks.check_mlx_blas, (CUDA_CPU, "Linux"), "skip", ""),
        (frameworks.check_mlx_blas, (SLOW, "Darwin"), "skip", ""),
        (frameworks.check_compiler, (SLOW, "Linux", False), "warn", "install g++"),
        (frameworks.check_compiler, (SLOW, "Linux", True), "ok", ""),
        (frameworks.check_compiler, (None, "Linux", False), "skip", ""),
        (backend, (ONLY_MLX,), "fail", "'mlx[cpu]==0.32.4'"),
        (backend, (ONLY_MLX | {"mlx-cpu": "0.32.4"},), "ok", ""),
        (backend, (ONLY_MLX | {"mlx-cpu": "0.31.0"},), "fail", BOTH),
        (backend, ({},), "skip", ""),
        (gpu.check_driver, (Nvidia(), False, ()), "skip", ""),
        (gpu.check_driver, (Nvidia(driver="580.1"), False, ()), "ok", ""),
        (gpu.check_driver, (Nvidia(driver="580.1", hidden=True), False, ()), "warn", "unset CUDA_"),
        (gpu.check_driver, (MISMATCH, False, ()), "fail", "reboot"),
        (gpu.check_driver, (PRESENT, True, ()), "warn", "--gpus all"),
        (gpu.check_driver, (PRESENT, False, ("apt-get",)), "warn", "nvidia-driver"),
        (gpu.check_driver, (PRESENT, False, ("apt-get", "ubuntu-drivers")), "warn", "ubuntu-dr"),
        (pair, ("2.18.1", "1.2.0", "2.0.2"), "ok", ""),
        (pair, ("2.19.1", "1.2.0", "2.1.3"), "ok", ""),
        (pair, ("2.18.1", "1.2.0", "2.1.3"), "warn", "'numpy<2.1'"),
        (pair, ("2.19.0", "1.2.0", "2.2.0"), "warn", "'numpy<2.2'"),
        (pair, ("2.20.0", "1.2.0", ""), "fail", "'tensorflow>=2.18,<2.20'"),
        (pair, ("2.21.0rc1", "1.2.0", ""), "fail", "<2.20"),
        (pair, ("2.21.0", "1.1.0", ""), "fail", "<2.20' tensorflow-metal==1.2.0"),
        (pair, ("2.18.0", "1.1.0", ""), "fail", "tensorflow-metal==1.2.0"),
        (pair, ("2.16.2", "1.2.0", ""), "warn", "tensorflow>=2.18"),
        (pair, ("odd", "1.2.0", ""), "warn", "tensorflow>=2.18"),
        (pair, ("", "1.2.0", ""), "fail", "tensorflow>=2.18,<2.20"),
        (pair, ("2.19.1", "", ""), "warn", "tensorflow-metal==1.2.0"),
        (pair, ("2.21.0", "", ""), "warn", "tensorflow>=2.18,<2.20"),
        (pair, ("", "", ""), "skip", ""),
        (pair, ("2.19.1", "", "", False), "skip", ""),  # elsewhere no plug-in is missed
        (cuda, (Nvidia(), "mlx", GOOD), "skip", ""),
        (cuda, (NEW, "mlx", ABSENT), "skip", ""),
        (cuda, (NEW, "mlx", CUDA_CPU, {"mlx-cuda-13": "0.32.4"}), "ok", ""),
        (cuda, (NEW, "mlx", GOOD, {"mlx-cpu": "0.32.4"}), "warn", "mlx[cuda12]==0.32.4"),
        (cuda, (NEW, "mlx", GOOD, {"nvidia-cudnn-cu13": "9.20"}), "warn", "mlx[cuda13]==0.32.4"),
        (cuda, (MIDDLE, "mlx", GOOD, {"mlx-cpu": "0.32.4"}), "warn", "mlx[cuda12]==0.32.4"),
        (cuda, (MIDDLE, "mlx", BROKEN, {"mlx-cuda-13": "0.32.4"}), "fail", "clean install"),
        (cuda, (OLD, "mlx", BROKEN, {"mlx-cuda-12": "0.32.4"}), "fail", "nvidia-driver"),
        (cuda, (OLD, "mlx", GOOD, {"mlx-cpu": "0.32.4"}), "warn", "nvidia-driver"),
        (cuda, (NEW, "mlx", GOOD, {"mlx-cuda-13": "0.32.4"}), "warn", "reinstall --no-deps mlx="),
        (cuda, (Nvidia(driver="580.1", capabilities=("6.1",)), "mlx", GOOD), "skip", ""),
        (cuda, (NEW, "tensorflow", CUDA_CPU), "ok", ""),
        (
            cuda,
            (NEW, "tensorflow", GOOD, {"tensorflow-cpu": "2.21.0"}),
            "warn",
            "tensorflow-cuda.txt",
        ),
        (cuda, (NEW, "tensorflow", GOOD), "warn", "tensorflow[and-cuda]==2.21.0"),
        (cuda, (NEW, "tensorflow", GOOD, {"nvidia-cudnn-cu13": "9.20"}), "warn", "clean install"),
        (cuda, (NEW, "jax", CUDA_CPU), "ok", ""),
        (cuda, (NEW, "jax", BROKEN), "skip", ""),
        (cuda, (NEW, "torch", GOOD), "warn", "install"),
    ],
)
def test_a_check_of_one_finding(
    check: Check,
    facts: tuple[object, ...],
    verdict: str,
    hint: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(frameworks, "system_package", lambda need: f"install {need}")
    (finding,) = check(*facts)
    assert finding.verdict == verdict
    assert hint in (finding.hint or "")
    assert bool(finding.hint) == bool(hint)


def test_frameworks() -> None:
    installed = {"tensorflow-cpu": "2.21.0", "tensorflow": "2.21.0", "numpy": "2.4.6"}

    def check(seen: Mapping[str, FrameworkProbe]) -> list[Finding]:
        software = Software(installed)
        having = {name: replace(probe, software=software) for name, probe in seen.items()}
        return list(frameworks.check_frameworks(having))

    seen = verdicts(check({"mlx": GOOD, "tensorflow": ABSENT}))
    assert seen == {"mlx": "ok", "tensorflow": "skip"}
    assert verdicts(check({"mlx": GOOD, "tensorflow": BROKEN}))["tensorflow"] == "fail"
    hint = check({"tensorflow": BROKEN})[0].hint or ""
    pins = "tensorflow==2.21.0 tensorflow-cpu==2.21.0"
    assert f"install --force-reinstall --no-deps {pins} && " in hint
    assert hint.endswith(f"install {pins}")
    installed = {"mlx": "0.32.4", "mlx-cpu": "0.31.0", "mlx-lm": "0.30.1"}
    hint = check({"mlx": BROKEN})[0].hint or ""
    assert "--no-deps mlx==0.32.4 mlx-cpu==0.32.4 mlx-lm==0.30.1 && " in hint
    nothing = check({"mlx": ABSENT, "tensorflow": ABSENT})
    assert exit_code(nothing) == 1
    assert (nothing[-1].hint or "").endswith("locks/tensorflow.txt")


def test_nothing_that_works_beside_cuda_12_brings_no_second_cuda(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(frameworks, "has_cuda_12", lambda: True)
    seen = dict.fromkeys(("tensorflow", "mlx", "jax", "torch"), ABSENT)
    hint = list(frameworks.check_frameworks(seen))[-1].hint or ""
    assert hint.count("-r ") == 2
    assert hint.endswith("locks/mlx-cuda.txt")


@pytest.mark.parametrize(
    ("name", "seen", "verdict", "words"),
    [
        ("mlx", METAL_CPU, "ok", "sees"),
        ("tensorflow", GOOD, "warn", "CPU only"),
        ("jax", GOOD, "skip", "an environment of its own"),
        ("jax", METAL_CPU, "ok", "never tested"),
    ],
)
def test_frameworks_on_a_mac(name: str, seen: FrameworkProbe, verdict: str, words: str) -> None:
    (finding,) = gpu.check_metal({name: seen}, apple_silicon=True)
    assert (finding.id, finding.verdict) == (name, verdict)
    assert words in finding.sentence


def test_checks_of_several_findings() -> None:
    power = system.check_power(Power(True, True), "Darwin")
    assert verdicts(power) == {"mode": "warn", "battery": "warn"}


def test_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(problem: str | None, path: Path = tmp_path) -> tuple[str, str]:
        return only(storage.check_home(path, problem, {"HOME": str(tmp_path)}))

    assert check(None)[0] == "ok"
    assert check("Permission denied") == ("fail", f"chmod -R u+rwX {tmp_path}")
    monkeypatch.setattr(storage, "user_folder", lambda: tmp_path / "e")
    assert check("Read-only file system") == ("fail", f"export BENCH_HOME={tmp_path}/e")
    assert check("Permission denied", Path("/none"))[1] == f"export BENCH_HOME={tmp_path}/e"
    monkeypatch.setattr(storage, "why_not_writable", lambda path: "full")
    assert "sudo chown" in check("Read-only file system")[1]


def test_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path)
    assert only(storage.check_keys(home))[0] == "ok"
    load_or_create_key(home)
    machine_hash(home, b"x")
    assert only(storage.check_keys(home))[0] == "ok"
    for path, mode, right in (
        (home.salt, 0o640, "600"),
        (home.salt, 0o000, "600"),
        (home.key.parent, 0o755, "700"),
    ):
        good = path.stat().st_mode
        path.chmod(mode)
        assert only(storage.check_keys(home)) == ("fail", f"chmod {right} {path}")
        path.chmod(good)
    monkeypatch.setattr(storage, "_owned", lambda path: path != home.salt)
    assert "chown" in only(storage.check_keys(home))[1]
