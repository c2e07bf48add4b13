"""Each of doctor's checks, as a function of what it is told."""

import itertools
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bench_agent.doctor import apple, frameworks, mends, network, nvidia, python, quiet, storage
from bench_agent.doctor.finding import Finding, exit_code
from bench_agent.doctor.frameworks import BUNDLED_BLAS, Seen
from bench_agent.doctor.network import ServerAnswer, offset_seconds
from bench_agent.doctor.nvidia import Nvidia
from bench_agent.doctor.quiet import Governor, GpuUse, Load, Power
from bench_agent.doctor.storage import DataSet, Folder, Secret
from bench_agent.doctor.versions import at_least, release


def verdicts(findings: Iterable[Finding]) -> dict[str, str]:
    return {finding.id: finding.verdict for finding in findings}


def only(findings: Iterable[Finding]) -> tuple[str, str]:
    """Verdict and mend of the one finding there is."""
    (finding,) = findings
    assert finding.verdict in ("ok", "skip") or finding.mend
    return finding.verdict, finding.mend or ""


@pytest.mark.parametrize(
    ("packages", "verdict", "mend"),
    [
        ({"tensorflow": "2.18.1", "tensorflow-metal": "1.2.0", "numpy": "2.0.2"}, "ok", ""),
        ({"tensorflow": "2.19.1", "tensorflow-metal": "1.2.0", "numpy": "2.1.3"}, "ok", ""),
        (
            {"tensorflow": "2.18.1", "tensorflow-metal": "1.2.0", "numpy": "2.1.3"},
            "warn",
            "'numpy<2.1'",
        ),
        (
            {"tensorflow": "2.19.0", "tensorflow-metal": "1.2.0", "numpy": "2.2.0"},
            "warn",
            "'numpy<2.2'",
        ),
        ({"tensorflow": "2.20.0", "tensorflow-metal": "1.2.0"}, "fail", "'tensorflow>=2.18,<2.20'"),
        ({"tensorflow": "2.21.0rc1", "tensorflow-metal": "1.2.0"}, "fail", "<2.20"),
        (
            {"tensorflow": "2.21.0", "tensorflow-metal": "1.1.0"},
            "fail",
            "<2.20' tensorflow-metal==1.2.0",
        ),
        ({"tensorflow": "2.18.0", "tensorflow-metal": "1.1.0"}, "fail", "tensorflow-metal==1.2.0"),
        ({"tensorflow": "2.16.2", "tensorflow-metal": "1.2.0"}, "warn", "tensorflow>=2.18"),
        ({"tensorflow": "odd", "tensorflow-metal": "1.2.0"}, "warn", "tensorflow>=2.18"),
        ({"tensorflow-metal": "1.2.0"}, "fail", "tensorflow>=2.18,<2.20"),
        ({"tensorflow": "2.19.1"}, "warn", "tensorflow-metal==1.2.0"),
        ({"tensorflow": "2.21.0"}, "warn", "tensorflow>=2.18,<2.20"),
        ({}, "skip", ""),
    ],
)
def test_pairs_of_tensorflow_and_its_plug_in(
    packages: Mapping[str, str], verdict: str, mend: str
) -> None:
    found, told = only(apple.check_pair(packages, apple_silicon=True))
    assert found == verdict
    assert mend in told


def test_elsewhere_no_plug_in_is_missed() -> None:
    assert only(apple.check_pair({"tensorflow": "2.21.0"}, apple_silicon=False))[0] == "skip"


@pytest.mark.parametrize(
    ("layers", "problem", "verdict"),
    [
        ("stock", None, "ok"),
        ("safe", None, "warn"),
        (None, None, "skip"),
        (None, "wrong result in phase build", "fail"),
        (None, "stalled in phase warm_up", "fail"),
    ],
)
def test_the_metal_probe(layers: str | None, problem: str | None, verdict: str) -> None:
    assert only(apple.check_probe(layers, problem))[0] == verdict


@pytest.mark.parametrize(
    ("version", "system", "machine", "verdict"),
    [
        ((3, 10), "Linux", "x86_64", "fail"),
        ((3, 11), "Linux", "x86_64", "ok"),
        ((3, 12), "Darwin", "arm64", "ok"),
        ((3, 13), "Darwin", "arm64", "warn"),
        ((3, 14), "Linux", "aarch64", "warn"),
    ],
)
def test_python(version: tuple[int, int], system: str, machine: str, verdict: str) -> None:
    found, mend = only(python.check_python(version, system, machine))
    assert found == verdict
    assert verdict == "ok" or "--python 3.12" in mend


