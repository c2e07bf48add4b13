"""Short names of cells for people: what is usual goes without saying."""

from bench_protocol.catalogue import CATALOGUE
from bench_protocol.matrix import Cell

USUAL_BATCH = {workload.name: workload.batch_size for workload in CATALOGUE}


def setup_name(cell: Cell) -> str:
    """``mlx metal tuned``; what is not usual follows: ``torch cpu naive, batch 256, real data``."""
    name = f"{cell.framework} {cell.device} {cell.recipe}"
    if cell.batch_size != USUAL_BATCH.get(cell.workload):
        name += f", batch {cell.batch_size:,}"
    return f"{name}{unusual(cell)}"


def unusual(cell: Cell) -> str:
    """Suffix of a name: the precision if it is not float32, the data if they are real."""
    precision = "" if cell.precision == "float32" else f", {cell.precision}"
    return f"{precision}{', real data' if cell.data == 'real' else ''}"


def short_name(cell: Cell) -> str:
    """``mnist-cnn, mlx metal tuned``."""
    return f"{cell.workload}, {setup_name(cell)}"
