"""The file with which Slurm, Kubernetes, Ansible or SkyPilot runs the agent on several machines.

The engine chooses the machines, starts the agent and reports failures. On each machine the agent
plans, signs with that machine's key and posts by itself. The server's read token and the invitation
codes come from the engine's environment or secrets and are in no file.

No value in a file has a character that a shell, YAML or Jinja interprets: the command has checked
that.
"""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from textwrap import indent

# The user of the agent's image, and its folder (deploy/agent.Dockerfile).
IMAGE_USER = 10002
IMAGE_HOME = "/home/trainmark"


@dataclass(frozen=True)
class Fleet:
    """The same run on several machines.

    ``run``: arguments of ``bench-agent run``; ``server``: the server among them. ``image``: a
    container image with the agent and the frameworks to measure; ``environment``: a virtual
    environment with them, at this path on every machine. ``gpus``: of each machine, as ``1`` or
    ``H100:1``. An engine leaves out what it does not use.
    """

    run: tuple[str, ...]
    server: str | None = None
    machines: int | None = None
    image: str | None = None
    environment: str | None = None
    gpus: str | None = None
    cpus: int | None = None
    memory_gib: int | None = None


def slurm(fleet: Fleet) -> str:
    """A batch script: one allocation of N nodes, one task on each.

    Slurm starts it when N nodes are free at once, so every task has a node of its own. ``srun``
    ends with the highest exit code of its tasks, and with an error if the allocation has fewer
    nodes, so the job is COMPLETED only if every machine measured.
    """
    number = fleet.machines
    gpus = "" if fleet.gpus is None else f"#SBATCH --gpus-per-node={fleet.gpus}\n"
    path = "" if fleet.environment is None else f"export PATH={fleet.environment}/bin:$PATH\n"
    # In a home folder that the nodes share, each has a folder of its own, and so a key.
    task = f"""
export BENCH_HOME="${{BENCH_HOME:-$HOME/.local/share/trainmark}}/$SLURMD_NODENAME"
{_measure("bench-agent", fleet, "SLURM_PROCID")}"""
    return f"""\
#!/bin/bash
# sbatch FILE. BENCH_SERVER_TOKEN and BENCH_INVITE (codes separated by spaces, one for each machine)
# come from the environment of sbatch.
#SBATCH --job-name=trainmark
#SBATCH --nodes={number}
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --mem=0
{gpus}{path}srun --nodes={number} --ntasks={number} --ntasks-per-node=1 --cpu-bind=none \\
  --kill-on-bad-exit=0 --wait=0 --label sh -c {shlex.quote(task)}
"""


def kubernetes(fleet: Fleet) -> str:
    """An indexed Job: one pod for each machine, never two on a node at a time.

    It passes the Pod Security profile "restricted". A failed pod is not repeated, the others go on,
    and the Job fails. A pod's requests equal its limits, so that it gets cores of its own where
    kubelets have the static CPU policy. The server is needed: a pod's folder ends with the pod.
    """
    resources, selector = f'cpu: "{fleet.cpus}", memory: {fleet.memory_gib}Gi', ""
    if fleet.gpus is not None:
        model, _, count = fleet.gpus.rpartition(":")
        resources += f', nvidia.com/gpu: "{count}"'
        if model:
            selector = f'      nodeSelector:\n        nvidia.com/gpu.product: "{model}"\n'
    script = _measure("bench-agent", fleet, "JOB_COMPLETION_INDEX")
    return f"""\
# kubectl create --filename FILE (Kubernetes 1.29 or newer). The Secret "trainmark" may have
# BENCH_SERVER_TOKEN and BENCH_INVITE (codes separated by spaces, one for each machine).
apiVersion: batch/v1
kind: Job
metadata:
  generateName: trainmark-
spec:
  completionMode: Indexed
  completions: {fleet.machines}
  parallelism: {fleet.machines}
  backoffLimitPerIndex: 0
  template:
    metadata:
      labels:
        app.kubernetes.io/name: trainmark
    spec:
      restartPolicy: Never
      automountServiceAccountToken: false
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            - topologyKey: kubernetes.io/hostname
              labelSelector:
                matchLabels:
                  app.kubernetes.io/name: trainmark
{selector}      securityContext:
        runAsNonRoot: true
        runAsUser: {IMAGE_USER}
        fsGroup: {IMAGE_USER}
        seccompProfile:
          type: RuntimeDefault
      containers:
        - name: agent
          image: "{fleet.image}"
          command:
            - /bin/sh
            - -c
            - |
{indent(script, " " * 14)}
          env:
            - name: NODE
              valueFrom:
                fieldRef:
                  fieldPath: spec.nodeName
            - name: HOME
              value: {IMAGE_HOME}
            - name: BENCH_HOME
              value: {IMAGE_HOME}/$(NODE)
          envFrom:
            - secretRef:
                name: trainmark
                optional: true
          resources:
            requests: {{{resources}}}
            limits: {{{resources}}}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities:
              drop: [ALL]
          volumeMounts:
            - name: home
              mountPath: {IMAGE_HOME}
            - name: tmp
              mountPath: /tmp
      volumes:
        # Each Job makes new keys here. In its place a persistentVolumeClaim that all nodes can
        # write keeps the key of each node.
        - name: home
          emptyDir: {{}}
        - name: tmp
          emptyDir: {{}}
"""


