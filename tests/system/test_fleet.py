"""The files of ``bench-agent fleet`` in their engines.

Slurm: a controller and two nodes on loopback, which needs root and Debian's package slurm-wlm
(``apt-get install slurm-wlm``). Ansible: ``pip install ansible-core``. SkyPilot reads its task, and
starts nothing: ``pip install skypilot``, in an environment of its own; this package is large.
A test whose engine is missing is skipped. Kubernetes: tests/agent/test_fleet.py.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from tests.fakes.ports import free_port
from tests.fakes.waiting import wait_for
from tests.system.conftest import BIN, Server

from bench_agent.base.home import Home
from bench_agent.remote.outbox import Outbox

pytestmark = pytest.mark.long
# The system's folder is not on the PATH of every user.
PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"
NODES = ("node-a", "node-b")
# One set-up that any machine can measure.
SMALL = ("--preset", "smoke", "--workload", "fashion-mlp", "--framework", "mlx", "--device", "cpu")
SMALL += ("--recipe", "naive", "--repeats", "1")
MEASURE_SECONDS = 400
CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/controller.pid
SlurmdPidFile={folder}/%n.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
ReturnToService=2
{nodes}
PartitionName=both Nodes=ALL Default=YES State=UP
PartitionName=one Nodes={first} State=UP
"""


def file_of(engine: str, *options: str) -> str:
    command = [BIN / "bench-agent", "fleet", "--emit", engine, *options]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def stand_in(folder: Path) -> Path:
    """An environment whose agent notes its folder, and fails where ``fails`` names that folder."""
    program = folder / "environment" / "bin" / "bench-agent"
    program.parent.mkdir(parents=True)
    program.write_text(
        f'#!/bin/sh\necho "${{BENCH_HOME##*/}} $1" >> {folder}/calls\n'
        f'sleep 1\n! grep -q "^${{BENCH_HOME##*/}}$" {folder}/fails\n'
    )
    program.chmod(0o755)
    (folder / "fails").touch()
    return program.parents[1]


def calls(folder: Path) -> list[str]:
    return sorted((folder / "calls").read_text().splitlines())


def sent_by(homes: Path) -> set[str]:
    machines = set()
    for folder in homes.iterdir():
        (entry,) = Outbox(Home(folder).outbox).sent()
        machines.add(entry.result().machine.machine_hash)
    return machines


