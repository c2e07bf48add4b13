"""Prices of hardware: the reader's price, else the operator's, else the one at launch."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Literal

from ..price_list import PriceList
from .specifications import launch_price

JOULES_PER_KWH = 3.6e6
Basis = Literal["reader", "operator", "launch"]


@dataclass(frozen=True)
class Price:
    """A price with what it is. ``part``: what it is of, where it is not of a whole computer."""

    amount: float
    currency: str | None
    date: date | None
    basis: Basis
    part: str | None = None


@dataclass(frozen=True)
class Prices:
    """Prices of the operator's list and prices at launch are never mixed."""

    of_reader: Mapping[str, float]
    of_operator: PriceList | None = None
    energy_per_kwh: float | None = None

    def of(self, item: str, slug: str, name: str) -> Price | None:
        if item in self.of_reader:
            return Price(self.of_reader[item], None, None, "reader")
        if self.of_operator is None:
            launch = launch_price(name)
            return Price(*launch[:3], "launch", launch[3]) if launch else None
        amount = self.of_operator.hardware.get(slug)
        if amount is None:
            return None
        return Price(amount, self.of_operator.currency, self.of_operator.date, "operator")

    @property
    def energy_currency(self) -> str | None:
        """The currency of energy costs; null for a reader's own price."""
        own = self.energy_per_kwh is not None or self.of_operator is None
        return None if own else self.of_operator.currency  # type: ignore[union-attr]

    def of_energy(self, joules: float | None) -> float | None:
        price = self.energy_per_kwh
        if price is None and self.of_operator is not None:
            price = self.of_operator.energy_per_kwh
        return None if price is None or joules is None else joules / JOULES_PER_KWH * price


NO_PRICES = Prices({})
