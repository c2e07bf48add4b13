"""Plans from presets, filters and the frameworks' devices."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.fakes.workloads import TINY, variant
from typer.testing import CliRunner

from bench_agent import engines
from bench_agent.base.errors import UsageProblem
from bench_agent.base.messages import ABSENT, FoundDevice, Probe
from bench_agent.base.precisions import ALL_PRECISIONS
from bench_agent.cli.main import app
from bench_agent.engines import common
from bench_agent.machine import macos as mac
from bench_agent.output.console import console
from bench_agent.output.plan_table import estimate, left_out, print_plan, total_line
from bench_agent.plan.plan import Plan, Selection, make_plan
from bench_agent.plan.presets import LIKE, PRESETS, Preset
from bench_agent.run import calibration
from bench_agent.run.probe import merged
from bench_protocol.catalogue.catalogue import CATALOGUE, REPRESENTATIVE, workload_named
from bench_protocol.catalogue.modern import MODERN

CPU = FoundDevice(kind="cpu", index=0, name="CPU")
GPUS = tuple(FoundDevice(kind="cuda", index=index, name="GPU") for index in (0, 1))
HERE = {
    "mlx": Probe(devices=(CPU,), environment=None),
    "tensorflow": Probe(devices=(*GPUS, CPU), environment=None),
}


def planned(
    preset: str | Preset = "smoke", probes: dict[str, Probe] = HERE, **filters: Any
) -> Plan:
    everywhere = dict.fromkeys(engines.names(), ABSENT) | probes
    chosen = PRESETS[preset] if isinstance(preset, str) else preset
    return make_plan(chosen, Selection(**filters), everywhere)


def test_filters_compose() -> None:
    plan = planned(
        "quick",
        workloads=("fashion-lstm",),
        frameworks=("tensorflow",),
        devices=("cuda:1",),
        recipes=("tuned",),
        batch_sizes=(32, 512),
    )
    cells = [(p.cell.workload, str(p.cell.device), p.cell.batch_size) for p in plan.cells]
    assert cells == [("fashion-lstm", "cuda:1", 32), ("fashion-lstm", "cuda:1", 512)]


@pytest.mark.parametrize(
    ("devices", "planned_devices"),
    [
        ((), {"cuda", "cpu"}),
        (("cuda",), {"cuda"}),
        (("cuda:0",), {"cuda"}),
        (("cuda:1",), {"cuda:1"}),
        (("cuda:all",), {"cuda", "cuda:1"}),
        (("cuda:all", "cpu"), {"cuda", "cuda:1", "cpu"}),
    ],
)
def test_one_gpu_of_a_box_is_planned_unless_more_are_named(
    devices: tuple[str, ...], planned_devices: set[str]
) -> None:
    plan = planned(devices=devices, frameworks=("tensorflow",))
    assert {str(p.cell.device) for p in plan.cells} == planned_devices
    assert bool(plan.excluded) == (not devices)


@pytest.mark.parametrize(
    ("filters", "what", "reason"),
    [
        ({"frameworks": ("tensorflow",)}, "tensorflow on cuda:1", "--device cuda:all plans all"),
        ({"probes": {**HERE, "mlx": ABSENT}}, "mlx", "not installed; bench-agent doctor"),
        ({"frameworks": ("mlx",), "probes": {}, "devices": ("cpu",)}, "mlx", "install -r"),
        ({"batch_sizes": (60_001,), "workloads": ("mnist-cnn",)}, "batch 60001", "60,000 samples"),
    ],
)
def test_what_is_left_out_has_its_reason(filters: dict[str, Any], what: str, reason: str) -> None:
    assert any(what in e.what and reason in e.reason for e in planned(**filters).excluded)


@pytest.mark.parametrize(
    ("filters", "advice"),
    [
        ({"data": "stolen"}, "generated"),
        ({"devices": ("tpu",)}, "unknown device"),
        ({"devices": ("metal",)}, "no framework sees metal on this machine; seen: cpu, cuda;"),
        ({"devices": ("gpu",)}, "did you mean cuda"),
    ],
)
def test_devices_and_data_that_there_are_not_are_wrong_usage_with_advice(
    filters: dict[str, Any], advice: str
) -> None:
    with pytest.raises(UsageProblem, match=advice):
        planned(**filters)


def test_a_gpu_that_no_framework_sees_is_not_an_unknown_word() -> None:
    only_cpu = {
        name: probe.model_copy(update={"devices": probe.devices[-1:]})
        for name, probe in HERE.items()
    }
    with pytest.raises(UsageProblem, match="no framework sees gpu on this machine; seen: cpu;"):
        planned(probes=only_cpu, devices=("gpu",))


def test_repeats_go_round_the_matrix_so_that_drift_meets_every_cell() -> None:
    plan = planned(repeats=2, workloads=("mnist-cnn",), frameworks=("mlx",))
    order = [(repeat, p.cell.recipe) for repeat, p in plan]
    assert order == [(1, "naive"), (1, "tuned"), (2, "naive"), (2, "tuned")]


@pytest.mark.parametrize(
    ("preset", "filters", "timings"),
    [
        ("classic", {}, {("cpu", 3.0, None), ("cuda", 12.0, None)}),
        ("standard", {"budget_seconds": 3.0}, {("cpu", 3.0, None), ("cuda", 3.0, None)}),
    ],
)
def test_a_budget_replaces_epochs(
    preset: str, filters: dict[str, Any], timings: set[tuple[str, float, None]]
) -> None:
    plan = planned(preset, **filters)
    assert timings == {
        (p.cell.device.kind, p.timing.budget_seconds, p.timing.epochs) for p in plan.cells
    }
    # Of classic, starting two frameworks and the two large workloads take most.
    assert preset != "classic" or 60 < plan.estimate_seconds <= 1_300


def test_presets_name_workloads_and_keep_the_pipeline_to_full() -> None:
    known = {workload.name for workload in CATALOGUE}
    for preset in PRESETS.values():
        assert {*(preset.workloads or ())} <= known
        assert ("pipeline" in preset.recipes) == (preset.name == "full")
        assert (preset.workloads is None) == (preset.name in ("standard", "full"))
    assert PRESETS["quick"].workloads == REPRESENTATIVE
    assert PRESETS["classic"].workloads == tuple(one.name for one in CATALOGUE[:8])


@pytest.mark.parametrize("named", [True, False])
def test_quick_leaves_out_what_takes_too_long_unless_it_is_named(named: bool) -> None:
    """Before a measurement the estimate of an attention on MLX's CPU would be far too short."""
    slow = variant(workload_named("mnist-cnn"), name="fashion-lstm", batch_size=60_000)
    chosen = (workload_named("mnist-cnn"), slow, MODERN[0])
    names = tuple(workload.name for workload in chosen) if named else ()
    selection = Selection(workloads=names, frameworks=("mlx",), devices=("cpu",))
    plan = make_plan(PRESETS["quick"], selection, HERE, chosen)
    reasons = {item.what.split()[0]: item.reason for item in plan.excluded}
    assert {p.cell.workload for p in plan.cells} == ({*names} or {"mnist-cnn"})
    if not named:
        assert "five times as slowly" in reasons["gpt-char"]
        assert reasons["gpt-char"].endswith("too long for quick; --workload gpt-char runs it")
        assert reasons["fashion-lstm"].startswith("a repeat takes about 4 min")


