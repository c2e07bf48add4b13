"""Number formats that a processor has no instructions for."""

from collections.abc import Iterable

# Names of the instruction sets as in bench_agent.machine: x86-64, Arm, Apple.
BFLOAT16_SETS = frozenset({"avx512_bf16", "amx_bf16", "bf16"})


def emulates_bfloat16(instruction_sets: Iterable[str]) -> bool:
    """Whether a processor computes bfloat16 by way of other formats. False if nothing is known.

    Args:
        instruction_sets: those of :class:`bench_protocol.payload.machine.Cpu`.
    """
    known = set(instruction_sets)
    return bool(known) and not known & BFLOAT16_SETS
