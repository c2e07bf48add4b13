"""Fleets without a cluster: arguments, job files."""

import json
import subprocess
from collections.abc import Sequence

import pytest
from typer.testing import CliRunner

from bench_agent.base.errors import UsageProblem
from bench_agent.cli import fleet as command
from bench_agent.cli.main import app
from bench_agent.fleet import jobs
from bench_agent.plan.plan import Selection

SERVER = "http://bench.lab:8000"
ARGUMENTS = ["--preset", "smoke", "--workload", "mnist-cnn", "--server", SERVER]


def test_the_arguments_of_run_select_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Selection(
        workloads=("mnist-cnn", "fashion-mlp"),
        frameworks=("jax",),
        devices=("cuda:all",),
        recipes=("tuned",),
        batch_sizes=(32, 64),
        precisions=("float32",),
        repeats=3,
        budget_seconds=0.5,
        data="real",
    )
    words = command.run_arguments(whole, "smoke", None, "http://bench.lab:8000")
    got: list[Selection] = []
    monkeypatch.setattr("bench_agent.cli.plan.planned", lambda *a: got.append(a[2]))
    monkeypatch.setattr("bench_agent.cli.plan.plan_document", lambda made: {})
    place = words.index("--server")
    CliRunner().invoke(app, ["plan", *words[:place], *words[place + 2 :], "--json"])
    assert got == [whole]
    assert command.run_arguments(Selection(), None, None, None) == []


def directives(script: str) -> dict[str, str]:
    """The ``#SBATCH`` directives, as ``sbatch`` reads them: only those before the first command."""
    found: dict[str, str] = {}
    first, *lines = script.splitlines()
    assert first == "#!/bin/bash"
    for line in lines:
        if not line.startswith("#"):
            break
        if line.startswith("#SBATCH --"):
            name, _, value = line.removeprefix("#SBATCH --").partition("=")
            assert name not in found
            found[name] = value
    return found


def test_a_slurm_array_has_an_element_a_machine() -> None:
    script = jobs.slurm([*ARGUMENTS, "--framework", "a b"], 5, SERVER)
    found = directives(script)
    assert found == {
        "job-name": "trainmark",
        "array": "0-4",
        "nodes": "1",
        "ntasks": "1",
        "exclusive": "",
        "mem": "0",
        "requeue": "",
        "time": "12:00:00",
        "signal": "B:INT@300",
        "output": "trainmark-%A_%a.log",
    }
    assert script.count("#SBATCH") == len(found)
    assert "--framework 'a b'" in script
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    with_gpus = jobs.slurm(ARGUMENTS, 5, SERVER, gpus=2)
    assert directives(with_gpus) == {**found, "gres": "gpu:2"}


@pytest.fixture(params=["slurm", "kubernetes"])
def element(request, tmp_path, monkeypatch):  # type: ignore[no-untyped-def]
    """Runs an element of a job on a node; the agent notes its folder and command, and exits as
    told, with a journal if it is cut off."""
    agent = tmp_path / "bin" / "bench-agent"
    agent.parent.mkdir()
    agent.write_text(
        '#!/bin/sh\nwhat=$1\n[ -e "$BENCH_HOME/run.json" ] && what="$1 on"\n'
        f'echo "$BENCH_HOME $what" >> {tmp_path}/calls\n'
        'if [ "$AGENT_EXIT" = 130 ]; then touch "$BENCH_HOME/run.json"\n'
        'else rm -f "$BENCH_HOME/run.json"; fi\nexit "$AGENT_EXIT"\n'
    )
    agent.chmod(0o755)

    def run(node: str, job: str, exits: int = 0, arguments: Sequence[str] = ARGUMENTS) -> int:
        environment = {"PATH": f"{agent.parent}:/usr/bin:/bin", "AGENT_EXIT": str(exits)}
        if request.param == "slurm":
            environment["BENCH_HOME"] = str(tmp_path / "homes")
            environment |= {"SLURMD_NODENAME": node, "SLURM_ARRAY_JOB_ID": job}
            script, shell = jobs.slurm(arguments, 2, SERVER), "bash"
        else:
            home = tmp_path / "homes" / node
            home.mkdir(parents=True, exist_ok=True)
            environment |= {"BENCH_HOME": str(home), "JOB": job}
            made = jobs.kubernetes(arguments, 2, SERVER, "agent:1")
            shell, option, script = made["spec"]["template"]["spec"]["containers"][0]["command"]
            assert option == "-c"
        return subprocess.run([shell], input=script, text=True, env=environment).returncode

    def calls() -> list[str]:
        file = tmp_path / "calls"
        lines: Sequence[str] = file.read_text().splitlines() if file.exists() else ()
        return [line.rpartition("/")[2] for line in lines]

    return run, calls


