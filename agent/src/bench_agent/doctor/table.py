"""The table of all checks: id, and the facts that each reads."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ..base import names
from ..base.errors import UsageProblem
from . import apple, deep, frameworks, network, nvidia, python, quiet, software, storage
from .finding import Finding
from .surroundings import Surroundings


@dataclass(frozen=True)
class Check:
    """One check: its id, and the function that runs it."""

    id: str
    run: Callable[[Surroundings], Iterable[Finding]]


CHECKS: tuple[Check, ...] = (
    Check("system", lambda s: python.check_system(s.system, s.wsl, s.macos)),
    Check("python", lambda s: python.check_python(s.python, s.system, s.architecture)),
    Check(
        "architecture",
        lambda s: python.check_architecture(s.system, s.architecture, s.facts.os.rosetta),
    ),
    Check("glibc", lambda s: python.check_glibc(s.system, s.glibc)),
    Check("home", lambda s: storage.check_home(s.folder)),
    Check("keys", lambda s: storage.check_keys(s.secrets)),
    Check(
        "disk",
        lambda s: storage.check_disk(s.home.root, s.free_bytes, s.log_bytes, s.home.logs),
    ),
    Check(
        "environments",
        lambda s: software.check_environments(s.interpreters, s.environments_problem),
    ),
    Check("shared-libraries", lambda s: software.check_shared_libraries(s.interpreters)),
    Check("frameworks", lambda s: frameworks.check_frameworks(s.frameworks)),
    Check("metal-pair", lambda s: apple.check_pair(s.software("tensorflow"), s.apple_silicon)),
    Check("metal", lambda s: frameworks.check_metal(s.frameworks, s.apple_silicon)),
    Check("metal-probe", lambda s: apple.check_probe(*s.metal_probe, s.software("tensorflow"))),
    Check("mlx-backend", lambda s: frameworks.check_mlx_backend(s.software("mlx"), s.system)),
    Check("mlx-blas", lambda s: frameworks.check_mlx_blas(s.frameworks.get("mlx"), s.system)),
    Check(
        "compiler",
        lambda s: frameworks.check_compiler(s.frameworks.get("mlx"), s.system, s.has_compiler),
    ),
    Check(
        "nvidia-driver",
        lambda s: nvidia.check_driver(s.nvidia, bool(s.facts.os.container), s.driver_tools),
    ),
    Check(
        "cuda-tensorflow",
        lambda s: nvidia.check_cuda_tensorflow(s.nvidia, s.frameworks.get("tensorflow")),
    ),
    Check(
        "cuda-mlx",
        lambda s: nvidia.check_cuda_mlx(s.nvidia, s.frameworks.get("mlx")),
    ),
    Check("cuda", lambda s: nvidia.check_cuda_others(s.nvidia, s.frameworks)),
    Check("self-test", lambda s: deep.check_self_tests(s.self_tests, s.environ)),
    Check("data", lambda s: storage.check_data(s.data_sets, s.reachable)),
    Check("server", lambda s: network.check_server(s.answer)),
    Check("clock", lambda s: network.check_clock(s.answer, s.system)),
    Check("power", lambda s: quiet.check_power(s.power, s.system)),
    Check("governor", lambda s: quiet.check_governor(s.governor)),
    Check("thermal", lambda s: quiet.check_thermal(*s.thermal)),
    Check("energy", lambda s: quiet.check_energy(*s.energy, s.system)),
    Check("busy", lambda s: quiet.check_busy(s.load)),
)


def examine(surroundings: Surroundings, only: tuple[str, ...] = ()) -> Iterator[Finding]:
    """Run the checks, or only those named, and yield each finding.

    Raises:
        UsageProblem: there is no check of a name.
    """
    check_ids = [check.id for check in CHECKS]
    unknown = sorted(set(only) - set(check_ids))
    if unknown:
        raise UsageProblem(names.unknown("check", unknown[0], check_ids))
    chosen = [check for check in CHECKS if not only or check.id in only]
    if any(check.id == "busy" for check in chosen):
        _ = surroundings.load  # before the probes load the machine
    for check in chosen:
        yield from check.run(surroundings)
