"""Matrix products by precision; step times by stopwatch, by the slope of n and 2n steps, by events:
``python -m tests.evidence.gpu.clock FRAMEWORK DEVICE FILE PRECISION...``. One line of JSON each."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, cast

from bench_agent.engines import engine_named
from bench_agent.engines.seam import Data, HasForms, Session
from bench_protocol.catalogue import seeded
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.matrix import Cell, Device, DeviceKind, Precision

WORKLOADS = ("fashion-mlp", "mnist-cnn", "cifar100-vgg16")
SIZES = {"cuda": (4096, 8192, 16384), "cpu": (256, 512)}
BLOCK_SECONDS, TIMES, PRODUCTS = 0.15, 5, 8


def cell_of(framework: str, device: str, workload: str, precision: str, recipe: str) -> Cell:
    found = workload_named(workload)
    return Cell(
        workload=workload,
        workload_digest=found.digest,
        framework=framework,
        device=Device(kind=cast(DeviceKind, device)),
        recipe=recipe,
        batch_size=found.batch_size,
        precision=cast(Precision, precision),
        data="generated",
    )


def seconds_of(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def products(framework: str, device: str, precision: str) -> Iterator[dict[str, Any]]:
    """The fastest of some chains of products, by size."""
    engine = engine_named(framework)
    cell = cell_of(framework, device, "fashion-mlp", precision, "tuned")
    engine.load(workload_named("fashion-mlp"), cell)
    for size in SIZES[device]:
        chain = engine.products(size)

        def run(count: int = PRODUCTS, chain: Any = chain) -> None:
            chain.request(count)
            chain.sync()

        run(3)
        best = min(seconds_of(run) for _ in range(TIMES))
        teraflops = PRODUCTS * 2 * size**3 / best / 1e12
        yield {"kind": "product", "precision": precision, "size": size, "teraflops": teraflops}


def opened(cell: Cell, form: str) -> Session:
    """A session of the agent's own engine."""
    engine, workload = engine_named(cell.framework), workload_named(cell.workload)
    engine.load(workload, cell)
    if isinstance(engine, HasForms) and form:
        engine.form = form
    train, test = (seeded.generated_data(workload.data_set, name) for name in ("train", "test"))
    order = seeded.order(workload.data_set.train_samples, 0)
    data = Data(*train, *test, order)
    return engine.open(workload, cell, seeded.initial_weights(workload), data)


def stopwatch(cell: Cell, form: str) -> dict[str, Any]:
    """Microseconds a step: by blocks, by the slope, by events, and until the request returns."""
    session = opened(cell, form)

    def block(steps: int) -> None:
        session.train_block(steps)
        session.sync()

    try:
        block(1)
        steps = 8
        while seconds_of(partial(block, steps)) < BLOCK_SECONDS and steps < 2**14:
            steps *= 2
        one, two = (
            median(seconds_of(partial(block, n)) for _ in range(TIMES)) for n in (steps, 2 * steps)
        )
        asked = seconds_of(partial(session.train_block, steps))
        session.sync()
        row = {"block": one, "slope": two - one, "asked": asked}
        if cell.framework == "torch" and cell.device.kind == "cuda":
            row["events"] = events(session, steps)
        shown = {"kind": "stopwatch", "workload": cell.workload, "form": form, "steps": steps}
        return {**shown, **{f"{name}_us": value / steps * 1e6 for name, value in row.items()}}
    finally:
        session.close()


def events(session: Session, steps: int) -> float:
    """Seconds of a block between two CUDA events."""
    import torch

    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times = []
    for _ in range(TIMES):
        begin.record()
        session.train_block(steps)
        end.record()
        session.sync()
        times.append(begin.elapsed_time(end) / 1e3)
    return median(times)


def rows(framework: str, device: str, precisions: list[str]) -> Iterator[dict[str, Any]]:
    """All lines; a cell that fails is a line with its problem."""
    engine = engine_named(framework)
    for precision in precisions:
        if engine.why_not(cast(DeviceKind, device), "tuned", cast(Precision, precision)) is None:
            yield from products(framework, device, precision)
    for name in WORKLOADS if device == "cuda" else WORKLOADS[:1]:
        cell = cell_of(framework, device, name, "float32", "tuned")
        found = engine.forms(cell) if isinstance(engine, HasForms) else ()
        for form in found or ("",):
            try:
                yield stopwatch(cell, form)
            except Exception as problem:
                words = f"{type(problem).__name__}: {problem}"[:200]
                yield {"kind": "stopwatch", "workload": name, "form": form, "problem": words}


def main(framework: str, device: str, file: str, *precisions: str) -> None:
    for row in rows(framework, device, list(precisions)):
        line = json.dumps({"framework": framework, "device": device, **row})
        print(line, flush=True)
        with Path(file).open("a") as lines:
            lines.write(line + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