def test_an_element_measures_a_node_once_and_keeps_its_folder(element) -> None:  # type: ignore[no-untyped-def]
    run, calls = element
    assert run("node-a", "7") == 0
    assert run("node-a", "7") == 0, "the same node again"
    assert calls() == ["node-a run", "node-a submit"]
    assert run("node-b", "7", exits=130) == 130
    assert run("node-b", "7") == 0, "a run that was cut off is resumed there"
    assert run("node-a", "8") == 0, "another job measures again"
    assert calls()[2:] == ["node-b run", "node-b run on", "node-a run"]


def test_an_element_resumes_no_run_of_other_arguments(element) -> None:  # type: ignore[no-untyped-def]
    run, calls = element
    assert run("node-a", "7", exits=130) == 130
    assert run("node-a", "8", exits=130) == 130, "the same arguments, sent again"
    assert run("node-a", "9", arguments=["--preset", "quick"]) == 0
    assert calls() == ["node-a run", "node-a run on", "node-a run"]


def test_what_failed_is_not_measured_again_and_what_waits_is_sent(element) -> None:  # type: ignore[no-untyped-def]
    run, calls = element
    assert run("node-a", "7", exits=1) == 1, "some repeats failed"
    assert run("node-b", "7", exits=3) == 3, "the server did not answer"
    assert run("node-b", "7", exits=3) == 3, "nor does it now"
    assert run("node-a", "7") == run("node-b", "7") == 0
    assert run("node-c", "7", exits=2) == 2, "nothing can be measured"
    assert run("node-c", "7") == 0
    assert [call for call in calls() if call.endswith("run")] == [
        *("node-a run", "node-b run", "node-c run", "node-c run")
    ]


@pytest.mark.parametrize("gpus", [0, 2])
def test_a_kubernetes_job_fits_the_schema(gpus: int) -> None:
    validate = pytest.importorskip(
        "kubernetes_validate", reason="kubernetes-validate is not installed"
    )
    job = json.loads(json.dumps(jobs.kubernetes(ARGUMENTS, 5, SERVER, "agent:1", gpus)))
    validate.validate(job, validate.latest_version(), strict=True)
    spec = job["spec"]
    assert (spec["completions"], spec["parallelism"], spec["completionMode"]) == (5, 5, "Indexed")
    pod = spec["template"]["spec"]
    assert "bench-agent run --resume --yes" in pod["containers"][0]["command"][2]
    assert ("resources" in pod["containers"][0]) == bool(gpus)
    job["spec"]["completion"] = 5
    with pytest.raises(validate.ValidationError):
        validate.validate(job, validate.latest_version(), strict=True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "give either --scheduler"),
        (["--emit", "slurm", "--scheduler", "tls://a:1"], "give either --scheduler"),
        (["--emit", "pbs"], "choose one of: slurm, kubernetes"),
        (["--emit", ""], "unknown kind of job file ''; choose one of: slurm, kubernetes"),
        (["--emit", "slurm", "--preset", "smoke", "--like", "m2-max-article"], "exclude"),
        (["--scheduler", "tcp://10.0.0.7:8786"], "TLS"),
        (["--emit", "slurm", "--image", "a"], "--image has no effect with --emit slurm"),
        (["--emit", "slurm", "--json"], "--json has no effect with --emit slurm"),
        (["--emit", "slurm", "--patience-seconds", "0"], "--patience-seconds has no effect"),
        (["--emit", "kubernetes", "--patience-seconds", "600"], "--patience-seconds has no effect"),
        (["--scheduler", "tls://a:1", "--image", "a"], "--image has no effect with --scheduler"),
        (["--scheduler", "tls://a:1", "--gpus", "0"], "--gpus has no effect with --scheduler"),
    ],
)
def test_wrong_usage_says_why(arguments: list[str], says: str) -> None:
    ended = CliRunner().invoke(app, ["fleet", *arguments])
    assert isinstance(ended.exception, UsageProblem)
    assert says in str(ended.exception)


def test_gpus_of_the_command_are_in_both_kinds_of_job_file() -> None:
    written = [
        CliRunner().invoke(app, ["fleet", "--emit", kind, "--gpus", "3"]).output
        for kind in ("slurm", "kubernetes")
    ]
    assert directives(written[0])["gres"] == "gpu:3"
    assert json.loads(written[1])["spec"]["template"]["spec"]["containers"][0]["resources"] == {
        "limits": {"nvidia.com/gpu": 3}
    }
