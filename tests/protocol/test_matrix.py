"""Cells and derived figures."""

from typing import Any

import pytest
from pydantic import ValidationError
from tests.protocol.golden_result import MEASUREMENT, RESULT

from bench_protocol.base import strict_json
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.matrix import Cell, Device, why_not
from bench_protocol.payload import figures
from bench_protocol.payload.witness import LastBlock

CELL = RESULT.cell
OTHER: dict[str, Any] = {
    "workload": "mnist-cnn2",
    "workload_digest": "0" * 64,
    "framework": "mlx",
    "device": Device(kind="metal", index=1),
    "recipe": "tuned",
    "batch_size": 65,
    "precision": "tf32",
    "data": "real",
}


def test_golden_digest() -> None:
    assert CELL.digest == "251d82f819d8df25138b7ddd46cbd37fd0c985978008e0a439d4fec6efec158e"


@pytest.mark.parametrize("field", Cell.model_fields)
def test_every_field_is_part_of_the_cells_identity(field: str) -> None:
    others = [OTHER[field], *([Device(kind="cuda"), Device(kind="cpu")] * (field == "device"))]
    digests = {CELL.model_copy(update={field: other}).digest for other in others}
    assert len(digests | {CELL.digest}) == 1 + len(others)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("workload", "MNIST"),
        ("workload", ""),
        ("workload", "a" * 65),
        ("workload", "mnist cnn"),
        ("workload", "mnist-cnn\n"),
        ("workload_digest", "0" * 63),
        ("workload_digest", "A" * 64),
        ("framework", "../../etc"),
        ("framework", "1jax"),
        ("device", {"kind": "tpu", "index": 0}),
        ("device", {"kind": "cpu", "index": -1}),
        ("device", {"kind": "cpu", "index": 1024}),
        ("device", {"kind": "cpu", "index": 2**70}),
        ("device", {"kind": "cpu", "index": True}),
        ("device", {"kind": "cpu", "index": 0, "name": "x"}),
        ("device", "cpu"),
        ("recipe", "best"),
        ("batch_size", 0),
        ("batch_size", -1),
        ("batch_size", 64.0),
        ("batch_size", "64"),
        ("batch_size", 2**53),
        ("precision", "float64"),
        ("data", "mixed"),
    ],
)
def test_a_cell_outside_the_matrix_is_refused(field: str, value: Any) -> None:
    document = CELL.model_dump(mode="json") | {field: value}
    with pytest.raises(ValidationError) as caught:
        Cell.model_validate_json(strict_json.dumps(document))
    assert caught.value.errors()[0]["loc"][0] == field


@pytest.mark.parametrize("name", ["jax", "torch", "tinygrad", "my.engine-2_x"])
def test_frameworks_are_an_open_list(name: str) -> None:
    document = CELL.model_dump(mode="json") | {"framework": name}
    assert Cell.model_validate_json(strict_json.dumps(document)).framework == name


def test_cells_read_well() -> None:
    assert str(CELL) == "mnist-cnn tensorflow metal pipeline batch 64 float32 generated"
    assert str(Device(kind="cuda", index=3)) == "cuda:3"


def test_why_not() -> None:
    workload = workload_named("fashion-mlp")
    assert why_not(workload, 50_000) is None
    assert "50,000" in (why_not(workload, 50_001) or "")


def with_blocks(*durations_ns: int) -> Any:
    blocks = MEASUREMENT.blocks.model_copy(
        update={"durations_ns": durations_ns, "last_block": None}
    )
    return MEASUREMENT.model_copy(update={"blocks": blocks})


def test_samples_per_second_by_hand() -> None:
    # 3 x 47 steps of 64 samples in 1.8 s
    measurement = with_blocks(400_000_000, 500_000_000, 900_000_000)
    assert figures.samples_per_second(measurement, 64) == pytest.approx(3 * 47 * 64 / 1.8)
    assert figures.samples_per_second(measurement, 128) == pytest.approx(3 * 47 * 128 / 1.8)


def test_the_end_of_an_epoch_counts() -> None:
    """One block of ten takes fifteen times as long: the rate is what the wall says."""
    measurement = with_blocks(*[100_000_000] * 9, 1_500_000_000)
    assert figures.samples_per_second(measurement, 1) == pytest.approx(470 / 2.4)
    assert figures.mean_over_median(measurement) == pytest.approx(2.4)
    assert figures.mean_over_median(with_blocks(5, 5, 5)) == 1


def test_the_last_block_counts_in_the_rate_and_not_in_the_spread() -> None:
    whole = with_blocks(400_000_000, 400_000_000)
    last = LastBlock(steps=6, duration_ns=200_000_000)
    blocks = whole.blocks.model_copy(update={"last_block": last})
    measurement = whole.model_copy(update={"blocks": blocks})
    assert (blocks.steps, blocks.total_ns) == (100, 1_000_000_000)
    assert figures.samples_per_second(measurement, 1) == pytest.approx(100)
    assert figures.within_run_spread(measurement) == 0
    assert figures.mean_over_median(measurement) == 1


def test_within_run_spread_by_hand() -> None:
    # quartiles 2, 3, 4 of 1 to 5
    assert figures.within_run_spread(with_blocks(5, 1, 4, 2, 3)) == pytest.approx(2 / 3)
    assert figures.within_run_spread(with_blocks(7, 7, 7)) == 0
    assert figures.within_run_spread(with_blocks(7)) == 0


def test_figures_at_the_limit_of_the_wire() -> None:
    largest = 2**53 - 1
    slowest = with_blocks(largest, largest)
    assert figures.samples_per_second(slowest, 1) == pytest.approx(47 * 1e9 / largest)
    assert figures.samples_per_second(with_blocks(1), largest) > 0