def test_a_workload_whose_data_is_always_generated_is_left_out_of_real_data() -> None:
    noise = variant(TINY, name="noise")
    plan = make_plan(
        PRESETS["standard"],
        Selection(frameworks=("mlx",), data="real"),
        HERE,
        (workload_named("mnist-cnn"), noise),
    )
    assert {(p.cell.workload, p.cell.data) for p in plan.cells} == {("mnist-cnn", "real")}
    assert {e.reason for e in plan.excluded if "noise" in e.what} == {
        "its data set, tiny-data, is always generated"
    }


def test_standard_ends_with_an_accuracy_pass_a_workload_framework_and_device() -> None:
    plan = planned("standard", workloads=("mnist-cnn", "fashion-mlp"), frameworks=("tensorflow",))
    assert (plan.repeats, {p.timing.epochs for p in plan.cells}) == (3, {2})
    passes = plan.accuracy_passes
    assert {(p.cell.workload, str(p.cell.device)) for p in passes} == {
        (workload, device)
        for workload in ("mnist-cnn", "fashion-mlp")
        for device in ("cuda", "cpu")
    }
    assert (len(passes), {p.timing.least_seconds for p in passes}) == (4, {0.0})
    assert {(p.cell.recipe, p.timing.epochs) for p in passes} == {
        ("tuned", p.workload.epochs) for p in passes
    }
    steps = list(plan)
    assert [repeat for repeat, _ in steps[-4:]] == [4] * 4
    assert len({(repeat, p.cell) for repeat, p in steps}) == len(steps) == len(plan)
    assert plan.estimate_seconds == sum(p.estimate_seconds for _, p in steps)


