"""Unknown names get the one that was meant."""

import subprocess
import sys

import pytest

from bench_agent import engines
from bench_agent.base.errors import UsageProblem
from bench_agent.base.names import unknown
from bench_agent.cli import main
from bench_agent.plan.plan import Selection, check_names
from bench_agent.plan.presets import preset_of


@pytest.mark.parametrize(
    ("name", "names", "words"),
    [
        ("pytorch", ["jax", "torch"], "unknown thing 'pytorch'; did you mean torch? There are: "),
        ("gpu", ["cpu", "metal"], "did you mean metal?"),
        ("gpu", ["cpu", "cuda"], "did you mean cuda?"),
        ("tensorflo", ["tensorflow", "torch"], "did you mean tensorflow?"),
        ("quantum", ["cpu", "cuda"], "unknown thing 'quantum'; choose one of: cpu, cuda"),
        ("MNIST", ["mnist-cnn", "mnist-dense"], "did you mean mnist-cnn?"),
    ],
)
def test_a_guess_is_one_of_the_names(name: str, names: list[str], words: str) -> None:
    assert words in unknown("thing", name, names)


def test_every_choice_of_a_run_guesses() -> None:
    for chosen, meant in (
        ({"frameworks": ("pytorch",)}, "torch"),
        ({"workloads": ("mnist-cn",)}, "mnist-cnn"),
        ({"recipes": ("tune",)}, "tuned"),
        ({"precisions": ("bf16",)}, "mixed_bfloat16"),
    ):
        with pytest.raises(UsageProblem, match=f"did you mean {meant}"):
            check_names(Selection(**chosen))
    with pytest.raises(UsageProblem, match="did you mean quick"):
        preset_of("quik")
    with pytest.raises(LookupError, match="did you mean mlx"):
        engines.engine_named("mlxx")


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("reprot", "report"),
        ("doctor --only pwoer", "power"),
        ("fleet --emit slrum", "slurm"),
        ("fleet --emit k8s", "kubernetes"),
        ("data fetch cifar100", "cifar-100"),
        ("data fetch mnits", "mnist"),
    ],
)
def test_every_choice_on_the_command_line_guesses(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, line: str, meant: str
) -> None:
    monkeypatch.setattr("sys.argv", ["bench-agent", *line.split()])
    with pytest.raises(SystemExit) as left:
        main.main()
    assert left.value.code == 2
    assert f"; did you mean {meant}? There are: " in capsys.readouterr().err


def test_a_worker_imports_no_command_line_library() -> None:
    """Engines name what is unknown. Typer would take a part of each repeat's start."""
    code = "import sys, bench_agent.engines; print({'typer', 'click', 'rich'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "set()\n"
