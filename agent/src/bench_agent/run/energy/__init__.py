"""Energy of the timed part, from hardware counters, always with its source."""

from .meter import MeterProblem
from .meters import meter_for
from .window import EnergyWindow

__all__ = ["EnergyWindow", "MeterProblem", "meter_for"]
