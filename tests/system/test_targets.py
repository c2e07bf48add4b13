"""Programs behind the targets of the Makefile print their help, and leave no process behind when
they are terminated."""

import os
import re
import runpy
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from tests.fakes.live import forked
from tests.fakes.waiting import wait_for

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = re.findall(r"^([a-z0-9-]+):.*## ", MAKEFILE, re.MULTILINE)
# Targets without a program of this project.
OTHERS = {
    "help": "awk prints the table of targets",
    "install": "pip",
    "frameworks": "pip",
    "test-all": "make test with all tests",
    "test-python": "pip and pytest",
    "lint": "ruff, import-linter, pytest",
    "pin-images": "a shell script that asks docker",
    "types": "mypy",
    "clean": "rm",
}
# Programs that start no server and no worker, or only after minutes.
WITHOUT_SERVERS = {
    "audit-dependencies": "starts no process",
    "benchmark-asks": "starts no process",
    "migrate": "starts no process",
    "locks": "starts uv alone",
    "check-mac": "starts pip, uv and pytest, one after the other",
    "release-check": "builds for minutes, with tools that the tests do not have",
}
FILES = ["tests/server/test_log.py", "tests/server/test_operator.py"]
ONE_CELL = ["--workloads", "mnist-dense", "--frameworks", "mlx"]
# The smallest form of each program that starts servers or workers.
SMALLEST = {
    "demo": ["--once", "--workload", "mnist-dense", "--framework", "mlx"],
    "test": ["--numprocesses", "2", "-m", "postgresql", *FILES],
    "test-deploy": [],
    "check-gpu": ["facts", "--device", "cpu", "--frameworks", "mlx", "--workloads", "mnist-dense"],
    "audit": ["--only", "forged"],
    "test-faults": ["--only", "proxy", "--database", "postgresql"],
    "test-soak": ["--database", "postgresql"],
    "faults": ["--only", "B1", "--no-controls"],
    "serve": [],
    "screenshots": [],
    "benchmark-fidelity": ["--frameworks", "mlx", "--recipes", "naive"],
    "benchmark-accuracy": ["--data", "generated", *ONE_CELL],
    "benchmark-server": ["--sizes", "1000", "--no-peers"],
    "benchmark-sizes": ["--sizes", "1000,2000", "--databases", "postgresql"],
    "benchmark-recipes": ["--workloads", "fashion-mlp", "--frameworks", "mlx", "--pairs", "1"],
}


def command_of(target: str) -> list[str]:
    if target == "test":
        return [sys.executable, "-m", "pytest"]
    recipe = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    assert recipe is not None, target
    if found := re.search(r"\$\(BIN\)/bench-server (\w+)", recipe[1]):
        main = "from bench_server.cli.main import main; main()"
        return [sys.executable, "-c", main, found[1]]
    found = re.search(
        r"(?:\$\(BIN\)|\.release/bin)/python ((?:-W \w+ )?(?:-m )?[\w./]+)", recipe[1]
    )
    assert found is not None, f"{target} has no program: name it in OTHERS, with the reason"
    return [sys.executable, *found[1].split()]


def test_every_target_is_known() -> None:
    known = [*OTHERS, *WITHOUT_SERVERS, *SMALLEST]
    assert sorted(known) == sorted(TARGETS)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "TRAINMARK_TEST": uuid.uuid4().hex,
        "TRAINMARK_DEMO": str(tmp_path / "demo"),
        "BENCH_SERVER_DATABASE_URL": f"sqlite:///{tmp_path / 'server.db'}",
        "BENCH_SERVER_PORT": "0",
        "BENCH_HOME": str(tmp_path / "agent"),
        "OUT": str(tmp_path / "out"),
        "COLUMNS": "80",
    }


@pytest.mark.parametrize("target", [name for name in TARGETS if name not in OTHERS])
def test_a_program_prints_its_help(target: str, environment: dict[str, str]) -> None:
    done = forked(print_help, (command_of(target)[1:], environment), 120)
    assert done.code == 0, done.stderr
    assert re.search(r"^ *usage: ", done.stdout, re.IGNORECASE | re.MULTILINE), done.stdout
    assert not set(started(environment))


def print_help(words: list[str], environment: dict[str, str], out: Path, err: Path) -> None:
    """In a forked process that has the imports, which take most of the time of a new one."""
    os.environ.update(environment)
    os.chdir(ROOT)
    sys.stdout, sys.stderr = out.open("w"), err.open("w")
    if words[0] == "-W":
        words = words[2:]
    kind, *others = words
    program = others[0] if kind == "-m" else kind
    sys.argv = [program, *others[1:], "--help"]
    if kind == "-c":
        exec(others[0], {})
    elif kind == "-m":
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, str(Path(program).parent))
        runpy.run_path(program, run_name="__main__")


@pytest.mark.parametrize(
    "target",
    [
        "benchmark-asks",
        *(
            pytest.param(name, marks=pytest.mark.long)
            for name in ("benchmark-sizes", "benchmark-recipes")
        ),
    ],
)
def test_the_smallest_form_of_a_benchmark_ends(target: str, environment: dict[str, str]) -> None:
    least = ["--sizes", "1000", "--runs", "1"] if target == "benchmark-asks" else SMALLEST[target]
    command = [*command_of(target), *least]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.long
@pytest.mark.parametrize("target", SMALLEST)
def test_a_terminated_program_leaves_no_process(
    target: str, environment: dict[str, str], tmp_path: Path
) -> None:
    if target == "serve":
        subprocess.run([*command_of("migrate")], env=environment, check=True)
        environment["BENCH_SERVER_WORKERS"] = "2"
    log = tmp_path / "log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [*command_of(target), *SMALLEST[target]],
            cwd=ROOT, env=environment, stdout=output, stderr=output,
        )  # fmt: skip
    mine = psutil.Process(process.pid)
    try:
        assert wait_for(lambda: process.poll() is not None or len(mine.children()) > 0, 120, 0.1)
        time.sleep(25 if target == "test" else 3)  # pytest starts its servers later
        assert process.poll() is None, log.read_text()
        children = {mine, *mine.children(recursive=True), *started(environment)}
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        assert wait_for(lambda: not left(children, environment), 30, 0.5), left(
            children, environment
        )
    finally:
        for each in left({mine, *started(environment)}, environment):
            each.kill()


def started(environment: dict[str, str]) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        try:
            if process.environ().get("TRAINMARK_TEST") == environment["TRAINMARK_TEST"]:
                yield process
        except psutil.Error:
            continue


def left(children: set[psutil.Process], environment: dict[str, str]) -> list[psutil.Process]:
    everyone = children | set(started(environment))
    return [
        each for each in everyone if each.is_running() and each.status() != psutil.STATUS_ZOMBIE
    ]