def test_architecture() -> None:
    check = python.check_architecture
    assert only(check("Darwin", "x86_64", rosetta=True))[0] == "fail"
    assert only(check("Darwin", "arm64", rosetta=False))[0] == "ok"
    assert only(check("Linux", "aarch64", rosetta=False))[0] == "ok"
    assert verdicts(check("Darwin", "x86_64", rosetta=False)) == {"architecture": "warn"}
    assert verdicts(check("Linux", "riscv64", rosetta=False)) == {"architecture": "warn"}


@pytest.mark.parametrize(
    ("system", "wsl", "version", "verdict", "mend"),
    [
        ("Windows", None, (), "fail", "wsl --install"),
        ("Linux", 1, (), "fail", "--set-version"),
        ("Linux", 2, (), "ok", ""),
        ("Linux", None, (), "ok", ""),
        ("Darwin", None, (13, 6), "warn", "softwareupdate"),
        ("Darwin", None, (26, 1), "ok", ""),
    ],
)
def test_system(
    system: str, wsl: int | None, version: tuple[int, ...], verdict: str, mend: str
) -> None:
    found, told = only(python.check_system(system, wsl, version))
    assert found == verdict
    assert mend in told


def test_glibc() -> None:
    assert only(python.check_glibc("Linux", (2, 36)))[0] == "ok"
    assert only(python.check_glibc("Linux", (2, 31)))[0] == "warn"
    assert only(python.check_glibc("Linux", ()))[0] == "fail"
    assert only(python.check_glibc("Darwin", ()))[0] == "skip"


GOOD = Seen(installed=True, devices=("cpu",), version="1.0")
BROKEN = Seen(installed=True, problem="ImportError: libfoo.so")
ABSENT = Seen(installed=False)


def test_frameworks() -> None:
    installed = {"tensorflow-cpu": "2.21.0", "tensorflow": "2.21.0", "numpy": "2.4.6"}

    def check(seen: Mapping[str, Seen]) -> list[Finding]:
        return list(frameworks.check_frameworks(seen, installed))

    assert verdicts(check({"mlx": GOOD, "tensorflow": ABSENT})) == {
        "frameworks.mlx": "ok",
        "frameworks.tensorflow": "skip",
    }
    assert verdicts(check({"mlx": GOOD, "tensorflow": BROKEN}))["frameworks.tensorflow"] == "fail"
    mend = check({"tensorflow": BROKEN})[0].mend or ""
    assert mend.endswith("install --force-reinstall tensorflow==2.21.0 tensorflow-cpu==2.21.0")
    nothing = check({"mlx": ABSENT, "tensorflow": ABSENT})
    assert exit_code(nothing) == 1
    assert nothing[-1].mend is not None
    assert "'bench-agent[mlx,tensorflow]'" in nothing[-1].mend


def test_a_mac_without_metal_is_said() -> None:
    seen = {"mlx": Seen(installed=True, devices=("metal", "cpu")), "tensorflow": GOOD}
    found = verdicts(frameworks.check_metal(seen, {}, apple_silicon=True))
    assert found == {"metal.mlx": "ok", "metal.tensorflow": "warn"}


@pytest.mark.parametrize(
    ("packages", "verdict", "mend"),
    [
        ({"mlx": "0.32.4"}, "fail", "'mlx[cpu]==0.32.4'"),
        ({"mlx": "0.32.4", "mlx-cpu": "0.32.4"}, "ok", ""),
        ({"mlx": "0.32.4", "mlx-cpu": "0.31.0"}, "fail", "mlx-cpu==0.32.4"),
        (
            {"mlx": "0.32.4", "mlx-cpu": "0.32.4", "mlx-cuda-13": "0.32.4"},
            "warn",
            "mlx-cuda-13==0.32.4",
        ),
        ({}, "skip", ""),
    ],
)
def test_mlx_backend(packages: Mapping[str, str], verdict: str, mend: str) -> None:
    found, told = only(frameworks.check_mlx_backend(packages, "Linux"))
    assert found == verdict
    assert mend in told


