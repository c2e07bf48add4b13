"""Job files that run the agent once on each of several nodes: a Slurm array, a Kubernetes Job.

On each node the agent has a folder of its own, so that it has its own key, and a run that was cut
off is resumed on the same node only.
"""

import shlex
from collections.abc import Sequence
from typing import Any

NAME = "trainmark"
HOME = "/var/lib/trainmark"
USER = 65532
HOSTNAME = "kubernetes.io/hostname"


def slurm(arguments: Sequence[str], machines: int, hours: int = 12) -> str:
    """A script for ``sbatch``: an array with one element for each machine.

    Each element has its node alone. An element that gets a node on which another element of the
    same array has finished measures nothing.

    Args:
        arguments: of ``bench-agent run``.
        hours: time limit of an element.
    """
    command = shlex.join(["bench-agent", "run", "--resume", "--yes", *arguments])
    return f"""\
#!/bin/bash
#SBATCH --job-name={NAME}
#SBATCH --array=0-{machines - 1}
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --exclusive
#SBATCH --requeue
#SBATCH --time={hours}:00:00
#SBATCH --signal=B:INT@300
#SBATCH --output={NAME}-%A_%a.log
set -eu
# A folder, and so a key, for each node.
export BENCH_HOME="${{BENCH_HOME:-$HOME/.local/share/trainmark}}/$SLURMD_NODENAME"
mkdir -p "$BENCH_HOME"
chmod 700 "$BENCH_HOME"
exec 9> "$BENCH_HOME/array.lock"
flock 9
if [ "$(cat "$BENCH_HOME/array.done" 2> /dev/null)" = "$SLURM_ARRAY_JOB_ID" ]; then
  echo "$SLURMD_NODENAME was measured by another element of this array"
  exit 0
fi
{command} &
agent=$!
trap 'kill -INT "$agent"' INT
status=0
wait "$agent" || status=$?
# An interrupt ends the first wait early; the agent finishes its repeat.
if kill -0 "$agent" 2> /dev/null; then
  status=0
  wait "$agent" || status=$?
fi
if [ "$status" -eq 0 ]; then echo "$SLURM_ARRAY_JOB_ID" > "$BENCH_HOME/array.done"; fi
exit "$status"
"""


def kubernetes(
    arguments: Sequence[str], machines: int, image: str, gpus: int = 0
) -> dict[str, Any]:
    """An indexed ``batch/v1`` Job: one pod for each machine, at most one of them on a node.

    The agent's folder is :data:`HOME` of the node, which must exist and belong to user
    :data:`USER`. A container that fails starts again on the same node.

    Args:
        arguments: of ``bench-agent run``.
        image: a container image with the agent and the frameworks to measure.
        gpus: NVIDIA GPUs of each pod.
    """
    labels = {"app.kubernetes.io/name": NAME}
    spread = {"labelSelector": {"matchLabels": labels}, "topologyKey": HOSTNAME}
    container: dict[str, Any] = {
        "name": "agent",
        "image": image,
        "command": ["bench-agent", "run", "--resume", "--yes", *arguments],
        "env": [{"name": "BENCH_HOME", "value": HOME}],
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
