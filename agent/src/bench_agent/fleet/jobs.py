"""Job files that run the agent once on each of several nodes: a Slurm array, a Kubernetes Job.

On each node the agent has a folder of its own, so that it has its own key, and a run that was cut
off is resumed on the same node only. A node whose run is complete measures nothing more for the
same job; what it could not send is sent.
"""

import hashlib
import shlex
from collections.abc import Sequence
from typing import Any

NAME = "trainmark"
HOME = "/var/lib/trainmark"
IMAGE = "trainmark-agent:latest"
USER = 65532
HOSTNAME = "kubernetes.io/hostname"
# Time for the agent to finish its repeat when a pod is ended, in seconds.
GRACE_SECONDS = 300
# The job's identity, which its pods have as a label (Kubernetes 1.27 and later).
JOB_LABEL = "batch.kubernetes.io/controller-uid"


def slurm(
    arguments: Sequence[str], machines: int, server: str | None, gpus: int = 0, hours: int = 12
) -> str:
    """A script for ``sbatch``: an array with one element for each machine.

    Each element has its node alone. An element that gets a node on which another element of the
    same array has finished measures nothing.

    Args:
        arguments: of ``bench-agent run``.
        server: among them, if any.
        gpus: GPUs of each node, as a generic resource; 0 asks for none.
        hours: time limit of an element.
    """
    resources = f"#SBATCH --gres=gpu:{gpus}\n" if gpus else ""
    return f"""\
#!/bin/bash
#SBATCH --job-name={NAME}
#SBATCH --array=0-{machines - 1}
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --exclusive
{resources}#SBATCH --mem=0
#SBATCH --requeue
#SBATCH --time={hours}:00:00
#SBATCH --signal=B:INT@{GRACE_SECONDS}
#SBATCH --output={NAME}-%A_%a.log
# A folder, and so a key, for each node.
export BENCH_HOME="${{BENCH_HOME:-$HOME/.local/share/trainmark}}/$SLURMD_NODENAME"
JOB=$SLURM_ARRAY_JOB_ID
mkdir -p "$BENCH_HOME"
chmod 700 "$BENCH_HOME"
exec 9> "$BENCH_HOME/job.lock"
flock 9
{_once(arguments, server)}"""


def _once(arguments: Sequence[str], server: str | None) -> str:
    """Commands of a POSIX shell that run the agent in ``$BENCH_HOME``, unless its run of ``$JOB``
    is complete there. Failed repeats are results too: statuses 0, 1 and 3 (server unreachable) of a
    run without a journal are complete. A run of other arguments that was cut off there is not
    resumed."""
    run = shlex.join(["bench-agent", "run", "--resume", "--yes", *arguments])
    submit = shlex.join(["bench-agent", "submit", "--yes", "--server", server]) if server else ":"
    digest = hashlib.sha256(run.encode()).hexdigest()
    return f"""\
set -eu
if [ "$(cat "$BENCH_HOME/job.done" 2> /dev/null)" = "$JOB" ]; then
  echo "this job has measured this node before"
  {submit}
  exit
fi
if [ "$(cat "$BENCH_HOME/job.run" 2> /dev/null)" != {digest} ]; then
  rm -f "$BENCH_HOME/run.json"
  echo {digest} > "$BENCH_HOME/job.run"
fi
{run} &
agent=$!
trap 'kill -INT "$agent"' INT TERM
status=0
wait "$agent" || status=$?
# A signal ends the wait early; the agent finishes its repeat.
while kill -0 "$agent" 2> /dev/null; do
  status=0
  wait "$agent" || status=$?
done
case $status in
  0 | 1 | 3) [ -e "$BENCH_HOME/run.json" ] || echo "$JOB" > "$BENCH_HOME/job.done" ;;
esac
exit "$status"
"""


def kubernetes(
    arguments: Sequence[str], machines: int, server: str | None, image: str = IMAGE, gpus: int = 0
) -> dict[str, Any]:
    """An indexed ``batch/v1`` Job: one pod for each machine, at most one of them on a node.

    The agent's folder is :data:`HOME` of the node, which must exist and belong to user
    :data:`USER`. A container that ends with an error starts again on the same node. A pod that gets
    a node on which another pod of the Job has finished measures nothing.

    Args:
        arguments: of ``bench-agent run``.
        server: among them, if any.
        image: a container image with the agent, a shell and the frameworks to measure.
        gpus: NVIDIA GPUs of each pod.
    """
    labels = {"app.kubernetes.io/name": NAME}
    spread = {"labelSelector": {"matchLabels": labels}, "topologyKey": HOSTNAME}
    container: dict[str, Any] = {
        "name": "agent",
        "image": image,
        "command": ["sh", "-c", _once(arguments, server)],
        "env": [
            {"name": "BENCH_HOME", "value": HOME},
            # The image's own home may belong to another user.
            {"name": "HOME", "value": HOME},
            {
                "name": "JOB",
                "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{JOB_LABEL}']"}},
            },
        ],
        "volumeMounts": [
            {"name": "home", "mountPath": HOME},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - inside the container
        ],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    if gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": gpus}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": NAME, "labels": labels},
        "spec": {
            "completionMode": "Indexed",
            "completions": machines,
            "parallelism": machines,
            "backoffLimit": 2 * machines,
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "restartPolicy": "OnFailure",
                    "terminationGracePeriodSeconds": GRACE_SECONDS,
                    "automountServiceAccountToken": False,
                    "affinity": {
                        "podAntiAffinity": {
                            "requiredDuringSchedulingIgnoredDuringExecution": [spread]
                        }
                    },
                    "securityContext": {"runAsNonRoot": True, "runAsUser": USER},
                    "containers": [container],
                    "volumes": [
                        {"name": "home", "hostPath": {"path": HOME, "type": "Directory"}},
                        {"name": "tmp", "emptyDir": {}},
                    ],
                },
            },
        },
    }
