"""``make demo`` on a machine with faults: it goes on, and ends with a page of them."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.system.conftest import Ran

ROOT = Path(__file__).parents[2]
# In every worker: the frameworks in OMP_NO_IMPORT cannot be imported, and the worker of those in
# OMP_DIES dies when it trains.
SITE = """
import os, signal, sys, traceback
broken = os.environ.get("OMP_NO_IMPORT", "").split()
deadly = os.environ.get("OMP_DIES", "").split()
if "bench_agent.worker" in " ".join(sys.orig_argv):
    class Fault:
        def find_spec(self, name, path=None, target=None):
            if name in broken:
                raise RuntimeError("planted: no such symbol")
            if name in deadly:
                if all(frame.name != "probe" for frame in traceback.extract_stack()):
                    os.kill(os.getpid(), signal.SIGKILL)
    sys.meta_path.insert(0, Fault())
"""
SMALL = (
    "--workload", "mnist-dense", "--recipe", "naive", "--device", "cpu", "--budget-seconds", "0.5",
    "--wait-seconds", "0",
)  # fmt: skip


@pytest.fixture
def demo(tmp_path: Path) -> Callable[..., Ran]:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(SITE)
    paths = [str(tmp_path / "site"), *filter(None, [os.environ.get("PYTHONPATH")])]
    places = {"PYTHONPATH": os.pathsep.join(paths), "TRAINMARK_DEMO": str(tmp_path / "demo")}

    def run(*options: str, **faults: str) -> Ran:
        done = subprocess.run(
            [sys.executable, ROOT / "deploy" / "demo.py", "--once", *SMALL, *options],
            env={**os.environ, **places, **faults},
            capture_output=True,
            text=True,
            timeout=280,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    return run


def test_the_demo_goes_on_after_faults_and_ends_with_them(demo: Callable[..., Ran]) -> None:
    three = ("--framework", "mlx", "--framework", "tensorflow", "--framework", "jax")
    ran = demo(*three, OMP_NO_IMPORT="tensorflow", OMP_DIES="jax")
    assert ran.code == 0, ran.stdout + ran.stderr
    worked, failed = ran.stdout.split("What worked")[1].split("What did not")
    assert "mlx on cpu: 1 of 1 repeat measured" in worked
    assert "jax on cpu: 1 of 1 repeat failed" in failed
    assert "--framework jax --device cpu --workload mnist-dense" in failed
    assert "tensorflow is installed but cannot be used: RuntimeError: planted" in failed
    assert "doctor --bundle" in failed
    assert "2 new results, 2 in all; the server showed each" in failed
    # A busy machine can make a result doubtful, which the line below says.
    said = re.search(r"At trust level 3: (\d) of 1 result\.", failed)
    assert said is not None, failed
    assert said[1] == "1" or "1 at level 2: " in failed, failed
    assert "The server stops at the end" in ran.stdout.split("What worked")[0]


@pytest.mark.parametrize(("code", "ends"), [(0, "the server was stopped"), (3, "exit code 3; see")])
def test_a_server_that_ends_first_ends_the_demo(code: int, ends: str) -> None:
    waits = (
        "import subprocess, sys; sys.path.insert(0, sys.argv[1]); import demo; "
        "demo.stay(subprocess.Popen([sys.executable, '-c', f'raise SystemExit({sys.argv[2]})']))"
    )
    words = [sys.executable, "-c", waits, str(ROOT / "deploy"), str(code)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert ends in done.stdout + done.stderr
    assert done.returncode == (1 if code else 0)


@pytest.mark.parametrize("broken", ["TRAINMARK_DEMO", "BENCH_SERVER_KEYS_DIR"])
def test_a_folder_that_cannot_be_used_is_named(
    demo: Callable[..., Ran], tmp_path: Path, broken: str
) -> None:
    file = tmp_path / "file"
    file.touch()
    ran = demo("--framework", "mlx", **{broken: str(file)})
    assert ran.code == 1
    assert ran.stderr.splitlines()[-1].startswith("demo failed: ")
    assert "Traceback" not in ran.stderr