def test_mlx_blas_and_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frameworks, "system_package", lambda need: f"install {need}")
    slow = Seen(installed=True, devices=("cpu",), libraries={"blas": BUNDLED_BLAS})
    fast = Seen(installed=True, devices=("cpu",), libraries={"blas": "libopenblas.so.0"})
    gpu = Seen(installed=True, devices=("cuda", "cpu"))
    assert only(frameworks.check_mlx_blas(slow, "Linux")) == ("warn", "install blas")
    assert only(frameworks.check_mlx_blas(fast, "Linux"))[0] == "ok"
    assert only(frameworks.check_mlx_blas(gpu, "Linux"))[0] == "skip"
    assert only(frameworks.check_mlx_blas(slow, "Darwin"))[0] == "skip"
    assert only(frameworks.check_compiler(slow, "Linux", compiler=False)) == ("warn", "install g++")
    assert only(frameworks.check_compiler(slow, "Linux", compiler=True))[0] == "ok"
    assert only(frameworks.check_compiler(None, "Linux", compiler=False))[0] == "skip"


@pytest.mark.parametrize(
    ("facts", "container", "tools", "verdict", "mend"),
    [
        (Nvidia(), False, (), "skip", ""),
        (Nvidia(driver="580.1"), False, (), "ok", ""),
        (Nvidia(driver="580.1", hidden=True), False, (), "warn", "unset CUDA_VISIBLE_DEVICES"),
        (
            Nvidia(on_bus=True, problem="Driver/library version mismatch"),
            False,
            (),
            "fail",
            "reboot",
        ),
        (Nvidia(kernel_driver=True, problem="Not Found"), True, (), "warn", "--gpus all"),
        (Nvidia(on_bus=True), False, ("apt-get",), "warn", "nvidia-driver"),
        (Nvidia(on_bus=True), False, ("apt-get", "ubuntu-drivers"), "warn", "ubuntu-drivers"),
    ],
)
def test_nvidia_driver(
    facts: Nvidia, container: bool, tools: tuple[str, ...], verdict: str, mend: str
) -> None:
    found, told = only(nvidia.check_driver(facts, container, tools))
    assert found == verdict
    assert mend in told


CUDA_CPU = Seen(installed=True, devices=("cuda", "cpu"))
NEW, MIDDLE, OLD = (
    Nvidia(driver=driver, capabilities=("9.0",)) for driver in ("580.65", "560.35", "535.1")
)


@pytest.mark.parametrize(
    ("facts", "seen", "packages", "verdict", "mend"),
    [
        (Nvidia(), GOOD, {"mlx": "0.32.4"}, "skip", ""),
        (NEW, ABSENT, {}, "skip", ""),
        (NEW, CUDA_CPU, {"mlx": "0.32.4", "mlx-cuda-13": "0.32.4"}, "ok", ""),
        (NEW, GOOD, {"mlx": "0.32.4", "mlx-cpu": "0.32.4"}, "warn", "mlx[cuda13]==0.32.4"),
        (MIDDLE, GOOD, {"mlx": "0.32.4", "mlx-cpu": "0.32.4"}, "warn", "mlx[cuda12]==0.32.4"),
        (MIDDLE, BROKEN, {"mlx": "0.32.4", "mlx-cuda-13": "0.32.4"}, "fail", "mlx[cuda12]==0.32.4"),
        (OLD, BROKEN, {"mlx": "0.32.4", "mlx-cuda-12": "0.32.4"}, "fail", "nvidia-driver"),
        (OLD, GOOD, {"mlx": "0.32.4", "mlx-cpu": "0.32.4"}, "warn", "nvidia-driver"),
        (NEW, GOOD, {"mlx": "0.32.4", "mlx-cuda-13": "0.32.4"}, "warn", "--force-reinstall"),
        (Nvidia(driver="580.1", capabilities=("6.1",)), GOOD, {"mlx": "0.32.4"}, "skip", ""),
    ],
)
def test_mlx_beside_an_nvidia_gpu(
    facts: Nvidia, seen: Seen, packages: Mapping[str, str], verdict: str, mend: str
) -> None:
    found, told = only(nvidia.check_cuda_mlx(facts, seen, packages))
    assert found == verdict
    assert mend in told


