"""Short names of cells, without their usual properties, and outcomes in a few words."""

from collections.abc import Mapping
from typing import Any

from bench_protocol.base import format as people
from bench_protocol.catalogue.catalogue import CATALOGUE
from bench_protocol.catalogue.matrix import Cell
from bench_protocol.payload.figures import samples_per_second
from bench_protocol.payload.result import Failed, Result

SETUP_FIELDS = (
    *("workload", "framework", "device", "recipe", "batch_size"),
    *("precision", "data"),
)
USUAL_BATCH = {workload.name: workload.batch_size for workload in CATALOGUE}

PHASES = {
    "start": "starting",
    "import": "importing the framework",
    "data": "making data",
    "build": "building the model",
    "conformance": "checking the computation",
    "warm_up": "warming up",
    "timing": "timing",
    "evaluate": "evaluating",
}


def setup_name(cell: Cell) -> str:
    """``mlx metal tuned``; what is not usual follows: ``torch cpu naive, batch 256, real data``."""
    return setup_words({name: getattr(cell, name) for name in SETUP_FIELDS})


def setup_words(fields: Mapping[str, Any]) -> str:
    """The set-up that a document's fields name, as :func:`setup_name` has it."""
    name = f"{fields['framework']} {fields['device']} {fields['recipe']}"
    if fields["batch_size"] != USUAL_BATCH.get(fields["workload"]):
        name += f", batch {fields['batch_size']:,}"
    return name + _suffix(fields["precision"], fields["data"])


def unusual(cell: Cell) -> str:
    """Suffix of a name: the precision if it is not float32, the data if they are real."""
    return _suffix(cell.precision, cell.data)


def _suffix(precision: str, data: str) -> str:
    half = "" if precision == "float32" else f", {precision}"
    return f"{half}{', real data' if data == 'real' else ''}"


def short_name(cell: Cell) -> str:
    """``mnist-cnn, mlx metal tuned``."""
    return f"{cell.workload}, {setup_name(cell)}"


def one_line(result: Result) -> str:
    """The outcome of a repeat in a few words."""
    if isinstance(result.outcome, Failed):
        return failure(result.outcome)
    rate = people.rate(samples_per_second(result.outcome.measurement, result.cell.batch_size))
    return f"{rate} samples/s"


def failure(failed: Failed) -> str:
    """A failure in a few words."""
    why = f" ({failed.exception_class})" if failed.exception_class else ""
    return f"{failed.kind.replace('_', ' ')} while {PHASES[failed.phase]}{why}"
