"""``fleet``: print a file for an engine that runs the same measurements on several machines."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated

from ..base.errors import UsageProblem
from ..base.names import unknown
from ..base.terminal import write
from ..output.fleet_files import ENGINES, Fleet
from ..plan.plan import Selection, check_names
from ..plan.presets import preset_of
from ..remote.connection import checked_address
from .options import Like, PresetName, Server, choosing_cells, option

# The options that an engine needs, and those that it can use beside them.
NEEDED = {
    "slurm": ("--machines",),
    "kubernetes": ("--server", "--machines", "--image", "--cpus", "--memory-gib"),
    "ansible": ("--environment",),
    "skypilot": ("--server", "--machines", "--image", "--gpus"),
}
USABLE = {
    "slurm": ("--server", "--environment", "--gpus"),
    "kubernetes": ("--gpus",),
    "ansible": ("--server",),
    "skypilot": (),
}
# Values that a shell, YAML and Jinja leave as they are, and no program takes for an option.
PLAIN = re.compile(r"(?!-)[\w.:/@%+=~\[\]-]+", re.ASCII)
GPUS = re.compile(r"(?:[A-Za-z0-9](?:[\w.-]{0,61}[A-Za-z0-9])?:)?[1-9]\d?", re.ASCII)
Emit = Annotated[str, option("--emit", "ENGINE", "One of slurm, kubernetes, ansible, skypilot.")]
Machines = Annotated[
    int | None,
    option(
        "--machines",
        "N",
        "Number of machines, up to 10000. Ansible's are those of its inventory.",
        min=1,
        max=10_000,
    ),
]
Image = Annotated[
    str | None, option("--image", "NAME", "Container image with the agent: kubernetes, skypilot.")
]
EnvironmentPath = Annotated[
    str | None,
    option(
        "--environment",
        "PATH",
        "Virtual environment with the agent, the same path on each machine: slurm, ansible.",
    ),
]
GpusOption = Annotated[
    str | None,
    option(
        "--gpus", "[TYPE:]N", "GPUs of each machine, as 1 or H100:1; the engine knows the types."
    ),
]
Cpus = Annotated[
    int | None, option("--cpus", "N", "CPUs of each pod, up to 4096: kubernetes.", min=1, max=4096)
]
Memory = Annotated[
    int | None,
    option(
        "--memory-gib", "GIB", "Memory of each pod, up to 65536: kubernetes.", min=1, max=65_536
    ),
]


@choosing_cells
def fleet(
    selection: Selection,
    emit: Emit,
    preset: PresetName = None,
    like: Like = None,
    server: Server = None,
    machines: Machines = None,
    image: Image = None,
    environment: EnvironmentPath = None,
    gpus: GpusOption = None,
    cpus: Cpus = None,
    memory_gib: Memory = None,
) -> None:
    """Print a file for Slurm, Kubernetes, Ansible or SkyPilot that measures several machines, each
    as run does with --yes."""
    if emit not in NEEDED:
        raise UsageProblem(unknown("engine", emit, NEEDED))
    check_names(selection)
    preset_of(preset, like)
    given = {
        "--server": server,
        "--machines": machines,
        "--image": image,
        "--environment": environment,
        "--gpus": gpus,
        "--cpus": cpus,
        "--memory-gib": memory_gib,
    }
    _check_options(emit, given)
    run = run_arguments(selection, preset, like, server)
    _check_plain([*run, *(word for name, value in given.items() for word in (name, str(value)))])
    if server is not None:
        checked_address(server)
    if environment is not None and not environment.startswith("/"):
        raise UsageProblem(f"--environment {environment}: give an absolute path")
    if gpus is not None:
        _check_gpus(emit, gpus)
    wanted = Fleet(tuple(run), server, machines, image, environment, gpus, cpus, memory_gib)
    write(ENGINES[emit](wanted).removesuffix("\n"))


def run_arguments(
    selection: Selection, preset: str | None, like: str | None, server: str | None
) -> list[str]:
    words = [("--preset", preset), ("--like", like), ("--server", server)]
    words += [("--workload", name) for name in selection.workloads]
    words += [("--framework", name) for name in selection.frameworks]
    words += [("--device", name) for name in selection.devices]
    words += [("--recipe", name) for name in selection.recipes]
    words += [("--batch-size", str(size)) for size in selection.batch_sizes]
    words += [("--precision", name) for name in selection.precisions]
    if selection.data != "generated":
        words.append(("--data", selection.data))
    if selection.repeats is not None:
        words.append(("--repeats", str(selection.repeats)))
    if selection.budget_seconds is not None:
        words.append(("--budget-seconds", str(selection.budget_seconds)))
    return [word for name, value in words if value is not None for word in (name, value)]


def _check_options(engine: str, given: Mapping[str, object]) -> None:
    for name, value in given.items():
        if value is None and name in NEEDED[engine]:
            raise UsageProblem(f"--emit {engine} needs {name}")
        if value is not None and name not in (*NEEDED[engine], *USABLE[engine]):
            raise UsageProblem(f"{name} has no effect with --emit {engine}: leave it out")


def _check_plain(words: Sequence[str]) -> None:
    """Check the values of options. ``words``: options, each followed by its value."""
    for name, value in zip(words[::2], words[1::2], strict=True):
        if not PLAIN.fullmatch(value):
            raise UsageProblem(
                f"{name} {value!r} cannot be in a file: use letters, digits and ._:/@%+=~[]-"
            )


def _check_gpus(engine: str, gpus: str) -> None:
    if not GPUS.fullmatch(gpus):
        raise UsageProblem(f"--gpus {gpus}: give a number, 1 to 99, or TYPE:NUMBER as in H100:1")
    if engine == "skypilot" and ":" not in gpus:
        raise UsageProblem(f"--gpus {gpus}: skypilot needs a type too, as in H100:{gpus}")
