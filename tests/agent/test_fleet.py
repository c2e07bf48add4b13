"""The files that ``bench-agent fleet`` prints: what is in them, and what their commands do."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from bench_agent.base.errors import UsageProblem
from bench_agent.cli import fleet as command
from bench_agent.cli.main import app
from bench_agent.output.fleet_files import ENGINES, IMAGE_HOME, IMAGE_USER
from bench_agent.plan.plan import Selection

SERVER = "https://bench.lab:8000"
NEEDED = {
    "slurm": ["--machines", "2"],
    "kubernetes": ["--machines=2", "--image=tm:1", "--cpus=8", "--memory-gib=32"],
    "ansible": ["--environment", "/opt/tm"],
    "skypilot": ["--machines", "2", "--image", "tm:1", "--gpus", "H100:1"],
}
# What gives a machine its number, from 0.
NUMBERS = {
    "slurm": "SLURM_PROCID",
    "kubernetes": "JOB_COMPLETION_INDEX",
    "skypilot": "SKYPILOT_NODE_RANK",
}


def written(engine: str, *options: str) -> str:
    arguments = ["fleet", "--emit", engine, "--server", SERVER, *NEEDED[engine], *options]
    ended = CliRunner().invoke(app, arguments)
    assert ended.exit_code == 0, ended.exception
    return ended.output


def pod_of(job: dict[str, Any]) -> dict[str, Any]:
    pod: dict[str, Any] = job["spec"]["template"]["spec"]
    return pod


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
    words = command.run_arguments(whole, "smoke", None, SERVER)
    got: list[Selection] = []
    monkeypatch.setattr("bench_agent.cli.plan.planned", lambda *a: got.append(a[2]))
    monkeypatch.setattr("bench_agent.cli.plan.plan_document", lambda made: {})
    place = words.index("--server")
    CliRunner().invoke(app, ["plan", *words[:place], *words[place + 2 :], "--json"])
    assert got == [whole]
    assert command.run_arguments(Selection(), None, None, None) == []


def test_a_slurm_job_is_one_allocation_with_a_task_on_each_node() -> None:
    script = written("slurm", "--gpus", "h100:2", "--environment", "/opt/tm", "--preset", "smoke")
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    first, *lines = script.splitlines()
    assert first == "#!/bin/bash"
    # As sbatch reads them: only before the first command.
    before = lines[: next(i for i, line in enumerate(lines) if not line.startswith("#"))]
    directives = [line.removeprefix("#SBATCH --") for line in before if "#SBATCH" in line]
    assert directives == [
        *("job-name=trainmark", "nodes=2", "ntasks-per-node=1", "exclusive", "mem=0"),
        "gpus-per-node=h100:2",
    ]
    assert script.count("#SBATCH") == len(directives)
    assert "srun --nodes=2 --ntasks=2 --ntasks-per-node=1 " in script
    assert "export PATH=/opt/tm/bin:$PATH\n" in script
    assert f"bench-agent run --yes --preset smoke --server {SERVER}" in script


@pytest.mark.parametrize("gpus", [None, "2", "NVIDIA-H100-80GB-HBM3:2"])
def test_a_kubernetes_job_fits_the_schema_and_has_a_node_a_pod(gpus: str | None) -> None:
    validate = pytest.importorskip(
        "kubernetes_validate", reason="kubernetes-validate is not installed"
    )
    job = yaml.safe_load(written("kubernetes", *(() if gpus is None else ("--gpus", gpus))))
    validate.validate(job, validate.latest_version(), strict=True)
    assert job["metadata"] == {"generateName": "trainmark-"}
    spec, pod = job["spec"], pod_of(job)
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 2, 2)
    assert (spec["backoffLimitPerIndex"], pod["restartPolicy"]) == (0, "Never")
    (apart,) = pod["affinity"]["podAntiAffinity"].pop(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    assert apart["topologyKey"] == "kubernetes.io/hostname"
    assert apart["labelSelector"]["matchLabels"] == spec["template"]["metadata"]["labels"]
    (container,) = pod["containers"]
    resources = {"cpu": "8", "memory": "32Gi"} | ({"nvidia.com/gpu": "2"} if gpus else {})
    assert container["resources"] == {"requests": resources, "limits": resources}
    model = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"} if gpus and ":" in gpus else None
    assert pod.get("nodeSelector") == model
    assert container["envFrom"] == [{"secretRef": {"name": "trainmark", "optional": True}}]
    job["spec"]["completion"] = 5
    with pytest.raises(validate.ValidationError):
        validate.validate(job, validate.latest_version(), strict=True)


def breaches(pod: dict[str, Any]) -> set[str]:
    """The rules of the Pod Security profile "restricted", those of "baseline" included, that a pod
    breaks: https://kubernetes.io/docs/concepts/security/pod-security-standards/"""
    whole = pod.get("securityContext", {})
    containers = [*pod.get("initContainers", ()), *pod["containers"]]
    own = [container.get("securityContext", {}) for container in containers]
    volumes = [set(volume) - {"name"} for volume in pod.get("volumes", ())]
    allowed = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral"}
    allowed |= {"persistentVolumeClaim", "projected", "secret"}
    seccomp = [each.get("seccompProfile", whole.get("seccompProfile", {})) for each in own]
    not_root = [each.get("runAsNonRoot", whole.get("runAsNonRoot")) for each in own]
    every = [whole, *own]
    dropped = [each.get("capabilities", {}) for each in own]
    rules = {
        "host namespaces": any(pod.get(f"host{name}") for name in ("Network", "PID", "IPC")),
        "privileged": any(each.get("privileged") for each in own),
        "capabilities": any(
            "ALL" not in each.get("drop", ()) or set(each.get("add", ())) - {"NET_BIND_SERVICE"}
            for each in dropped
        ),
        "volume types": any(not kind <= allowed for kind in volumes),
        "host ports": any(
            port.get("hostPort") for each in containers for port in each.get("ports", ())
        ),
        "AppArmor": any("appArmorProfile" in each for each in every),
        "SELinux": any("seLinuxOptions" in each for each in every),
        "proc mount": any(each.get("procMount", "Default") != "Default" for each in own),
        "seccomp": any(each.get("type") not in ("RuntimeDefault", "Localhost") for each in seccomp),
        "sysctls": bool(whole.get("sysctls")),
        "escalation": any(each.get("allowPrivilegeEscalation") is not False for each in own),
        "root": not all(not_root) or any(each.get("runAsUser") == 0 for each in every),
    }
    return {rule for rule, broken in rules.items() if broken}


