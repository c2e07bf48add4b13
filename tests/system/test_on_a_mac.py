"""The agent on macOS, from command line to signed result, with stand-ins of Apple's commands."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.fakes.mac import WAITS, Commands
from tests.system.conftest import Agent, Ran

from bench_agent.remote.outbox import Outbox

MAC_AGENT = Path(__file__).parents[1] / "fakes" / "mac_agent.py"
PRIVATE = ("PLANTEDSER1A", "PLANTEDDISP9", "00AA11BB22CC33DD", "5EC2E7ED", "00000000CAFE")
RUN = (
    "run", "--preset", "smoke", "--workload", "mnist-cnn", "--recipe", "naive", "--framework",
    "tensorflow", "--framework", "mlx", "--device", "metal", "--yes", "--json", "--fresh",
    "--wait-seconds", "0",
)  # fmt: skip
OnMac = Callable[..., Ran]


@pytest.fixture
def commands(tmp_path: Path) -> Commands:
    return Commands(tmp_path / "commands")


@pytest.fixture
def on_mac(agent: Agent, commands: Commands) -> OnMac:
    def run(*arguments: str, **environment: str) -> Ran:
        done = subprocess.run(
            [sys.executable, MAC_AGENT, commands.folder, *arguments],
            capture_output=True,
            text=True,
            env=agent.environment(**environment),
            timeout=240,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    return run


def no_commands(commands: Commands) -> None:
    """An empty folder."""


def failing(commands: Commands) -> None:
    commands.every("print('{ \\x00', file=sys.stderr)\nprint('[', end='')\nsys.exit(77)\n")


def stuck(commands: Commands) -> None:
    commands.every(f"print('hw.memsize', flush=True)\n{WAITS}")


def test_doctor_on_a_whole_mac(on_mac: OnMac, commands: Commands, tmp_path: Path) -> None:
    commands.whole_mac()
    ran = on_mac("doctor", "--json", "--bundle", str(tmp_path / "bundle.txt"))
    bad = [item for item in ran.json()["findings"] if item["verdict"] == "fail"]
    assert (ran.code, bad) == (0, []), ran.stderr
    findings = {item["id"]: item for item in ran.json()["findings"]}
    ok = ("system", "architecture", "metal-pair", "metal.tensorflow", "metal.mlx")
    for name in (*ok, "mlx-backend", "power", "energy"):
        assert findings[name]["verdict"] == "ok", findings[name]
    assert "High Power Mode" in findings["power"]["sentence"]
    assert findings["energy"]["sentence"].endswith("ioreport")
    bundle = (tmp_path / "bundle.txt").read_text()
    assert "tensorflow-metal==1.2.0" in bundle
    assert '"cores": 40' in bundle
    assert not [word for word in (*PRIVATE, str(tmp_path)) if word in bundle]


def test_a_bundle_that_cannot_be_written(on_mac: OnMac, tmp_path: Path) -> None:
    ran = on_mac("doctor", "--only", "python", "--bundle", str(tmp_path / "none" / "bundle.txt"))
    assert ran.code == 2
    assert "cannot write" in ran.stderr


def test_a_run_on_a_whole_mac(on_mac: OnMac, commands: Commands, agent: Agent) -> None:
    commands.whole_mac()
    ran = on_mac(*RUN)
    assert ran.code == 0, ran.stdout + ran.stderr
    results = [entry.result() for entry in Outbox(agent.home / "outbox").pending()]
    assert {(r.cell.framework, r.cell.device.kind) for r in results} == {
        ("tensorflow", "metal"),
        ("mlx", "metal"),
    }
    for result in results:
        machine = result.machine
        assert (machine.os.name, machine.os.version) == ("macos", "26.2")
        assert machine.cpu.brand == "Apple M5 Max"
        assert (machine.model or "").endswith("Mac17,7")
        (gpu,) = machine.gpus
        assert (gpu.kind, gpu.name, gpu.cores) == ("metal", "Apple M5 Max", 40)
        assert result.measurement is not None
        assert result.measurement.placement.matches
        assert result.conditions.thermal_pressure == "nominal"
        assert result.conditions.gpu_utilisation_percent == 17
        assert not [word for word in PRIVATE if word in result.model_dump_json()]
    names = [call.split()[0] for call in commands.calls]
    assert "powermetrics" not in names
    (held,) = [call for call in commands.calls if call.startswith("caffeinate")]
    assert held.startswith("caffeinate -i -m -s -w ")
    pid = int(held.split()[-1])
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.long
@pytest.mark.parametrize("situation", [no_commands, failing, stuck])
def test_a_mac_whose_commands_do_not_answer_is_measured_too(
    on_mac: OnMac, commands: Commands, agent: Agent, situation: Callable[[Commands], None]
) -> None:
    situation(commands)
    doctor = on_mac("doctor", "--json", "--only", "power", "--only", "metal")
    assert doctor.code == 0, doctor.stdout + doctor.stderr
    ran = on_mac(*RUN)
    assert ran.code == 0, ran.stdout + ran.stderr
    assert "Traceback" not in ran.stderr
    results = [entry.result() for entry in Outbox(agent.home / "outbox").pending()]
    assert len(results) == 2
    for result in results:
        assert result.machine.cpu.brand == "unknown Apple CPU"
        assert result.machine.gpus == ()
        assert result.conditions.thermal_pressure is None
