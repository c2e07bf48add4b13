"""Doctor's checks of the frameworks and of NVIDIA's driver, as pure functions."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.fakes.findings import only, verdicts

from bench_agent.doctor import frameworks, gpu
from bench_agent.doctor.finding import Finding, exit_code
from bench_agent.doctor.frameworks import BUNDLED_BLAS, FrameworkProbe, Software
from bench_agent.doctor.gpu import Nvidia

GOOD = FrameworkProbe(installed=True, devices=("cpu",), version="1.0")
BROKEN = FrameworkProbe(installed=True, problem="ImportError: libfoo.so")
ABSENT = FrameworkProbe(installed=False)
CUDA_CPU = FrameworkProbe(installed=True, devices=("cuda", "cpu"))


def test_frameworks() -> None:
    installed = {"tensorflow-cpu": "2.21.0", "tensorflow": "2.21.0", "numpy": "2.4.6"}

    def check(seen: Mapping[str, FrameworkProbe]) -> list[Finding]:
        software = Software(installed)
        having = {name: replace(probe, software=software) for name, probe in seen.items()}
        return list(frameworks.check_frameworks(having))

    assert verdicts(check({"mlx": GOOD, "tensorflow": ABSENT})) == {
        "mlx": "ok",
        "tensorflow": "skip",
    }
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
    assert nothing[-1].hint is not None
    assert nothing[-1].hint.endswith("locks/tensorflow.txt")


def test_a_mac_without_metal_is_said() -> None:
    seen = {"mlx": FrameworkProbe(installed=True, devices=("metal", "cpu")), "tensorflow": GOOD}
    seen_verdicts = verdicts(gpu.check_metal(seen, apple_silicon=True))
    assert seen_verdicts == {"mlx": "ok", "tensorflow": "warn"}


@pytest.mark.parametrize(
    ("devices", "verdict", "words"),
    [(("cpu",), "skip", "an environment of its own"), (("metal", "cpu"), "ok", "never tested")],
)
def test_jax_on_metal_is_marked(devices: tuple[str, ...], verdict: str, words: str) -> None:
    seen = {"jax": FrameworkProbe(installed=True, devices=devices)}
    (finding,) = gpu.check_metal(seen, apple_silicon=True)
    assert finding.verdict == verdict
    assert words in finding.sentence


@pytest.mark.parametrize(
    ("packages", "verdict", "hint"),
    [
        ({"mlx": "0.32.4"}, "fail", "'mlx[cpu]==0.32.4'"),
        ({"mlx": "0.32.4", "mlx-cpu": "0.32.4"}, "ok", ""),
        (
            {"mlx": "0.32.4", "mlx-cpu": "0.31.0"},
            "fail",
            "--force-reinstall --no-deps mlx==0.32.4 mlx-cpu==0.32.4",
        ),
        ({}, "skip", ""),
    ],
)
def test_mlx_backend(packages: Mapping[str, str], verdict: str, hint: str) -> None:
    actual, actual_hint = only(frameworks.check_mlx_backend(Software(packages), "Linux"))
    assert actual == verdict
    assert hint in actual_hint


def test_mlx_blas_and_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frameworks, "system_package", lambda need: f"install {need}")
    slow = FrameworkProbe(installed=True, devices=("cpu",), blas=BUNDLED_BLAS)
    fast = FrameworkProbe(installed=True, devices=("cpu",), blas="libopenblas.so.0")
    assert only(frameworks.check_mlx_blas(slow, "Linux")) == ("warn", "install blas")
    assert only(frameworks.check_mlx_blas(fast, "Linux"))[0] == "ok"
    assert only(frameworks.check_mlx_blas(CUDA_CPU, "Linux"))[0] == "skip"
    assert only(frameworks.check_mlx_blas(slow, "Darwin"))[0] == "skip"
    assert only(frameworks.check_compiler(slow, "Linux", compiler=False)) == ("warn", "install g++")
    assert only(frameworks.check_compiler(slow, "Linux", compiler=True))[0] == "ok"
    assert only(frameworks.check_compiler(None, "Linux", compiler=False))[0] == "skip"


@pytest.mark.parametrize(
    ("facts", "container", "tools", "verdict", "hint"),
    [
        (Nvidia(), False, (), "skip", ""),
        (Nvidia(driver="580.1"), False, (), "ok", ""),
        (Nvidia(driver="580.1", hidden=True), False, (), "warn", "unset CUDA_VISIBLE_DEVICES"),
        (
            Nvidia(present=True, problem="Driver/library version mismatch"),
            False,
            (),
            "fail",
            "reboot",
        ),
        (Nvidia(present=True, problem="Not Found"), True, (), "warn", "--gpus all"),
        (Nvidia(present=True), False, ("apt-get",), "warn", "nvidia-driver"),
        (Nvidia(present=True), False, ("apt-get", "ubuntu-drivers"), "warn", "ubuntu-drivers"),
    ],
)
def test_nvidia_driver(
    facts: Nvidia, container: bool, tools: tuple[str, ...], verdict: str, hint: str
) -> None:
    actual, actual_hint = only(gpu.check_driver(facts, container, tools))
    assert actual == verdict
    assert hint in actual_hint


NEW, MIDDLE, OLD = (
    Nvidia(driver=driver, capabilities=("9.0",)) for driver in ("580.65", "560.35", "535.1")
)


@pytest.mark.parametrize(
    ("facts", "seen", "packages", "verdict", "hint"),
    [
        (Nvidia(), GOOD, {"mlx": "0.32.4"}, "skip", ""),
        (NEW, ABSENT, {}, "skip", ""),
        (NEW, CUDA_CPU, {"mlx": "0.32.4", "mlx-cuda-13": "0.32.4"}, "ok", ""),
        (NEW, GOOD, {"mlx": "0.32.4", "mlx-cpu": "0.32.4"}, "warn", "mlx[cuda12]==0.32.4"),
        (NEW, GOOD, {"mlx": "0.32.4", "nvidia-cudnn-cu13": "9.20"}, "warn", "mlx[cuda13]==0.32.4"),
        (MIDDLE, GOOD, {"mlx": "0.32.4", "mlx-cpu": "0.32.4"}, "warn", "mlx[cuda12]==0.32.4"),
        (MIDDLE, BROKEN, {"mlx": "0.32.4", "mlx-cuda-13": "0.32.4"}, "fail", "clean install"),
        (OLD, BROKEN, {"mlx": "0.32.4", "mlx-cuda-12": "0.32.4"}, "fail", "nvidia-driver"),
        (OLD, GOOD, {"mlx": "0.32.4", "mlx-cpu": "0.32.4"}, "warn", "nvidia-driver"),
        (NEW, GOOD, {"mlx": "0.32.4", "mlx-cuda-13": "0.32.4"}, "warn", "reinstall --no-deps mlx="),
        (Nvidia(driver="580.1", capabilities=("6.1",)), GOOD, {"mlx": "0.32.4"}, "skip", ""),
    ],
)
def test_mlx_beside_an_nvidia_gpu(
    facts: Nvidia, seen: FrameworkProbe, packages: Mapping[str, str], verdict: str, hint: str
) -> None:
    having = {"mlx": replace(seen, software=Software(packages))}
    actual, actual_hint = only(gpu.check_cuda(facts, having))
    assert actual == verdict
    assert hint in actual_hint


@pytest.mark.parametrize(
    ("facts", "seen", "packages", "verdict", "hint"),
    [
        (Nvidia(), GOOD, {}, "skip", ""),
        (NEW, ABSENT, {}, "skip", ""),
        (NEW, CUDA_CPU, {"tensorflow": "2.21.0"}, "ok", ""),
        (NEW, GOOD, {"tensorflow-cpu": "2.21.0"}, "warn", "locks/tensorflow-cuda.txt"),
        (NEW, GOOD, {"tensorflow": "2.21.0"}, "warn", "tensorflow[and-cuda]==2.21.0"),
        (
            NEW,
            GOOD,
            {"tensorflow": "2.21.0", "nvidia-cudnn-cu13": "9.20"},
            "warn",
            "clean install frameworks",
        ),
    ],
)
def test_tensorflow_beside_an_nvidia_gpu(
    facts: Nvidia, seen: FrameworkProbe, packages: Mapping[str, str], verdict: str, hint: str
) -> None:
    having = {"tensorflow": replace(seen, software=Software(packages))}
    actual, actual_hint = only(gpu.check_cuda(facts, having))
    assert actual == verdict
    assert hint in actual_hint


def test_nothing_that_works_beside_cuda_12_brings_no_second_cuda(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(frameworks, "has_cuda_12", lambda: True)
    seen = dict.fromkeys(("tensorflow", "mlx", "jax", "torch"), ABSENT)
    hint = list(frameworks.check_frameworks(seen))[-1].hint or ""
    assert hint.count("-r ") == 2
    assert hint.endswith("locks/mlx-cuda.txt")


@pytest.mark.parametrize(
    ("facts", "seen", "verdict"),
    [
        (Nvidia(), {"jax": GOOD}, {"": "skip"}),
        (NEW, {"jax": CUDA_CPU, "torch": GOOD}, {"jax": "ok", "torch": "warn"}),
        (NEW, {"jax": BROKEN, "torch": ABSENT}, {"jax": "skip", "torch": "skip"}),
    ],
)
def test_jax_and_pytorch_beside_an_nvidia_gpu(
    facts: Nvidia, seen: Mapping[str, FrameworkProbe], verdict: Mapping[str, str]
) -> None:
    findings = list(gpu.check_cuda(facts, seen))
    assert verdicts(findings) == verdict
    for finding in findings:
        assert (finding.verdict == "warn") == ("frameworks" in (finding.hint or ""))