def test_a_pod_passes_the_restricted_profile() -> None:
    pod = pod_of(yaml.safe_load(written("kubernetes", "--gpus", "1")))
    assert breaches(pod) == set()
    pod["hostNetwork"] = True
    pod["containers"][0]["securityContext"]["capabilities"] = {}
    assert breaches(pod) == {"host namespaces", "capabilities"}


def test_a_pod_runs_as_the_user_of_the_image() -> None:
    image = (Path(__file__).parents[2] / "deploy" / "agent.Dockerfile").read_text()
    assert f"\nUSER {IMAGE_USER}\n" in image
    assert f'VOLUME ["{IMAGE_HOME}"]' in image


def test_a_playbook_has_one_task_whose_secrets_are_of_its_own_side() -> None:
    (play,) = yaml.safe_load(written("ansible", "--preset", "smoke"))
    assert play["hosts"] == "all"
    (task,) = play["tasks"]
    shell = task["ansible.builtin.shell"]
    subprocess.run(["sh", "-n"], input=shell["cmd"], text=True, check=True)
    assert shell["cmd"].endswith(
        f"exec /opt/tm/bin/bench-agent run --yes --preset smoke --server {SERVER}\n"
    )
    token, code = shell["stdin"].splitlines()
    assert "BENCH_SERVER_TOKEN" in token
    assert "bench_invite" in code
    assert "environment" not in task


def test_a_skypilot_task_has_machines_of_a_gpu_type() -> None:
    task = yaml.safe_load(written("skypilot"))
    subprocess.run(["bash", "-n"], input=task.pop("run"), text=True, check=True)
    assert task == {"name": "trainmark", "num_nodes": 2, "resources": {"accelerators": "H100:1"}}


