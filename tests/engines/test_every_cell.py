"""Each workload of the catalogue through the agent's own worker, in each framework: it is measured.

The other tests train small forms of the large workloads. These take minutes a cell.
"""

from pathlib import Path

import pytest
from tests.fakes.workloads import cell_of

from bench_agent import engines
from bench_agent.base.messages import Job, Timing
from bench_agent.run.worker_process import run_task
from bench_protocol.catalogue.catalogue import CATALOGUE
from bench_protocol.catalogue.matrix import Recipe
from bench_protocol.catalogue.seeded import DEFAULT_SEED
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.result import Measured

from .conftest import installed

SHORT = Timing(budget_seconds=0.5, target_spread=0.0)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("recipe", ["naive", "tuned"])
@pytest.mark.parametrize("framework", engines.names())
@pytest.mark.parametrize("workload", CATALOGUE, ids=lambda workload: workload.name)
def test_an_honest_cell_is_measured(
    workload: Workload, framework: str, recipe: Recipe, tmp_path: Path
) -> None:
    installed(framework)
    cell = cell_of(workload, framework, recipe)
    log = tmp_path / "log"
    job = Job(workload=workload, cell=cell, seed=DEFAULT_SEED, timing=SHORT)
    outcome = run_task(job, log).outcome
    assert isinstance(outcome, Measured), log.read_text()[-2000:]
