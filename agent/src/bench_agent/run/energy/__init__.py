"""Energy of the timed part, from counters of the hardware, always with where it comes from."""

from .meter import MeterProblem
from .meters import meter_for
from .window import EnergyWindow

__all__ = ["EnergyWindow", "MeterProblem", "meter_for"]