@pytest.mark.parametrize("engine", ENGINES)
def test_no_file_has_a_token_or_a_code(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCH_SERVER_TOKEN", "a-secret-token")
    monkeypatch.setenv("BENCH_INVITE", "a-secret-code")
    assert "a-secret" not in written(engine)


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """An agent that notes code and command; stand-ins for srun and docker run its shell."""
    folder = tmp_path / "bin"
    folder.mkdir()
    shell = '#!/bin/sh\nwhile [ "${1##*/}" != sh ]; do shift; done\n'
    texts = {
        "bench-agent": f'#!/bin/sh\necho "$BENCH_INVITE $*" >> {tmp_path}/calls\n'
        '[ "$BENCH_INVITE" != used ]\n',
        "srun": f'{shell}exec "$@"\n',
        "docker": f'{shell}shift\nwhile [ "$1" != -c ]; do shift; done\nexec sh "$@"\n',
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return folder


@pytest.mark.parametrize("engine", NUMBERS)
@pytest.mark.parametrize(
    ("codes", "calls"),
    [
        ("one two", [("one enroll", "one run"), ("two enroll", "two run")]),
        ("one", [("one enroll", "one run"), (" run",)]),
        ("", [(" run",), (" run",)]),
        ("one used", [("one enroll", "one run"), ("used enroll",)]),
    ],
)
def test_each_machine_enrolls_with_its_code_and_measures(
    engine: str, codes: str, calls: list[tuple[str, ...]], programs: Path
) -> None:
    """A machine whose code is refused measures nothing and fails."""
    text = written(engine)
    if engine == "kubernetes":
        *shell, text = pod_of(yaml.safe_load(text))["containers"][0]["command"]
        assert shell == ["/bin/sh", "-c"]
    if engine == "skypilot":
        text = yaml.safe_load(text)["run"]
    noted = programs.parent / "calls"
    for number, expected in enumerate(calls):
        noted.unlink(missing_ok=True)
        environment = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "HOME": str(programs.parent),
            "BENCH_INVITE": codes,
            "SLURMD_NODENAME": "a",
            NUMBERS[engine]: str(number),
        }
        ended = subprocess.run(["bash"], input=text, text=True, env=environment)
        assert (ended.returncode == 0) == (expected[-1] != "used enroll")
        short = tuple(line.partition(" --")[0] for line in noted.read_text().splitlines())
        assert short == expected


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--emit", "pbs"], "choose one of: slurm, kubernetes, ansible, skypilot"),
        (["--emit", ""], "unknown engine ''"),
        (["--emit", "slurm"], "--emit slurm needs --machines"),
        (["--emit", "kubernetes", *NEEDED["kubernetes"]], "--emit kubernetes needs --server"),
        (["--emit", "ansible"], "--emit ansible needs --environment"),
        (["--emit", "ansible", "--environment", "venv"], "--environment venv: give an absolute"),
        (["--emit", "slurm", "--machines=2", "--image", "a"], "--image has no effect with --emit"),
        (["--emit", "slurm", "--machines=2", "--gpus", "x"], "--gpus x: give a number"),
        (["--emit", "slurm", "--machines=2", "--gpus", "0"], "--gpus 0: give a number"),
        (["--emit", "slurm", "--machines=2", "--server", "bench"], "not the address of a server"),
        (["--emit", "slurm", "--preset", "smoke", "--like", "m2-max-article"], "exclude"),
        (
            ["--emit", "skypilot", *NEEDED["skypilot"][:4], "--gpus", "1", "--server", SERVER],
            "--gpus 1: skypilot needs a type too, as in H100:1",
        ),
    ],
)
def test_wrong_usage_says_why(arguments: list[str], says: str) -> None:
    ended = CliRunner().invoke(app, ["fleet", *arguments])
    assert isinstance(ended.exception, UsageProblem)
    assert says in str(ended.exception)


@pytest.mark.parametrize(
    ("engine", "option", "value"),
    [
        *(("slurm", "--device", value) for value in ("$(id)", "`id`", "'", '"', "{{ x }}")),
        *(("slurm", "--device", value) for value in ("a\nb", "a;b", "a#", "--x")),
        ("slurm", "--environment", "a b"),
        ("kubernetes", "--image", "a b"),
        ("ansible", "--environment", "a b"),
        ("skypilot", "--gpus", "a b"),
        ("ansible", "--server", "a b"),
    ],
)
def test_a_value_that_a_shell_or_yaml_interprets_is_refused(
    engine: str, option: str, value: str
) -> None:
    arguments = ["fleet", "--emit", engine, "--server", SERVER, *NEEDED[engine], option, value]
    ended = CliRunner().invoke(app, arguments)
    assert isinstance(ended.exception, UsageProblem)
    assert str(ended.exception).startswith(f"{option} {value!r} cannot be in a file")
