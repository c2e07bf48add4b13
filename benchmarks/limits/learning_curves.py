"""Accuracy and loss of real sessions at several numbers of steps: what bands are chosen from.

``python -m benchmarks.limits.learning_curves --framework jax --recipe tuned`` trains each workload
for its own number of epochs on generated data and prints one JSON object a session: evaluation
loss, accuracy and mean loss of the last batches at each share of the steps. ``--fault`` trains
wrongly on purpose, to see whether a band shows it:

* ``half_batch``: each step trains half of its batch, as many steps.
* ``frozen_first``: the first layer with weights keeps them.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from bench_agent import engines
from bench_agent.engines.seam import Data, Session
from bench_protocol.catalogue import seeded
from bench_protocol.catalogue.catalogue import CATALOGUE, workload_named
from bench_protocol.catalogue.matrix import Cell, Device
from bench_protocol.catalogue.workloads import Workload

SHARES = (1 / 64, 1 / 16, 1 / 4, 1 / 2, 1)
# A batch's loss is noisy: the mean of this many, read step by step, stands for the last loss.
LAST_BATCHES = 8
FAULTS = ("none", "half_batch", "frozen_first")


def main(arguments: Sequence[str]) -> int:
    """Print one line a session."""
    parser = argparse.ArgumentParser(prog="learning_curves", description=__doc__)
    parser.add_argument("--framework", choices=engines.names(), required=True)
    parser.add_argument("--recipe", default="tuned")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--seeds", nargs="+", default=["0" * 32, "7" * 32])
    parser.add_argument("--workloads", nargs="+", default=[one.name for one in CATALOGUE])
    parser.add_argument("--fault", choices=FAULTS, default="none")
    parser.add_argument("--share", type=float, default=1.0, help="share of the steps to train")
    chosen = parser.parse_args(arguments)
    for name in chosen.workloads:
        workload = workload_named(name)
        steps = workload.epochs * workload.steps_per_epoch(workload.batch_size)
        trained = _with_frozen_first(workload) if chosen.fault == "frozen_first" else workload
        halves = 2 if chosen.fault == "half_batch" else 1
        cell = Cell(
            workload=workload.name,
            workload_digest=workload.digest,
            framework=chosen.framework,
            device=Device(kind=chosen.device),
            recipe=chosen.recipe,
            batch_size=workload.batch_size // halves,
            precision=chosen.precision,
            data="generated",
        )
        for seed in chosen.seeds:
            points = curve(trained, cell, seed, steps, chosen.share)
            found = {"cell": str(cell), "fault": chosen.fault, "seed": seed[:4], "curve": points}
            sys.stdout.write(json.dumps(found) + "\n")
            sys.stdout.flush()
    return 0


def curve(
    workload: Workload, cell: Cell, seed: str, steps: int, last_share: float = 1.0
) -> list[dict[str, Any]]:
    """Train as a timed session does and evaluate it at each share of ``steps``."""
    engine = engines.engine_named(cell.framework)
    engine.load(workload, cell)
    train = seeded.generated_data(workload.data_set, "train")
    test = seeded.generated_data(workload.data_set, "test")
    order = seeded.order(len(train[1]), 0, seed)
    weights = seeded.initial_weights(workload, seed)
    session = engine.open(workload, cell, weights, Data(*train, *test, order))
    points, done = [], 0
    try:
        for mark in (max(LAST_BATCHES, int(steps * share)) for share in SHARES):
            if mark > steps * last_share:
                break
            session.train_block(mark - done - LAST_BATCHES)
            last_losses = _single_steps(session)
            done = mark
            loss, accuracy = session.evaluate(*test)
            points.append(
                {
                    "steps": mark,
                    "loss": round(loss, 4),
                    "accuracy": round(accuracy, 4),
                    "last_loss": round(fmean(last_losses), 4),
                }
            )
    finally:
        session.close()
    return points


def _single_steps(session: Session) -> list[float]:
    losses = []
    for _ in range(LAST_BATCHES):
        session.train_block(1)
        session.sync()
        losses.append(session.loss())
    return losses


def _with_frozen_first(workload: Workload) -> Workload:
    shapes = zip(workload.layers, workload.shapes[:-1], strict=True)
    first = next(n for n, (layer, inputs) in enumerate(shapes) if layer.weight_shapes(inputs))
    fields = {name: getattr(workload, name) for name in Workload.model_fields}
    return Workload(**{**fields, "frozen_layers": max(first + 1, workload.frozen_layers)})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
