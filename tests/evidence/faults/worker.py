"""A worker with a planted fault: ``python -m tests.evidence.faults.worker NAME`` and what
``bench_agent.worker`` takes. Controls have names too, and plant nothing."""

import sys
from typing import Any

from bench_agent.engines.seam import Data
from bench_agent.worker.main import main
from bench_protocol.catalogue.matrix import Cell, Device
from bench_protocol.catalogue.seeded import Weights
from bench_protocol.catalogue.workloads import Workload

from .fault import Fault, Job, Planting
from .planted import fault_named


def plant(fault: Fault) -> None:
    """Change this process. A result that claims a GPU comes from a CPU that says it is one."""
    here = Planting(fault.setup.framework)
    if fault.setup.device != "cpu":
        load = here.engine.load
        here.engine.load = lambda workload, cell: load(workload, _on_cpu(cell))
        here.jobs(_trained_on_cpu)
        here.sessions(_says_gpu)
    fault.plant(here)


def _trained_on_cpu(workload: Workload, cell: Cell, weights: Weights, data: Data) -> Job:
    return workload, _on_cpu(cell), weights, data


def _on_cpu(cell: Cell) -> Cell:
    return cell.model_copy(update={"device": Device(kind="cpu")})


def _says_gpu(session: Any) -> None:
    session.placement = lambda: "cuda:0"


if __name__ == "__main__":
    plant(fault_named(sys.argv[1]))
    sys.exit(main(sys.argv[2:]))
