"""Energy of the timed part, from hardware counters, always with its source."""

from .meter import MeterProblem
from .window import EnergyWindow, meter_for

__all__ = ["EnergyWindow", "MeterProblem", "meter_for"]
