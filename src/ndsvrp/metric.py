"""How far it is from one point to another: the rounding conventions of the field."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


class Metric(StrEnum):
    """A rule that turns Euclidean lengths into the lengths an objective adds up."""

    NONE = "none"  # as it is
    ROUND = "round"  # nearest integer (X instances)
    TRUNC = "trunc"  # integer part
    DIMACS = "dimacs"  # truncated to one decimal (Solomon, Gehring-Homberger)
    EXACT = "exact"  # rounded to three decimals

    @property
    def scale(self) -> int:
        """Ticks per unit: lengths under an integer metric are whole multiples of 1 / scale."""
        return {Metric.DIMACS: 10, Metric.EXACT: 1000}.get(self, 1)

    @property
    def is_integer(self) -> bool:
        """Whether lengths are whole numbers of ticks, so that costs are exact."""
        return self is not Metric.NONE

    def ticks(self, values: npt.NDArray[Any]) -> Floats:
        """What is whole up to rounding, as exactly whole numbers of ticks; under `none` as it is."""
        values = np.asarray(values, dtype=np.float64)
        return np.rint(values * self.scale) if self.is_integer else values

    def apply(self, length: npt.NDArray[Any]) -> Floats:
        """Round float64 lengths by this rule. What is rounded is `length * scale`, in float64."""
        length = np.asarray(length, dtype=np.float64)
        if self is Metric.NONE:
            return length
        ticks = length * self.scale
        nearest = self in (Metric.ROUND, Metric.EXACT)
        return np.floor(ticks + 0.5 if nearest else ticks) / self.scale
