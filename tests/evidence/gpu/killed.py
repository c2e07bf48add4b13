"""Kill a run after its first result and resume it: ``python -m tests.evidence.gpu.killed DEVICE
FRAMEWORK WORKLOAD SECONDS``. Prints what the resumed run says as JSON."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

AGENT = str(Path(sys.executable).with_name("bench-agent"))
SMI = ("nvidia-smi", "--query-compute-apps=pid,name,used_memory", "--format=csv,noheader")
POLL_SECONDS = 0.5


def results() -> int:
    """How many results the outbox holds."""
    done = subprocess.run([AGENT, "status", "--json"], capture_output=True, text=True, check=True)
    status = json.loads(done.stdout)
    return sum(len(status[state]) for state in ("pending", "sent", "refused"))


def main(device: str, framework: str, workload: str, seconds: str) -> int:
    """Run, kill, resume; the exit code of the resumed run."""
    command = [AGENT, "run", "--fresh", "--preset", "quick", "--device", device]
    command += ["--framework", framework, "--workload", workload, "--repeats", "1"]
    command += ["--budget-seconds", seconds, "--wait-seconds", "1"]
    before = results()
    process = subprocess.Popen(command, stdout=sys.stderr, stderr=sys.stderr)
    while results() == before and process.poll() is None:
        time.sleep(POLL_SECONDS)
    if process.poll() is not None:
        print("the run ended before it could be killed", file=sys.stderr)
        return 1
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    kept = results() - before
    time.sleep(3)  # a worker ends with its parent
    left = _left_on_the_gpu() if device == "cuda" else ""
    done = subprocess.run(
        [AGENT, "run", "--resume", "--wait-seconds", "1", "--json"],
        stdout=subprocess.PIPE,
        text=True,
    )
    told = json.loads(done.stdout or "{}")
    print(json.dumps({**told, "kept_before_the_kill": kept, "left_on_the_gpu": left}))
    return done.returncode


def _left_on_the_gpu() -> str:
    try:
        return subprocess.run(SMI, capture_output=True, text=True).stdout.strip()
    except OSError as problem:
        return f"unknown: {problem}"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
