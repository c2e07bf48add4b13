"""Columns of a measurement row, derived from a stored submission.

Every column follows from the submission, the log and the catalogue, so a row can be derived again:
:func:`measurement_row` sets the columns that follow from the payload, :func:`set_key` those that
follow from its key, and :mod:`.eligibility` those that follow from its checks.
"""

import hashlib
from datetime import datetime
from statistics import median
from typing import Any

from sqlalchemy import Row

from bench_protocol import figures, strict_json
from bench_protocol import result as wire
from bench_protocol.catalogue import workload_named
from bench_protocol.hardware import hardware_name, slug
from bench_protocol.result import Failed, Result

from ..db.environments import environment_id, framework_version
from ..db.tables import NewRow, SigningKey, Submission
from ..ranking.peaks import mfu
from ..ranking.rows import lineage
from . import result_checks

LARGEST = 2**63 - 1
# Columns that are null if nothing was measured, or not all of it.
FIGURES = (
    *("layers", "block_count", "steps_per_block", "block_median_ns", "spread", "ns_per_sample"),
    *("samples_per_second", "epoch_ns", "startup_ns", "parameter_count", "last_loss", "accuracy"),
    *("peak_memory_bytes", "energy_mj", "joules_per_sample", "energy_scope", "mfu"),
)


def measurement_row(submission: Submission | NewRow, result: Result) -> NewRow:
    """The columns that follow from a payload; its key, log entry and checks give the others."""
    cell, outcome = result.cell, result.outcome
    workload = workload_named(cell.workload)
    hardware = hardware_name(result.machine, cell.device)[:400]
    row = NewRow(
        submission_id=submission.id,
        key_id=submission.key_id,
        owner="",
        log_index=0,
        challenge_id=None,
        received_at=submission.received_at,
        started_at=datetime.fromisoformat(result.clocks.started),
        environment_id=environment_id(result),
        machine_id="",
        machine_standing="",
        environment_standing="",
        hardware=hardware,
        hardware_slug=slug(hardware),
        workload=cell.workload,
        workload_digest=cell.workload_digest,
        framework=cell.framework,
        framework_version=framework_version(result),
        device=cell.device.kind,
        device_index=cell.device.index,
        recipe=cell.recipe,
        batch_size=cell.batch_size,
        precision=cell.precision,
        data=cell.data,
        cell_digest=cell.digest,
        run_id=result.run_id,
        repeat=result.repeat,
        status=outcome.status,
        failure_kind=outcome.kind if isinstance(outcome, Failed) else None,
        rankable=False,
        unranked_reason=result_checks.failure(result),
        trust_level=1,
        verdicts="[]",
        moderation=None,
        moderation_reason=None,
        **dict.fromkeys(FIGURES),
    )
    if result.measurement is not None:
        _add_figures(row, result.measurement, workload.steps_per_epoch(cell.batch_size))
        row.mfu = mfu(workload, hardware, cell.precision, row.ns_per_sample)
    return row


def set_key(row: NewRow, result: Result, key: SigningKey | Row[Any]) -> None:
    """Set the columns that follow from a result's key: owner, machine and aggregates."""
    row.owner = key.owner
    row.machine_id = machine_id(key.first_key_id, result.machine.machine_hash)
    keys = lineage(row)
    row.environment_standing, row.machine_standing = keys["environment"].id, keys["machine"].id


def stored_result(payload: bytes) -> Result:
    """Parse a payload that was accepted before, without the checks of today's catalogue."""
    predicate = strict_json.loads(payload)["predicate"]
    return Result.model_validate_json(strict_json.dumps(predicate))


def machine_id(first_key_id: str, machine_hash: str) -> str:
    """The machine's public id, 16 hex digits.

    The key is part of it: payloads are public, so anyone can copy a ``machine_hash``, but only
    the holder of the key can add to the machine's history. It is the first key of a chain of
    rotations, so that a machine keeps its history.
    """
    return hashlib.sha256(f"machine {first_key_id} {machine_hash}".encode()).hexdigest()[:16]


def _add_figures(row: NewRow, measured: wire.Measurement, steps_per_epoch: int) -> None:
    blocks, startup = measured.blocks, measured.startup
    block_ns = median(blocks.durations_ns)
    row.layers = measured.layers
    row.block_count = len(blocks.durations_ns)
    row.steps_per_block = blocks.steps_per_block
    row.block_median_ns = round(block_ns)
    row.spread = figures.within_run_spread(measured)
    row.ns_per_sample = block_ns / (blocks.steps_per_block * row.batch_size)
    row.samples_per_second = figures.samples_per_second(measured, row.batch_size)
    row.epoch_ns = _storable(round(steps_per_epoch * block_ns / blocks.steps_per_block))
    row.startup_ns = startup.import_ns + startup.data_ns + startup.build_ns + startup.first_step_ns
    row.parameter_count = measured.parameter_count
    row.last_loss = measured.last_loss
    row.accuracy = measured.evaluation.accuracy if measured.evaluation else None
    row.peak_memory_bytes = measured.peak_memory_bytes
    energy = measured.energy
    row.energy_mj = energy.energy_mj
    if energy.energy_mj is not None and energy.window_ns:
        # Mean power over the window (mJ/ns is MW) times the time of a sample.
        row.joules_per_sample = energy.energy_mj / energy.window_ns * row.ns_per_sample / 1e3
        row.energy_scope = energy.scope


def _storable(value: int) -> int:
    """Limit a value to the column's range. Only results that a check finds impossible reach it."""
    return min(value, LARGEST)