def ansible(fleet: Fleet) -> str:
    """A playbook that measures every host of the inventory over SSH.

    Token and code are read from standard input: a task's ``environment`` would be in the host's
    list of processes.
    """
    script = _measure(f"{fleet.environment}/bin/bench-agent", fleet)
    return f"""\
# ansible-playbook --inventory HOSTS FILE. BENCH_SERVER_TOKEN comes from its environment, the code
# that enrolls a host from the host's variable bench_invite.
- name: Measure how fast each machine trains small image, dense and LSTM models
  hosts: all
  gather_facts: false
  tasks:
    - name: Measure, sign and post
      ansible.builtin.shell:
        cmd: |
          read -r BENCH_SERVER_TOKEN
          read -r BENCH_INVITE
          export BENCH_SERVER_TOKEN BENCH_INVITE
          export BENCH_HOME="$HOME"/.local/share/trainmark/{{{{ inventory_hostname | quote }}}}
{indent(script, " " * 10)}
        stdin: |
          {{{{ lookup('ansible.builtin.env', 'BENCH_SERVER_TOKEN') }}}}
          {{{{ bench_invite | default('') }}}}
"""


def skypilot(fleet: Fleet) -> str:
    """A task: N virtual machines with these GPUs, one container on each. The server is needed: a
    machine's disk ends with the machine."""
    script = _measure("bench-agent", fleet, "SKYPILOT_NODE_RANK")
    container = f"""\
docker run --rm --gpus all --env BENCH_SERVER_TOKEN --env BENCH_INVITE \\
  --env SKYPILOT_NODE_RANK --entrypoint /bin/sh {fleet.image} -c {shlex.quote(script)}"""
    return f"""\
# sky launch --down FILE. BENCH_SERVER_TOKEN and BENCH_INVITE (codes separated by spaces, one for
# each machine) come from its options --secret BENCH_SERVER_TOKEN --secret BENCH_INVITE.
name: trainmark
num_nodes: {fleet.machines}
resources:
  accelerators: "{fleet.gpus}"
run: |
{indent(container, "  ")}
"""


def _measure(agent: str, fleet: Fleet, number: str | None = None) -> str:
    """Shell commands that enroll this machine if it has a code, and measure. ``number``: the
    variable with this machine's number, from 0: ``BENCH_INVITE`` has a code for each machine. None:
    it has this machine's code."""
    lines = []
    if number is not None:
        codes = 'echo "$BENCH_INVITE "'
        lines.append(f'export BENCH_INVITE="$({codes} | cut -d " " -f "$(({number} + 1))")"')
    if fleet.server is not None:
        enroll = shlex.join([agent, "enroll", "--server", fleet.server])
        lines.append(f'if [ -n "$BENCH_INVITE" ]; then {enroll} || exit; fi')
    lines.append(f"exec {shlex.join([agent, 'run', '--yes', *fleet.run])}")
    return "\n".join(lines)


ENGINES: Mapping[str, Callable[[Fleet], str]] = {
    "slurm": slurm,
    "kubernetes": kubernetes,
    "ansible": ansible,
    "skypilot": skypilot,
}