@pytest.mark.parametrize(
    ("preset", "filters"),
    [("standard", {"budget_seconds": 3.0}), ("standard", {"batch_sizes": (256,)}), ("quick", {})],
)
def test_without_whole_epochs_at_the_default_batch_there_is_no_accuracy_pass(
    preset: str, filters: dict[str, Any]
) -> None:
    assert planned(preset, workloads=("mnist-cnn",), **filters).accuracy_passes == ()


def test_a_plan_like_a_source_has_its_models_batch_sizes_and_epochs() -> None:
    plan = planned(LIKE["tensorflow-metal-experiments"], devices=("cpu",))
    said = {str(p.cell) for p in plan.cells} | {item.what for item in plan.excluded}
    assert "mnist-cnn tensorflow cpu naive batch 64 float32 generated" in said
    assert "mnist-cnn mlx cpu pipeline batch 256 float32 generated" in said
    assert not any("torch" in what or "tuned" in what for what in said)
    assert all(p.timing.epochs == p.workload.epochs for p in plan.cells)
    assert plan.repeats == 1


def test_filters_hold_in_a_plan_like_a_source_too() -> None:
    like = LIKE["m2-max-article"]
    plan = planned(like, workloads=("fashion-lstm",), devices=("cpu",), batch_sizes=(32, 512, 7))
    assert [p.cell.batch_size for p in plan.cells] == [32, 512]
    assert {p.workload.data_set.validation_samples for p in plan.cells} == {10_000}


@pytest.mark.parametrize(
    "filters",
    [{"workloads": ("mnist-dense",)}, {"workloads": ("fashion-mlp",), "batch_sizes": (7,)}],
)
def test_a_plan_like_a_source_says_what_the_source_has_not(filters: dict[str, Any]) -> None:
    plan = planned(LIKE["m2-max-article"], devices=("cpu",), **filters)
    assert plan.cells == ()
    assert [item.what for item in plan.excluded] == [f"{filters['workloads'][0]} tensorflow cpu"]
    assert "fashion-mlp naive at batch 32, 128, 512, 1024; fashion-conv" in plan.excluded[0].reason


def test_a_precision_that_a_device_does_not_have_is_left_out_with_its_reason() -> None:
    old = FoundDevice(kind="cuda", index=0, name="GPU", compute_capability="7.5")
    new = FoundDevice(kind="cuda", index=1, name="GPU", compute_capability="12.0")
    probes = {"tensorflow": Probe(devices=(old, new, CPU), environment=None)}
    plan = planned(
        "full",
        probes,
        workloads=("mnist-cnn",),
        recipes=("tuned",),
        batch_sizes=(64,),
        devices=("cuda:all", "cpu"),
    )
    legal = {(str(p.cell.device), p.cell.precision) for p in plan.cells}
    assert legal == {
        ("cpu", "float32"),
        ("cpu", "mixed_bfloat16"),
        ("cuda", "float32"),
        ("cuda", "mixed_float16"),
        *(("cuda:1", precision) for precision in ALL_PRECISIONS),
    }
    reasons = {item.what: item.reason for item in plan.excluded}
    name = "mnist-cnn tensorflow {} tuned batch 64 {} generated"
    assert "NVIDIA" in reasons[name.format("cpu", "tf32")]
    assert "GPU" in reasons[name.format("cpu", "mixed_float16")]
    assert "7.5" in reasons[name.format("cuda", "tf32")]
    assert "7.5" in reasons[name.format("cuda", "mixed_bfloat16")]


