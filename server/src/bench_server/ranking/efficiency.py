"""How much of what a device can do a training uses."""

from bench_protocol.workloads import Workload

from .peaks import peak_flops


def mfu(
    workload: Workload, hardware: str, precision: str, ns_per_sample: float | None
) -> float | None:
    """Model FLOP utilisation: FLOPs of the model's own products a second over the vendor's peak
    (Chowdhery et al., PaLM, 2022, appendix B); None where no peak is known.

    Above 1 is possible: Winograd and FFT convolutions do with fewer products than are counted.
    """
    peak = peak_flops(hardware, precision)
    if peak is None or ns_per_sample is None:
        return None
    return workload.training_flops_per_sample * 1e9 / ns_per_sample / peak
