"""Added interpreters: their list, what they answer, and which of them a worker starts under."""

import json
import sys
from pathlib import Path

import pytest
from tests.fakes.environments import distribution, make_environment
from tests.fakes.results import make_machine

from bench_agent.base.errors import HomeProblem, UsageProblem
from bench_agent.base.home import Home
from bench_agent.base.messages import FoundDevice, Probe
from bench_agent.doctor.frameworks import check_environments, check_shared_libraries
from bench_agent.output.console import console
from bench_agent.output.inventory import devices_document, print_devices
from bench_agent.output.plan_table import print_plan
from bench_agent.plan.plan import Selection, make_plan
from bench_agent.plan.presets import preset_of
from bench_agent.run import interpreters
from bench_agent.run.interpreters import Interpreter
from bench_agent.run.probe import in_use, merged
from bench_agent.run.sign import unknown_environment
from bench_protocol.payload.machine import Environment

OTHER = "/other/bin/python"


def probe(version: str, *kinds: str) -> Probe:
    devices = tuple(FoundDevice(kind=kind, index=0, name=kind) for kind in kinds)  # type: ignore[arg-type]
    packages = {"torch": version}
    return Probe(devices=devices, environment=Environment(python="3.12.1", packages=packages))


ANSWERS = {
    (None, "torch"): probe("2.13.0+cpu", "cpu"),
    (OTHER, "torch"): probe("2.13.0", "cuda", "cpu"),
}


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def answering(path: Path, **changes: object) -> Path:
    here = interpreters.own().description
    assert here is not None
    answer = here.model_dump(mode="json") | {"prefix": str(path)} | changes
    (path.parent / "answer").write_text(json.dumps(answer))
    return script(path, f"cat {path.parent / 'answer'}")


def test_without_an_added_one_there_is_only_the_agents_own(tmp_path: Path) -> None:
    (own,) = interpreters.every(Home(tmp_path / "home"))
    assert (own.path, own.place, own.problem) == (None, sys.executable, None)
    assert list(tmp_path.iterdir()) == []
    (finding,) = check_environments((own,), None)
    assert finding.verdict == "skip"


def test_an_environment_is_added_once_used_and_removed(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    python = make_environment(tmp_path / "env", lambda name: "tensorflow" not in name)
    there = interpreters.add(home, tmp_path / "env")
    assert there.path == str(python)
    assert "tensorflow" not in there.frameworks
    assert set(there.frameworks) == set(interpreters.own().frameworks) - {"tensorflow"}
    interpreters.add(home, python)
    interpreters.add(home, tmp_path / "env" / "bin" / "python3")  # the same environment
    assert interpreters.added(home) == (str(python),)
    assert [each.path for each in interpreters.every(home)] == [None, str(python)]
    interpreters.remove(home, tmp_path / "env")
    assert interpreters.added(home) == ()
    with pytest.raises(UsageProblem, match="was not added"):
        interpreters.remove(home, tmp_path / "env")


def test_the_agents_own_is_not_added(tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match="own interpreter"):
        interpreters.add(Home(tmp_path), Path(sys.executable))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"python": "3.9.2"}, "too old"),
        ({"agent": None, "source": None}, "not installed there"),
        ({"agent": "9.9.9"}, "version 9.9.9"),
        ({"source": "0" * 64}, "other source files"),
    ],
)
def test_an_interpreter_without_this_agent_is_refused_with_the_command(
    tmp_path: Path, changes: dict[str, object], problem: str
) -> None:
    python, home = answering(tmp_path / "python", **changes), Home(tmp_path / "home")
    with pytest.raises(UsageProblem, match=problem) as refused:
        interpreters.add(home, python)
    if interpreters.own().pip.in_checkout:
        assert f"{python} -m pip install -e " in str(refused.value).replace("uv pip", "-m pip")
    assert not home.environments.exists()