@pytest.mark.parametrize(
    ("facts", "seen", "packages", "verdict", "mend"),
    [
        (Nvidia(), GOOD, {}, "skip", ""),
        (NEW, ABSENT, {}, "skip", ""),
        (NEW, CUDA_CPU, {"tensorflow": "2.21.0"}, "ok", ""),
        (NEW, GOOD, {"tensorflow-cpu": "2.21.0"}, "warn", "bench-agent[tensorflow-cuda]"),
        (NEW, GOOD, {"tensorflow": "2.21.0"}, "warn", "tensorflow[and-cuda]==2.21.0"),
    ],
)
def test_tensorflow_beside_an_nvidia_gpu(
    facts: Nvidia, seen: Seen, packages: Mapping[str, str], verdict: str, mend: str
) -> None:
    found, told = only(nvidia.check_cuda_tensorflow(facts, seen, packages))
    assert found == verdict
    assert mend in told


def test_disk() -> None:
    def check(free: int | None, logs: int = 0) -> tuple[str, str]:
        return only(storage.check_disk(Path("/x y"), free, logs, Path("/x y/logs")))

    assert check(None)[0] == "skip"
    assert check(2**40)[0] == "ok"
    assert check(2**30)[0] == "warn"
    assert check(2**20) == ("fail", "du -xh -d 2 '/x y' | sort -h | tail")
    assert check(2**20, 2**30) == ("fail", "rm -r '/x y/logs'")


def test_home() -> None:
    def check(problem: str | None, owned: bool, elsewhere: str | None) -> tuple[str, str]:
        place = Path(elsewhere) if elsewhere else None
        return only(storage.check_home(Folder(Path("/h"), problem, True, owned, place)))

    assert check(None, True, None)[0] == "ok"
    assert check("Permission denied", True, "/e") == ("fail", "chmod -R u+rwX /h")
    assert check("Permission denied", False, "/e") == ("fail", "export BENCH_HOME=/e")
    assert check("Read-only file system", True, "/e") == ("fail", "export BENCH_HOME=/e")
    assert "sudo chown" in check("Permission denied", False, None)[1]


def test_keys() -> None:
    good = Secret(Path("/k/machine.pem"), 0o600, owned=True)
    bad = Secret(Path("/k/salt"), 0o640, owned=True)
    assert verdicts(storage.check_keys(())) == verdicts(storage.check_keys((good,)))
    assert only(storage.check_keys((good, bad))) == ("fail", "chmod 600 /k/salt")
    other = Secret(Path("/k/salt"), 0o600, owned=False)
    assert "chown" in only(storage.check_keys((other,)))[1]
    unreadable = Secret(Path("/k/salt"), 0, owned=True)
    assert only(storage.check_keys((unreadable,))) == ("fail", "chmod 600 /k/salt")


def test_data() -> None:
    here = DataSet("mnist", (), Path("/d"), "")
    away = DataSet("cifar-100", ("c.tar.gz",), Path("/d"), "https://example.org/c.tar.gz")
    assert verdicts(storage.check_data((here, away), {"cifar-100": False})) == {
        "data.mnist": "ok",
        "data": "warn",
    }
    found, mend = only(storage.check_data((away,), {"cifar-100": True}))
    assert found == "ok"
    assert mend == "bench-agent data fetch cifar-100"


def test_server() -> None:
    url = "http://127.0.0.1:1"
    assert only(network.check_server(None))[0] == "skip"
    assert only(network.check_server(ServerAnswer(url, 200)))[0] == "ok"
    assert only(network.check_server(ServerAnswer(url, 404)))[0] == "fail"
    down = ServerAnswer(url, problem="refused")
    assert only(network.check_server(down)) == ("fail", f"bench-agent submit --server {url}")


@pytest.mark.parametrize(
    ("offset", "verdict"),
    [(None, "skip"), (0.7, "ok"), (-4.0, "ok"), (30.0, "warn"), (-900, "fail")],
)
def test_clock(offset: float | None, verdict: str) -> None:
    answer = ServerAnswer("http://x", 200, offset)
    for system in ("Linux", "Darwin"):
        assert only(network.check_clock(answer, system))[0] == verdict


def test_the_clocks_offset_is_taken_at_the_middle_of_the_request() -> None:
    before = datetime(2026, 11, 21, 12, 0, 10, tzinfo=UTC)
    after = before + timedelta(seconds=3)
    assert offset_seconds("Sat, 21 Nov 2026 12:00:00 GMT", before, after) == 11.0
    for odd in (None, "", "yesterday", "Sat, 99 Nov 2026 12:00:00 GMT", "9" * 400):
        assert offset_seconds(odd, before, after) is None


