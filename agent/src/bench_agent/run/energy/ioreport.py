"""Apple's own energy model (IOReport), through zeus-apple-silicon, without administrator rights.

Apple estimates these figures from activity; they are not measured at the power supply. powermetrics
prints the same model's figures and needs root, so it is not used.
"""

from bench_protocol.payload.readings import EnergySource

from .meter import Counters, MeterProblem

SOC = "soc"
# Fields of AppleEnergyMetrics that do not overlap, by the scope they are sent as.
PARTS = {
    "cpu": "cpu_total_mj",
    "gpu": "gpu_mj",
    "gpu_sram": "gpu_sram_mj",
    "dram": "dram_mj",
    "ane": "ane_mj",
}


class IoReport:
    """CPU, GPU, memory and neural engine of one chip, and their sum.

    Raises:
        MeterProblem: the library is not installed, or this chip reports no energy.
    """

    source: EnergySource = "ioreport"
    scope = SOC

    def __init__(self) -> None:
        try:
            from zeus_apple_silicon import AppleEnergyMonitor
        except ImportError as error:
            raise MeterProblem("zeus-apple-silicon is not installed") from error
        try:
            self._monitor = AppleEnergyMonitor()
        # The library raises what its C++ throws: ValueError for a channel in an unknown unit.
        except Exception as error:
            raise MeterProblem(f"IOReport: {error}") from error
        self.read()

    def read(self) -> Counters:
        try:
            reading = self._monitor.get_cumulative_energy()
            counters = {scope: getattr(reading, field, None) for scope, field in PARTS.items()}
            parts = {scope: int(value) for scope, value in counters.items() if value is not None}
        except Exception as error:
            raise MeterProblem(f"IOReport: {error}") from error
        if not parts:
            raise MeterProblem("this chip reports no energy")
        return {SOC: sum(parts.values()), **parts}

    def close(self) -> None:
        pass