@pytest.mark.parametrize(
    ("framework", "architecture", "macos", "reason"),
    [
        ("mlx", "applegpu_g17s", "26.2", None),
        ("mlx", "applegpu_g17g", "27.0", None),
        ("mlx", "applegpu_g18p", "26.2.1", None),
        ("mlx", "applegpu_g17p", "26.2", "this GPU is applegpu_g17p"),
        ("mlx", "applegpu_g16s", "26.2", "M5 or newer"),
        ("mlx", None, "26.2", "unknown"),
        ("mlx", "applegpu_g17s", "26.1", "needs macOS 26.2, this is 26.1"),
        ("tensorflow", "applegpu_g17s", "26.2", "this framework has no tf32 on Metal"),
    ],
)
def test_tf32_of_apples_neural_accelerators_is_a_cell_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
    framework: str,
    architecture: str | None,
    macos: str,
    reason: str | None,
) -> None:
    monkeypatch.setattr(common, "sys", SimpleNamespace(platform="darwin"))
    monkeypatch.setattr(common, "platform", SimpleNamespace(machine=lambda: "arm64"))
    # Python's own word is that of the SDK it was built with.
    monkeypatch.setattr(mac, "sysctl", lambda: {"kern.osproductversion": macos})
    gpu = FoundDevice(kind="metal", index=0, name="Apple M5", architecture=architecture)
    probes = {framework: Probe(devices=(gpu,), environment=None)}
    plan = planned(
        "smoke",
        probes,
        frameworks=(framework,),
        precisions=("tf32", "float32"),
        workloads=("mnist-cnn",),
        recipes=("tuned",),
    )
    assert {p.cell.precision for p in plan.cells} == (
        {"float32"} if reason else {"float32", "tf32"}
    )
    assert reason is None or reason in plan.excluded[0].reason


def test_a_plan_without_cells_says_why_and_what_helps(capsys: pytest.CaptureFixture[str]) -> None:
    none = planned(frameworks=("mlx",), devices=("cuda",))
    assert not none.cells
    print_plan(none, console())
    why, fix = capsys.readouterr().out.splitlines()
    assert why == "Left out: mlx: sees no cuda here, only cpu"
    assert fix.startswith("Nothing to run: each choice is left out, for the reason above.")
    assert "bench-agent devices" in fix


def test_one_line_says_what_is_left_out_for_one_reason() -> None:
    lines = left_out(planned(probes={"mlx": HERE["mlx"]}))
    assert lines == [f"Left out: jax, tensorflow, torch: {ABSENT.problem}"]
    assert merged({}, ("mlx",))["mlx"].problem == "not installed; bench-agent doctor says how"


@pytest.mark.parametrize(("options", "times"), [((), 0), (("--calibrate",), 1)])
def test_a_plan_measures_only_where_it_is_asked_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], times: int
) -> None:
    calls: list[Any] = []
    everywhere = dict.fromkeys(engines.names(), ABSENT) | HERE
    monkeypatch.setenv("BENCH_HOME", str(tmp_path))
    monkeypatch.setattr("bench_agent.cli.plan.recall_frameworks", lambda frameworks: everywhere)
    monkeypatch.setattr(calibration, "calibrate", lambda *about: calls.append(about))
    shown = CliRunner().invoke(app, ["plan", "--preset", "standard", "--device", "cpu", *options])
    assert shown.exit_code == 0, shown.output
    assert len(calls) == times
    assert "a guess: nothing was measured here yet" in shown.stdout
    assert "bench-agent plan --calibrate\n" in shown.stdout
    assert shown.stdout.endswith("bench-agent run --server URL\n")


def test_an_estimate_without_an_earlier_repeat_is_called_a_guess() -> None:
    made = planned(frameworks=("mlx", "tensorflow"), devices=("cpu",))
    assert total_line(made).endswith(", a guess: nothing was measured here yet.")
    cells = [one.model_copy(update={"guessed": one.cell.framework == "mlx"}) for one in made.cells]
    words = "about 1 min 0 s, in part a guess: nothing was measured here yet with mlx cpu"
    assert estimate(cells, 60) == words
    assert estimate([one for one in cells if not one.guessed], 60) == "about 1 min 0 s"
