"""Self-tests: which faults of a simulated device they find, and that such a device is refused."""

import functools
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.agent.test_resume import OPEN, RUN_ID, Quiet, measure
from tests.fakes.device import DeviceEngine, Fault
from tests.fakes.results import make_machine
from typer.testing import CliRunner

from bench_agent.base.home import Home
from bench_agent.base.messages import FoundDevice, Probe, SelfTestAnswer, SelfTestTask
from bench_agent.base.self_test import (
    LEAST_GROWTH,
    MOST_LEFT,
    Figures,
    Numbers,
    Waiting,
    kept_bits,
    problems,
)
from bench_agent.cli import ab as cli_ab
from bench_agent.cli import run as cli_run
from bench_agent.cli.main import app
from bench_agent.doctor import table
from bench_agent.doctor.frameworks import to_test
from bench_agent.plan.plan import Selection, make_plan
from bench_agent.plan.presets import PRESETS
from bench_agent.remote.outbox import Outbox
from bench_agent.run import interpreters, journal, self_test
from bench_agent.run.ab import RunFailed, Side
from bench_agent.run.context import RunContext
from bench_agent.run.patience import Place
from bench_agent.run.run import run_plan
from bench_agent.run.self_test import SelfTests
from bench_agent.run.worker_process import run_task
from bench_agent.worker import main as worker_main
from bench_agent.worker import self_test as worker_self_test
from bench_protocol.catalogue.matrix import Device, Precision
from bench_protocol.payload.result import Failed, Measured

