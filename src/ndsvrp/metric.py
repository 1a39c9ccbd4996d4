"""Rounding conventions of lengths."""

from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from ndsvrp.errors import EngineError

FLOAT_TOLERANCE = 1e-6  # of `check`, relative to the horizon or the capacity, if numbers are plain floats
NEARLY = 0.999  # part of that tolerance that ticks use; the rest is for the rounding of float64

Floats = npt.NDArray[np.float64]


class Metric(StrEnum):
    """How Euclidean lengths are rounded before the objective adds them up."""

    NONE = "none"  #: not rounded
    ROUND = "round"  #: nearest integer (X instances)
    TRUNC = "trunc"  #: integer part
    DIMACS = "dimacs"  #: truncated to one decimal (Solomon, Gehring-Homberger)
    EXACT = "exact"  #: rounded to three decimals

    @property
    def scale(self) -> int:
        """Ticks per unit: lengths under an integer metric are whole multiples of 1 / scale."""
        return {Metric.DIMACS: 10, Metric.EXACT: 1000}.get(self, 1)

    @property
    def is_integer(self) -> bool:
        """Whether lengths are whole numbers of ticks, so that costs are exact."""
        return self is not Metric.NONE

    def ticks(self, values: npt.NDArray[Any]) -> Floats:
        """Return values that are whole up to rounding as whole numbers of ticks; under `none` unchanged."""
        values = np.asarray(values, dtype=np.float64)
        return np.rint(values * self.scale) if self.is_integer else values

    def apply(self, length: npt.NDArray[Any]) -> Floats:
        """Round float64 lengths: `length * scale` is rounded, in float64."""
        length = np.asarray(length, dtype=np.float64)
        if self is Metric.NONE:
            return length
        ticks = length * self.scale
        nearest = self in (Metric.ROUND, Metric.EXACT)
        return np.floor(ticks + 0.5 if nearest else ticks) / self.scale


def power_of_two(most: int, largest: float) -> float:
    """Return the largest power of two that scales `largest` to at most `most`."""
    if not largest < 1e150:  # the squares of lengths must not overflow
        raise EngineError(f"numbers up to {largest:g} are too large")
    return float(2.0 ** min(1000.0, np.floor(np.log2(most / largest)))) if largest > 1e-290 else 1.0
