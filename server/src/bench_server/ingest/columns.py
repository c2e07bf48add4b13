"""Columns of a measurement that follow from a payload alone.

The projector adds those that follow from the key, the log and the checks
(:mod:`bench_server.projection.measurements`).
"""

from datetime import datetime
from typing import Any

from pydantic import ValidationError

from bench_protocol.base import strict_json
from bench_protocol.base.errors import first_invalid_field
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.payload import doubts, energy_bounds, figures
from bench_protocol.payload import result as wire
from bench_protocol.payload.hardware import hardware_name, slug
from bench_protocol.payload.result import Failed, Result

from ..db.environments import environment_id, framework_version
from ..errors import DamagedDatabase

LARGEST = 2**63 - 1
# Columns that are fields of the cell.
OF_CELL = (
    *("workload", "workload_digest", "framework", "recipe", "batch_size", "precision", "data"),
)
# Columns that are null if nothing was measured, or not all of it.
FIGURES = (
    *("spread", "ns_per_sample", "samples_per_second", "epoch_ns", "startup_ns"),
    *("parameter_count", "last_loss", "accuracy", "joules_per_sample", "energy_scope"),
    "peak_memory_bytes",
)


def of_result(result: Result) -> dict[str, Any]:
    cell, outcome = result.cell, result.outcome
    hardware = hardware_name(result.machine, cell.device)[:400]
    columns: dict[str, Any] = {
        "key_id": result.agent.key_id,
        "started_at": datetime.fromisoformat(result.clocks.started),
        "environment_id": environment_id(result),
        "hardware": hardware,
        "hardware_sent": hardware,
        "hardware_slug": slug(hardware),
        **{name: getattr(cell, name) for name in OF_CELL},
        "framework_version": framework_version(result),
        "page_bytes": result.machine.os.page_bytes,
        "device": cell.device.kind,
        "device_index": cell.device.index,
        "timing": "short",
        "cell_digest": cell.digest,
        "run_id": result.run_id,
        "repeat": result.repeat,
        "disturbed": bool(doubts.disturbances(result.warnings)),
        "status": outcome.status,
        "failure_kind": outcome.kind if isinstance(outcome, Failed) else None,
        **dict.fromkeys(FIGURES),
    }
    if result.measurement is not None:
        workload = workload_named(cell.workload)
        columns |= _figures(
            result.measurement, cell.batch_size, workload.steps_per_epoch(cell.batch_size)
        )
        if energy_bounds.problem(result) is None:
            columns |= _energy(result.measurement, cell.batch_size)
        measured = result.measurement
        # A processor has no memory but the process's.
        of_process = cell.device.kind == "cpu"
        columns["peak_memory_bytes"] = (
            measured.host_peak_memory_bytes if of_process else measured.peak_memory_bytes
        )
        timed_ns = measured.blocks.total_ns
        columns["timing"] = figures.timing_kind(cell.device.kind, timed_ns)
    return columns


def stored_result(payload: bytes) -> Result:
    """Parse a payload that was accepted before, without the checks of today's catalogue. Acceptance
    was strict about types; here lists are read as tuples. Raises DamagedDatabase."""
    try:
        return Result.model_validate(strict_json.loads(payload)["predicate"], strict=False)
    except ValidationError as error:
        raise DamagedDatabase(f"a payload: {first_invalid_field(error).detail}") from error
    except (ValueError, LookupError, TypeError) as error:
        raise DamagedDatabase(f"a payload: {error}") from error


def _figures(measured: wire.Measurement, batch_size: int, steps_per_epoch: int) -> dict[str, Any]:
    blocks, startup = measured.blocks, measured.startup
    step_ns = blocks.total_ns / blocks.steps  # over the whole timed part
    ns_per_sample = step_ns / batch_size
    return {
        "spread": figures.within_run_spread(measured),
        "ns_per_sample": ns_per_sample,
        "samples_per_second": figures.samples_per_second(measured, batch_size),
        # Only results that a check finds impossible reach the column's limit.
        "epoch_ns": min(round(steps_per_epoch * step_ns), LARGEST),
        "startup_ns": startup.total_ns,
        "parameter_count": measured.parameter_count,
        "last_loss": measured.last_loss,
        "accuracy": measured.accuracy,
    }


def _energy(measured: wire.Measurement, batch_size: int) -> dict[str, Any]:
    if (per_sample_mj := figures.energy_per_sample_mj(measured, batch_size)) is None:
        return {}
    return {"joules_per_sample": per_sample_mj / 1e3, "energy_scope": measured.energy.scope}
