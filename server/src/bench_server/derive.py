"""From a stored submission to its measurement row: a function of the payload and nothing else.

``bench-server reindex`` will run it again over every payload, so no row may hold anything that is
not in the payload, in the submission or in the catalogue.
"""

import hashlib
import json
from dataclasses import asdict, replace
from datetime import datetime
from statistics import median

from bench_protocol import figures, strict_json
from bench_protocol import result as wire
from bench_protocol.catalogue import workload_named
from bench_protocol.hardware import hardware_name, slug
from bench_protocol.result import Failed, Result

from . import checks
from .attributes import environment_row
from .efficiency import mfu
from .standings import subject_of_result
from .tables import Measurement, Submission

LARGEST = 2**63 - 1


def measurement_row(submission: Submission, result: Result, owner: str) -> Measurement:
    """Columns of a result.

    Args:
        owner: whose the key is: the owner's label, or the key's id where it has none.
    """
    cell, outcome = result.cell, result.outcome
    workload = workload_named(cell.workload)
    found = checks.verdicts(result, workload)
    reason = checks.unranked_reason(result, found)
    hardware = hardware_name(result.machine, cell.device)[:400]
    row = Measurement(
        submission_id=submission.id,
        key_id=submission.key_id,
        received_at=submission.received_at,
        started_at=datetime.fromisoformat(result.clocks.started),
        owner=owner,
        environment_id=environment_row(result).id,
        machine_id=machine_id(submission.key_id, result.machine.machine_hash),
        hardware=hardware,
        hardware_slug=slug(hardware),
        workload=cell.workload,
        workload_digest=cell.workload_digest,
        framework=cell.framework,
        framework_version=result.environment.packages.get(cell.framework),
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
        rankable=reason is None,
        unranked_reason=reason,
        trust_level=1,
        verdicts=json.dumps([asdict(verdict) for verdict in found]),
    )
    if result.measurement is not None:
        _add_figures(row, result.measurement, workload.steps_per_epoch(cell.batch_size))
        row.mfu = mfu(workload, hardware, cell.precision, row.ns_per_sample)
    whose = subject_of_result(row)
    row.environment_standing = whose.id
    row.machine_standing = replace(whose, environment_id="").id
    return row


def stored_result(payload: bytes) -> Result:
    """The result in bytes that were accepted before; the catalogue may have changed since."""
    predicate = strict_json.loads(payload)["predicate"]
    return Result.model_validate_json(strict_json.dumps(predicate))


def machine_id(key_id: str, machine_hash: str) -> str:
    """The machine's public id, 16 hex digits.

    The key is part of it: payloads are public, so anyone can copy a ``machine_hash``, but only
    the holder of the key can add to the machine's history.
    """
    return hashlib.sha256(f"machine {key_id} {machine_hash}".encode()).hexdigest()[:16]


def _add_figures(row: Measurement, measured: wire.Measurement, steps_per_epoch: int) -> None:
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
    """Only results that ``checks`` finds impossible reach the limit; they are kept unranked."""
    return min(value, LARGEST)
