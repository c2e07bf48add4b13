"""Self-tests in doctor's findings: one for each framework, device and precision."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench_protocol.catalogue.matrix import Precision

from .. import engines
from ..base.messages import Probe
from ..base.precisions import ALL_PRECISIONS, too_old
from ..run.patience import Place
from ..run.self_test import Outcome, recipes_for
from .finding import Finding, fail, ok, skip
from .frameworks import Software, reinstall

# Variables that change a precision whatever the framework was told.
OVERRIDES = (
    "NVIDIA_TF32_OVERRIDE",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "ONEDNN_DEFAULT_FPMATH_MODE",
)


@dataclass(frozen=True)
class Tested:
    """A device in a precision, the outcome of its self-test, and its framework's packages."""

    place: Place
    precision: Precision
    outcome: Outcome
    software: Software


def to_test(probes: Mapping[str, Probe]) -> Iterator[tuple[Place, Precision]]:
    """Every framework on the first device of each kind, in each precision that it has there."""
    for framework in engines.names():
        for device in probes[framework].devices if framework in probes else ():
            if device.index:
                continue
            place = Place(framework, device.device, device.python)
            for precision in ALL_PRECISIONS:
                possible = recipes_for(framework, device.kind, precision)
                if possible and not too_old(device, precision):
                    yield place, precision


def check_self_tests(
    tests: Sequence[Tested] | None, environ: Mapping[str, str]
) -> Iterator[Finding]:
    """One finding for each self-test.

    Args:
        tests: None if none was asked for.
    """
    if not tests:
        yield skip("only doctor --deep runs it" if tests is None else "no framework sees a device")
    overrides = [name for name in OVERRIDES if name in environ]
    for tested in tests or ():
        place = tested.place
        subject = f"{place.framework}-{place.device.kind}-{tested.precision}"
        what = f"{place} in {tested.precision}"
        if tested.outcome.problems:
            unset = f"unset {' '.join(overrides)}" if overrides else None
            hint = unset or reinstall(place.framework, tested.software)
            yield fail(f"{what} cannot be measured: {tested.outcome.words}", hint, of=subject)
        else:
            yield ok(f"{what} synchronises, computes and copies correctly", of=subject)