WORKER = Path(__file__).parent.parent / "fakes" / "device_worker.py"
CPU = Device(kind="cpu")
DESCRIBED = functools.cache(interpreters.describe)
FOUND = {"mlx": Probe(devices=(FoundDevice(kind="cpu", index=0, name="CPU"),), environment=None)}
RIGHT: dict[Precision, tuple[int, bool]] = {
    "float32": (20, True),
    "tf32": (10, True),
    "mixed_float16": (10, False),
    "mixed_bfloat16": (7, True),
}
BROKEN: list[tuple[Fault, str]] = [
    ("does not wait", "synchronisation does not wait"),
    ("waits for half", "50 % of it is left"),
    ("waits only for a full queue", "synchronisation does not wait"),
    ("faster than its bound", "TFLOP/s, the device at most"),
    ("float32 in tf32", "dense layers keep 10 bits of a fraction, float32 keeps 20 or more"),
    ("corrupt copy", "batches do not arrive as they were sent"),
    ("raises", "measured nothing: unavailable (ImportError)"),
]


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Puts a device into this process, which answers at once, or into a real worker."""

    def place(fault: Fault, in_worker: bool = False) -> None:
        def here(task: SelfTestTask, *_: object) -> SelfTestAnswer:
            engine = DeviceEngine(fault)
            monkeypatch.setattr(worker_main, "engine_named", lambda name: engine)
            return worker_main.tested(task, lambda: engine.device.now_ns)

        command = [sys.executable, str(WORKER), fault]
        monkeypatch.setattr(self_test, "worker_command", lambda python=None: command)
        monkeypatch.setattr(self_test, "run_task", run_task if in_worker else here)

    answers = {(None, "mlx"): FOUND["mlx"]}
    monkeypatch.setattr(interpreters, "describe", DESCRIBED)
    monkeypatch.setattr(table, "probe_each", lambda *_: answers)
    monkeypatch.setattr(cli_run, "probe_frameworks", lambda *_: FOUND)
    monkeypatch.setenv("BENCH_HOME", str(tmp_path))
    place("none")
    return place


def doctor() -> tuple[int, dict[str, dict[str, str]]]:
    done = CliRunner().invoke(app, ["doctor", "--deep", "--only", "self-test", "--json"])
    return done.exit_code, {f["id"]: f for f in json.loads(done.stdout)["findings"]}


def measured(fault: Fault, seed: int = 0) -> Figures:
    engine = DeviceEngine(fault, seed)

    def timed(action: Callable[[], object]) -> int:
        began = engine.device.now_ns
        action()
        return engine.device.now_ns - began

    task = SelfTestTask(framework="mlx", device=CPU, precision="float32", recipes=("naive",))
    return worker_self_test.measure(engine, task, timed)


@pytest.mark.parametrize(("fault", "words"), BROKEN[:-1])
def test_each_fault_is_a_problem(fault: Fault, words: str) -> None:
    assert words in "; ".join(problems(measured(fault), "float32", "cpu", 1e15))


@pytest.mark.parametrize(("fault", "words"), [BROKEN[0], BROKEN[-1]])
def test_doctor_finds_a_fault(device: Callable[..., None], fault: Fault, words: str) -> None:
    device(fault, in_worker=True)
    code, findings = doctor()
    finding = findings["self-test.mlx-cpu-float32"]
    assert (code, finding["verdict"]) == (1, "fail")
    assert words in finding["sentence"]
    assert "install" in finding["hint"]


def test_an_honest_device_passes(device: Callable[[Fault], None]) -> None:
    _, findings = doctor()
    assert findings["self-test.mlx-cpu-float32"]["verdict"] == "ok"
    # Its numbers are float32's, so it does not compute in bfloat16.
    assert "keep 20 bits" in findings["self-test.mlx-cpu-mixed_bfloat16"]["sentence"]


def test_noise_fails_no_honest_device() -> None:
    for seed in range(40):
        waiting = measured("noise", seed).waiting
        assert waiting.waits, (seed, waiting, waiting.growth)


def test_doctor_names_the_variable_that_overrides_a_precision(
    device: Callable[[Fault], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    device("float32 in tf32")
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "1")
    _, findings = doctor()
    assert findings["self-test.mlx-cpu-float32"]["hint"] == "unset NVIDIA_TF32_OVERRIDE"


def test_without_deep_nothing_is_tested(device: Callable[[Fault], None]) -> None:
    done = CliRunner().invoke(app, ["doctor", "--only", "self-test", "--json"])
    (finding,) = json.loads(done.stdout)["findings"]
    assert (done.exit_code, finding["verdict"]) == (0, "skip")


@pytest.mark.parametrize("precision", RIGHT)
def test_each_precision_is_told_from_the_others(precision: Precision) -> None:
    waiting = Waiting(size=512, products=1, durations_ns=(10, 20, 40), left=0.0, tries=5)
    for other, (bits, tiny) in RIGHT.items():
        numbers = Numbers(
            recipe="tuned", convolution_bits=bits, dense_bits=bits, keeps_tiny=tiny, copied=True
        )
        found = list(
            problems(Figures(waiting=waiting, numbers=(numbers,)), precision, "cuda", None)
        )
        assert bool(found) == (other != precision), (other, found)


@pytest.mark.parametrize(
    ("durations_ns", "left", "waits"),
    [
        ((10, 20, 40), 0.0, True),
        ((10, 21, 39), MOST_LEFT, True),
        ((10, 20, 40), MOST_LEFT + 0.01, False),
        ((10, 10, 10), 0.0, False),
        ((20, 22, 30), 0.0, False),
        ((1, 2, 40), 0.0, True),
    ],
)
def test_time_must_follow_the_work(
    durations_ns: tuple[int, int, int], left: float, waits: bool
) -> None:
    waiting = Waiting(size=512, products=1, durations_ns=durations_ns, left=left, tries=5)
    assert waiting.waits == waits
    assert (waiting.growth >= LEAST_GROWTH) == (waits or left > 0)


def test_rounding_up_keeps_no_bit() -> None:
    values = [2.0**-7, 2.0**-8, 2.0**-10, 2.0**-10, 0.0, 0.0, 0.0]
    assert kept_bits(values) == 10
    assert kept_bits([float("nan")] * 7) == 0


def run_here(home: Home) -> tuple[list[Failed | Measured], list[str]]:
    selection = Selection(
        frameworks=("mlx",), workloads=("mnist-dense",), precisions=("float32", "mixed_bfloat16")
    )
    notes = Quiet()
    tests = SelfTests(home, make_machine(), notes.note)
    begun = journal.begin(home, RUN_ID, "0" * 64, make_plan(PRESETS["smoke"], selection, FOUND))
    context = RunContext(home, notes, run_job=measure, gate=OPEN, self_test=tests.refusal)
    summary = run_plan(begun, context)
    return [result.outcome for result in summary.results], notes.notes


def test_a_run_refuses_the_cells_of_a_device_that_fails(
    device: Callable[[Fault], None], tmp_path: Path
) -> None:
    outcomes, notes = run_here(Home(tmp_path))
    right = [outcome for outcome in outcomes if isinstance(outcome, Measured)]
    wrong = [outcome for outcome in outcomes if isinstance(outcome, Failed)]
    assert len(right) == len(wrong) > 0
    assert {(f.kind, f.phase, f.exception_class) for f in wrong} == {
        ("wrong_result", "start", "SelfTestFailed")
    }
    # Each test is announced and run once.
    assert notes[0] == "self-test: mlx on cpu in float32"
    (refused,) = [note for note in notes if "is not measured" in note]
    assert "mixed_bfloat16" in refused
    assert "float16 keeps 7" in refused
    assert "doctor --deep --only self-test" in refused
    assert len(notes) == 3
    stored = [entry.result() for entry in Outbox(Home(tmp_path).outbox).pending()]
    warnings = [warn for result in stored for warn in result.warnings]
    reasons = [warn for warn in warnings if warn.code == "self_test_failed"]
    assert len(reasons) == len(wrong)
    assert all("keep 20 bits" in str(warn.figures["problem"]) for warn in reasons)


def test_the_command_refuses_them_too(device: Callable[[Fault], None], tmp_path: Path) -> None:
    device("does not wait")
    cells = ["--framework", "mlx", "--workload", "mnist-dense", "--recipe", "tuned"]
    arguments = ["run", *cells, "--preset", "smoke", "--wait-seconds", "0", "--json"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 1
    assert "the synchronisation does not wait" in done.output
    (stored,) = [entry.result() for entry in Outbox(Home(tmp_path).outbox).pending()]
    assert stored.outcome == Failed(
        kind="wrong_result", phase="start", exception_class="SelfTestFailed"
    )


@pytest.mark.process
def test_ab_compares_no_device_that_fails(
    device: Callable[[Fault], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compared(*arguments: str) -> tuple[int, list[str]]:
        started: list[str] = []

        def pairs(a: Side, b: Side, *_: object, **__: object) -> list[object]:
            started.extend((a.name, b.name))
            raise RunFailed(a, Failed(kind="crashed", phase="start"), tmp_path)

        monkeypatch.setattr(cli_ab, "pairs", pairs)
        cells = ["--framework", "mlx", "--workload", "mnist-dense"]
        sides = ["--a", "recipe=naive", "--b", "recipe=tuned", *arguments]
        done = CliRunner().invoke(app, ["ab", *cells, *sides])
        output.append(done.output)
        return done.exit_code, started

    output: list[str] = []
    monkeypatch.setattr(cli_ab, "probe_frameworks", lambda *_: FOUND)
    monkeypatch.setattr(cli_ab, "probe_with", lambda *_: FOUND)
    assert compared() == (1, ["A", "B"])  # it passes, and the fake pairs fail
    device("does not wait")
    Home(tmp_path).self_tests.unlink()
    assert compared() == (1, [])
    assert "side A: mlx on cpu in float32 fails its self-test" in output[-1]
    assert "the synchronisation does not wait" in output[-1]
    chosen = ("--a-python", sys.executable, "--b-python", sys.executable)
    assert compared(*chosen) == (1, [])


def test_an_outcome_is_kept_until_its_subject_changes(
    device: Callable[[Fault], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, place = Home(tmp_path), Place("mlx", CPU, None)
    machine, lines = make_machine(), list[str]()

    def tested(machine: object = machine, *, again: bool = False) -> tuple[bool, bool]:
        lines.clear()
        tests = SelfTests(home, machine, lines.append)  # type: ignore[arg-type]
        return bool(tests.outcome(place, "float32", again=again).problems), bool(lines)

    assert tested() == (False, True)
    device("does not wait")
    assert tested() == (False, False)
    assert tested(again=True) == (True, True)
    assert tested() == (True, False)
    newer = machine.os.model_copy(update={"kernel": "99.0"})
    assert tested(machine.model_copy(update={"os": newer})) == (True, True)
    described = interpreters.describe(None)
    assert described is not None
    for change in ({"source": "0" * 64}, {"packages": described.packages | {"mlx": "9.9"}}):
        other = described.model_copy(update=change)
        monkeypatch.setattr(interpreters, "describe", lambda python, other=other: other)
        assert tested() == (True, True)
        assert tested() == (True, False)
    monkeypatch.setenv("MLX_ENABLE_TF32", "1")
    assert tested() == (True, True)
    # One outcome of a device, framework and precision is kept.
    assert len(json.loads(home.self_tests.read_text())["outcomes"]) == 1


def test_a_worker_that_measured_nothing_is_asked_again_in_the_next_run(
    device: Callable[[Fault], None], tmp_path: Path
) -> None:
    device("raises")
    outcomes, _ = run_here(Home(tmp_path))
    assert {o.kind for o in outcomes if isinstance(o, Failed)} == {"unavailable"}
    assert not Home(tmp_path).self_tests.exists()


def test_damaged_outcomes_are_none(device: Callable[[Fault], None], tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.self_tests.write_text("{")
    lines: list[str] = []
    tests = SelfTests(home, make_machine(), lines.append)
    assert not tests.outcome(Place("mlx", CPU, None), "float32").problems
    assert lines


def test_every_precision_of_a_device_is_tested() -> None:
    ampere = FoundDevice(kind="cuda", index=0, name="A100", compute_capability="8.0")
    turing = ampere.model_copy(update={"compute_capability": "7.5"})
    second = ampere.model_copy(update={"index": 1})
    for gpu, expected in ((ampere, list(RIGHT)), (turing, ["float32", "mixed_float16"])):
        probes = {"torch": Probe(devices=(gpu, second), environment=None)}
        assert [precision for _, precision in to_test(probes)] == expected
