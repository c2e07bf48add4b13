"""The agent's help, and its commands where nobody answers or a name is unknown.

tests/protocol/test_command_lines.py has what both programs share.
"""

import io
import re
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from bench_agent import engines
from bench_agent.base.errors import UsageProblem
from bench_agent.base.names import unknown
from bench_agent.cli import main
from bench_agent.cli.main import COMMANDS, EXAMPLES, GROUPS, PANELS, Commands, app
from bench_agent.plan.plan import Selection, check_names
from bench_agent.plan.presets import preset_of


def test_help_has_the_commands_in_groups_and_an_example() -> None:
    text = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"}).stdout
    assert re.findall("^╭─ ([A-Za-z ]+) ─", text, re.MULTILINE) == ["Options", *GROUPS]
    assert list(PANELS) == list(COMMANDS)
    assert text.rstrip().endswith("First: bench-agent run --server http://bench.lab:8000")


@pytest.mark.parametrize("name", ["run", "plan", "submit"])
def test_help_says_which_results_can_be_ranked(name: str) -> None:
    text = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "200"}).stdout
    assert "ranked" in text.partition("Options")[0]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_example_of_a_command_is_one_that_it_takes(name: str) -> None:
    program, first, *words = EXAMPLES[name].split()
    assert (program, first) == ("bench-agent", name)
    command = Commands.load(name)
    if subcommands := getattr(command, "commands", None):
        command, words = subcommands[words[0]], words[1:]
    assert command.make_context(name, words)


def test_a_wrong_command_line_is_red_where_colours_are() -> None:
    wrong = ["plan", "--batch-size", "0"]
    coloured = CliRunner().invoke(app, wrong, env={"FORCE_COLOR": "1", "NO_COLOR": ""}, color=True)
    plain = CliRunner().invoke(app, wrong, env={"FORCE_COLOR": "1", "NO_COLOR": "1"}, color=True)
    assert coloured.stderr.startswith("\x1b[31m--batch-size takes")
    assert "\x1b[3" not in plain.stderr


def test_help_lists_the_names_that_an_option_takes() -> None:
    text = CliRunner().invoke(app, ["plan", "--help"], env={"COLUMNS": "80"}).stdout
    for name in ("resnet50-transfer", "torch", "cuda:all", "pipeline", "mixed_bfloat16"):
        assert name in text
    assert "--repeats" not in CliRunner().invoke(app, ["conformance", "--help"]).stdout


@pytest.mark.parametrize("name", ["run", "status"])
def test_an_interrupted_command_says_so(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"bench_agent.cli.{COMMANDS[name][0].replace(':', '.')}", interrupted)
    ended = CliRunner().invoke(app, [name])
    assert ended.exit_code == 130
    assert ended.stderr.startswith("Interrupted.")
    assert ("bench-agent run --resume" in ended.stderr) == (name == "run")


@pytest.mark.parametrize(
    ("stopped_by", "code", "words"),
    [(KeyboardInterrupt, 130, "Interrupted."), (EOFError, 1, "Aborted.")],
)
def test_a_question_that_is_not_answered(
    stopped_by: type[BaseException], code: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Unanswered(io.StringIO):
        def readline(self, size: int | None = -1, /) -> str:
            raise stopped_by

    def asking() -> None:
        typer.confirm("Send?", err=True)

    monkeypatch.setattr(sys, "stdin", Unanswered())
    monkeypatch.setattr("bench_agent.cli.submit.status", asking)
    monkeypatch.setattr(sys, "argv", ["bench-agent", "status"])
    said: list[str] = []
    monkeypatch.setattr("bench_agent.output.console.complain", said.append)
    with pytest.raises(SystemExit) as left:
        app()
    assert (left.value.code, said) == (code, [words])


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