@dataclass(frozen=True)
class Slurm:
    folder: Path

    def run(self, *command: str, **environment: str) -> str:
        done = subprocess.run(
            command,
            env={**os.environ, **environment, "PATH": PATH, "SLURM_CONF": self.configuration},
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    @property
    def configuration(self) -> str:
        return str(self.folder / "slurm.conf")

    def submit(self, script: str, *options: str, **environment: str) -> str:
        file = self.folder / "job.sbatch"
        file.write_text(script)
        return self.run("sbatch", "--parsable", *options, str(file), **environment).strip()

    def state(self, job: str) -> str:
        (state,) = re.findall(r"JobState=(\w+)", self.run("scontrol", "show", "job", job))
        return state

    def ended(self, job: str, seconds: float = 60) -> str:
        """The state in which a job ended; empty if it has not."""

        def over() -> str:
            state = self.state(job)
            return "" if state in ("PENDING", "RUNNING", "COMPLETING") else state

        return wait_for(over, seconds, pause_seconds=0.5)


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    missing = [
        name
        for name in ("munged", "slurmctld", "slurmd", "sbatch")
        if not shutil.which(name, path=PATH)
    ]
    if missing or os.geteuid() != 0:
        pytest.skip(f"Slurm's {', '.join(missing)} not installed" if missing else "not root")
    folder = tmp_path_factory.mktemp("slurm")
    for name in ("state", *(f"spool-{node}" for node in NODES)):
        (folder / name).mkdir()
    key = folder / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    made = Slurm(folder)
    host = os.uname().nodename
    nodes = "\n".join(
        f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={free_port()} CPUs=1"
        for node in NODES
    )
    ports = {"controller": free_port()}
    Path(made.configuration).write_text(
        CONFIGURATION.format(folder=folder, host=host, nodes=nodes, first=NODES[0], **ports)
    )
    munge = [f"--{name}-file={folder}/munge.{name}" for name in ("key", "log", "pid", "seed")]
    commands = [
        ["munged", "--foreground", "--force", f"--socket={folder}/munge.socket", *munge],
        ["slurmctld", "-D"],
        *(["slurmd", "-D", "-N", node] for node in NODES),
    ]
    processes = []
    try:
        for command in commands:
            with (folder / f"{command[0]}-{len(processes)}.log").open("w") as log:
                environment = {**os.environ, "PATH": PATH, "SLURM_CONF": made.configuration}
                processes.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
            if command[0] == "munged":
                assert wait_for((folder / "munge.socket").exists)
        idle = ["idle"] * len(NODES)
        assert wait_for(
            lambda: made.run("sinfo", "-hN", "-p", "both", "-o", "%t").split() == idle
        ), made.run("sinfo")
        yield made
        made.run("scancel", "--user=root")
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait(20)


def test_slurm_measures_each_of_two_nodes_once(
    slurm: Slurm, make_server: Callable[[], Server], tmp_path: Path
) -> None:
    server, homes = make_server().start(), tmp_path / "homes"
    options = ("--machines", "2", "--environment", sys.prefix, "--server", server, *SMALL)
    job = slurm.submit(file_of("slurm", *options), BENCH_HOME=str(homes))
    assert slurm.ended(job, MEASURE_SECONDS) == "COMPLETED"
    assert {home.name for home in homes.iterdir()} == set(NODES)
    assert len(sent_by(homes)) == 2
    with httpx.Client(base_url=server) as http:
        assert len(http.get("/api/v1/results").json()["results"]) == 2


def test_a_slurm_job_waits_for_as_many_free_nodes_as_it_asks_for(
    slurm: Slurm, tmp_path: Path
) -> None:
    script = file_of("slurm", "--machines", "2", "--environment", str(stand_in(tmp_path)))
    other = slurm.submit("#!/bin/sh\nsleep 600\n", f"--nodelist={NODES[1]}")
    assert wait_for(lambda: slurm.state(other) == "RUNNING")
    jobs = [slurm.submit(script), slurm.submit(script, "--partition=one")]
    assert wait_for(lambda: slurm.run("squeue", "-ho", "%r", "-t", "PD").count("\n") == 2)
    assert [slurm.state(job) for job in jobs] == ["PENDING", "PENDING"]
    slurm.run("scancel", other, jobs[1])
    assert slurm.ended(jobs[0]) == "COMPLETED"
    assert calls(tmp_path) == [f"{node} run" for node in NODES]


def test_a_slurm_job_on_fewer_nodes_than_asked_for_fails(slurm: Slurm, tmp_path: Path) -> None:
    """Options of sbatch replace those of the file."""
    script = file_of("slurm", "--machines", "2", "--environment", str(stand_in(tmp_path)))
    assert slurm.ended(slurm.submit(script, "--nodes=1", "--partition=one")) == "FAILED"
    assert not (tmp_path / "calls").exists()


def test_a_slurm_job_with_a_machine_that_fails_measures_the_other_and_fails(
    slurm: Slurm, tmp_path: Path
) -> None:
    script = file_of("slurm", "--machines", "2", "--environment", str(stand_in(tmp_path)))
    (tmp_path / "fails").write_text(NODES[0])
    assert slurm.ended(slurm.submit(script)) == "FAILED"
    assert calls(tmp_path) == [f"{node} run" for node in NODES]


def play(folder: Path, playbook: str, inventory: str, *options: str) -> int:
    program = shutil.which("ansible-playbook", path=f"{BIN}:{PATH}")
    if program is None:
        pytest.skip("ansible-core is not installed")
    (folder / "fleet.yaml").write_text(playbook)
    (folder / "hosts.ini").write_text(
        f"{inventory}\n[all:vars]\nansible_connection=local\n"
        f"ansible_python_interpreter={sys.executable}\n"
    )
    environment = {**os.environ, "HOME": str(folder), "ANSIBLE_HOME": str(folder / "ansible")}
    command = [program, "--inventory", "hosts.ini", "fleet.yaml", *options]
    return subprocess.run(command, cwd=folder, env=environment).returncode


def test_ansible_measures_each_host_once_and_names_the_one_that_fails(tmp_path: Path) -> None:
    playbook = file_of("ansible", "--environment", str(stand_in(tmp_path)))
    hosts = "node-a\nnode-b"
    assert play(tmp_path, playbook, hosts, "--syntax-check") == 0
    assert play(tmp_path, playbook, hosts) == 0
    assert calls(tmp_path) == ["node-a run", "node-b run"]
    (tmp_path / "fails").write_text("node-a")
    assert play(tmp_path, playbook, hosts) != 0
    assert calls(tmp_path).count("node-b run") == 2


def test_ansible_enrolls_a_host_by_its_code_and_posts(
    make_server: Callable[[], Server], tmp_path: Path
) -> None:
    server = make_server()
    server.environment["BENCH_SERVER_ENROLLMENT"] = "invite"
    address = server.start()
    invite = [BIN / "bench-server", "create-invite"]
    made = subprocess.run(
        invite, env=server.environment, check=True, capture_output=True, text=True
    )
    (code,) = re.findall(r"^\S{20,}$", made.stdout, re.MULTILINE)
    options = ("--environment", sys.prefix, "--server", address, *SMALL)
    assert play(tmp_path, file_of("ansible", *options), f"node-a bench_invite={code}") == 0
    assert len(sent_by(tmp_path / ".local" / "share" / "trainmark")) == 1


def test_skypilot_reads_the_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKYPILOT_DISABLE_USAGE_COLLECTION", "1")
    monkeypatch.setenv("HOME", str(tmp_path))
    sky = pytest.importorskip("sky", reason="skypilot is not installed")
    options = ("--machines", "3", "--image", "tm:1", "--gpus", "H100:1", "--server", "https://a.b")
    (tmp_path / "fleet.yaml").write_text(file_of("skypilot", *options))
    task = sky.Task.from_yaml(str(tmp_path / "fleet.yaml"))
    (resources,) = task.resources
    assert (task.num_nodes, resources.accelerators) == (3, {"H100": 1})
