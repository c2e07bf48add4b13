"""Small copies of workloads."""

from typing import Any

from bench_agent.base.messages import Job, Timing
from bench_protocol.catalogue.layers import Dense, Dropout, Flatten, Layer
from bench_protocol.catalogue.matrix import Cell, Device, Precision, Recipe
from bench_protocol.catalogue.workloads import Adam, DataSet, Workload

TINY = Workload(
    name="tiny",
    data_set=DataSet(
        name="tiny-data", sample_shape=(8, 8, 1), classes=10, train_samples=256, test_samples=64
    ),
    layers=(Flatten(), Dense(units=16), Dense(units=10, activation="linear")),
    optimizer=Adam(),
    batch_size=16,
    epochs=1,
)


def variant(workload: Workload, **changes: Any) -> Workload:
    """A workload with other fields. Not a copy: that would keep cached values."""
    fields = {name: getattr(workload, name) for name in Workload.model_fields}
    return Workload(**{**fields, **changes})


def dropped(*between: Layer, rate: float = 0.3) -> Workload:
    last = Dense(units=10, activation="linear")
    return variant(TINY, layers=(Flatten(), *between, Dropout(rate=rate), last))


def small(workload: Workload, train_samples: int, test_samples: int = 64) -> Workload:
    """A workload with fewer samples, and no more patterns than these can teach."""
    data_set = workload.data_set.model_copy(
        update={
            "train_samples": train_samples,
            "test_samples": test_samples,
            "patterns": workload.data_set.classes,
        }
    )
    return variant(workload, data_set=data_set)


def cell_of(
    workload: Workload,
    framework: str = "fake",
    recipe: Recipe = "naive",
    batch_size: int | None = None,
    precision: Precision = "float32",
) -> Cell:
    return Cell(
        workload=workload.name,
        workload_digest=workload.digest,
        framework=framework,
        device=Device(kind="cpu"),
        recipe=recipe,
        batch_size=batch_size or workload.batch_size,
        precision=precision,
        data="generated",
    )


def job_of(workload: Workload, framework: str = "fake", **timing: Any) -> Job:
    return Job(
        workload=workload, cell=cell_of(workload, framework), seed="0" * 32, timing=Timing(**timing)
    )