def test_an_interpreter_that_broke_is_left_out_and_named(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    gone = answering(tmp_path / "python")
    interpreters.add(home, gone)
    gone.unlink()
    own, other = interpreters.every(home)
    assert (other.problem, other.frameworks) == ("cannot be started: No such file or directory", ())
    (finding,) = check_environments((own, other), None)
    assert (finding.verdict, str(gone) in finding.sentence) == ("fail", True)
    script(gone, "echo nonsense")
    assert interpreters.every(home)[1].problem == "is no Python that answers"


def test_a_damaged_list_says_what_to_do(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.environments.write_text('{"interpreters": "x"}')
    with pytest.raises(HomeProblem, match="add the interpreters again") as refused:
        interpreters.every(home)
    (finding,) = check_environments((interpreters.own(),), str(refused.value))
    assert finding.verdict == "fail"


def test_a_device_belongs_to_the_first_interpreter_that_sees_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert [device.kind for device in in_use(ANSWERS)[OTHER, "torch"].devices] == ["cuda"]
    (torch,) = merged(ANSWERS, ("torch",)).values()
    assert [(device.kind, device.python) for device in torch.devices] == [
        ("cpu", None),
        ("cuda", OTHER),
    ]
    selection = Selection(workloads=("mnist-cnn",), frameworks=("torch",))
    plan = make_plan(preset_of("smoke"), selection, {"torch": torch})
    assert {str(p.cell.device): p.python for p in plan.cells} == {"cpu": None, "cuda": OTHER}
    print_plan(plan, console())
    out = capsys.readouterr().out
    assert f"under {OTHER}: torch cuda\n" in out
    assert "Plus waits for an idle machine, and the first time a self-test" in out


def test_the_devices_of_a_machine_fit_80_columns_and_name_no_pip(
    capsys: pytest.CaptureFixture[str],
) -> None:
    machine = make_machine(gpu=("cuda", "NVIDIA H200", None))
    print_devices(devices_document(machine, in_use(ANSWERS)))
    out = capsys.readouterr().out
    assert out.count("not installed; bench-agent doctor says how\n") == 3
    assert "pip" not in out
    assert f"torch cuda under:\n  {OTHER}\n" in out
    assert max(map(len, out.splitlines())) <= 80


def test_a_framework_that_only_another_interpreter_has_starts_there() -> None:
    broken = Probe(devices=(), environment=None, problem="ImportError: libcudnn")
    seen = merged({(None, "torch"): broken, (OTHER, "torch"): probe("2.13.0", "cpu")})
    assert (seen["torch"].problem, seen["torch"].devices[0].python) == (None, OTHER)
    assert merged({(None, "torch"): broken})["torch"].problem == "ImportError: libcudnn"
    assert "not installed" in (seen["mlx"].problem or "")


def test_a_worker_that_said_nothing_has_the_python_of_its_interpreter(tmp_path: Path) -> None:
    python = answering(tmp_path / "python", python="3.12.99")
    assert unknown_environment(str(python)).python == "3.12.99"
    assert unknown_environment(str(tmp_path / "gone")).python == "unknown"


def test_a_run_does_not_go_on_under_an_interpreter_that_broke(tmp_path: Path) -> None:
    python = answering(tmp_path / "python")
    interpreters.require({str(python)})
    python.unlink()
    with pytest.raises(UsageProblem, match="run --fresh"):
        interpreters.require({str(python)})


def with_packages(folder: Path) -> Interpreter:
    found = interpreters._ask_interpreter.distributions(path=[str(folder)])
    shared = interpreters._ask_interpreter.shared_libraries(list(found))
    here = interpreters.own()
    assert here.description is not None
    groups = [interpreters.SharedLibraries.model_validate_json(json.dumps(one)) for one in shared]
    return Interpreter(OTHER, here.description.model_copy(update={"shared": tuple(groups)}))


def test_two_builds_of_cudnn_in_one_folder_are_found(tmp_path: Path) -> None:
    cudnn, nccl = "nvidia/cudnn/lib/libcudnn", "nvidia/nccl/lib/libnccl.so.2"
    both = (f"{cudnn}.so.9", f"{cudnn}_graph.so.9")
    distribution(tmp_path, "nvidia-cudnn-cu12", "9.28.0.42", dict.fromkeys(both, "twelve"))
    distribution(tmp_path, "nvidia-cudnn-cu13", "9.20.0.48", dict.fromkeys(both, "thirteen"))
    distribution(tmp_path, "nvidia-nccl-cu12", "2.32.3", {nccl: "twelve"})
    distribution(tmp_path, "nvidia-nccl-cu13", "2.29.7", {nccl: "thirteen"})
    here = with_packages(tmp_path)
    findings = list(check_shared_libraries((here,)))
    assert [finding.verdict for finding in findings] == ["fail", "fail"]
    sentence = findings[0].sentence
    assert (
        "nvidia-cudnn-cu12 and nvidia-cudnn-cu13 both install libcudnn.so.9 and 1 more" in sentence
    )
    assert OTHER in sentence
    assert "nccl" in findings[1].sentence
    if here.pip.in_checkout:
        assert (findings[0].hint or "").endswith("clean install frameworks")


def test_equal_files_and_files_that_are_no_libraries_may_have_two_owners(tmp_path: Path) -> None:
    same = {"nvidia/lib/libsame.so.1": "same"}
    distribution(tmp_path, "one", "1", {**same, "nvidia/__init__.py": "a", "LICENSE": "a"})
    distribution(tmp_path, "two", "1", {**same, "nvidia/__init__.py": "b", "LICENSE": "b"})
    (finding,) = check_shared_libraries((with_packages(tmp_path),))
    assert finding.verdict == "ok"