def test_power() -> None:
    assert only(quiet.check_power(Power(), "Linux"))[0] == "skip"
    assert only(quiet.check_power(Power(False, False), "Darwin"))[0] == "ok"
    assert verdicts(quiet.check_power(Power(True, True), "Darwin")) == {
        "power.mode": "warn",
        "power.battery": "warn",
    }


@pytest.mark.parametrize(
    ("governor", "verdict", "mend"),
    [
        (None, "skip", ""),
        (Governor("performance", "acpi-cpufreq"), "ok", ""),
        (Governor("schedutil", "cppc_cpufreq"), "ok", ""),
        (Governor("powersave", "intel_pstate", "balance_performance"), "ok", ""),
        (Governor("powersave", "intel_pstate", "power"), "warn", "balance_performance"),
        (Governor("powersave", "acpi-cpufreq"), "warn", "scaling_governor"),
        (Governor("performance", "intel_pstate", turbo=False), "warn", "no_turbo"),
    ],
)
def test_governor(governor: Governor | None, verdict: str, mend: str) -> None:
    found, told = only(quiet.check_governor(governor))
    assert found == verdict
    assert mend in told


def test_thermal() -> None:
    assert only(quiet.check_thermal(None, None))[0] == "skip"
    assert only(quiet.check_thermal("nominal", None))[0] == "ok"
    assert only(quiet.check_thermal("heavy", None))[0] == "warn"
    assert only(quiet.check_thermal(None, 0))[0] == "ok"
    assert only(quiet.check_thermal(None, 3))[0] == "warn"


def test_busy() -> None:
    assert only(quiet.check_busy(Load(0.1, 8)))[0] == "ok"
    assert only(quiet.check_busy(Load(7.5, 8, 60.0, ("make", 99.0))))[0] == "warn"
    gpus = (GpuUse("NVIDIA L4", 0), GpuUse("NVIDIA L4", 0, 2), GpuUse("Apple M3 Max", 80))
    assert verdicts(quiet.check_busy(Load(None, 8, gpus=gpus))) == {
        "busy": "ok",
        "busy.gpu0": "ok",
        "busy.gpu1": "warn",
        "busy.gpu2": "warn",
    }


def test_what_macos_says_of_power_and_heat() -> None:
    battery = "Now drawing from 'Battery Power'\n -InternalBattery-0 (id=1)\t81%; discharging\n"
    assert quiet.parse_battery(battery) is True
    assert quiet.parse_battery(battery.replace("Battery Power", "AC Power")) is False
    assert quiet.parse_battery("Now drawing from 'AC Power'\n") is None
    assert quiet.parse_low_power("Currently in use:\n lowpowermode         1\n") is True
    assert quiet.parse_low_power(" sleep 1\n") is None
    assert quiet.parse_thermal("com.apple.system.thermalpressurelevel 2\n", "") == "heavy"
    assert quiet.parse_thermal("", "Note: No thermal warning level has been recorded") == "nominal"
    assert quiet.parse_thermal("", "2027-01-01 Thermal Warning Level = 60") == "heavy"
    assert quiet.parse_thermal("", "CPU_Speed_Limit \t= 48\n") == "moderate"
    assert quiet.parse_thermal("", "") is None
    assert quiet.parse_pressure("some avg10=12.50 avg60=1 avg300=1 total=9\nfull ...") == 12.5


def test_versions() -> None:
    assert release("2.19.1rc0+cu12") == (2, 19, 1)
    assert at_least("580.65.06", "580")
    assert not at_least("550.54", "550.54.14")
    assert not at_least("odd", "1")


def test_mends_use_the_tools_that_are_there() -> None:
    command = mends.pip("uninstall", "-y", "x", python="/p y", has_pip=True)
    assert command == "'/p y' -m pip uninstall -y x"
    assert (
        mends.pip("uninstall", "-y", "x", python="/p", has_pip=False)
        == "uv pip uninstall --python /p x"
    )
    for manager, need in itertools.product(("apt-get", "dnf", "pacman", "apk"), ("g++", "blas")):
        there = {manager: f"/bin/{manager}"}
        told = mends.system_package(need, there.get)
        assert told is not None
        assert told.startswith(manager)
    assert mends.system_package("g++", {}.get) is None
