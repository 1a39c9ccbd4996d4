"""Prices of required customers that stay unserved, where vehicles are limited.

A search that only accepts solutions with all required customers cannot leave a structure in which no vehicle has room
to spare. At a price it can: while solutions lack customers the price rises, while they serve everybody it falls. So the
search crosses the border of what is feasible again and again, as hybrid genetic search does with its penalties.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ndsvrp.engine.base import Floats, Ints

RISE, FALL = 1.05, 0.98  # factors of an iteration: half of the solutions of a problem or more lack customers, or fewer
LOWEST, HIGHEST = 0.01, 2.0  # sides of the box; solutions that lack customers at the highest go back to their best
LATE = 0.75  # share of the search from which prices do not fall


@dataclass
class Prices:
    """The price of each problem, in sides of its box."""

    sides: Floats  #: (problems,) in units of the problem
    first: float
    now: Floats = field(init=False)  #: (problems,)
    _is_late: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.now = np.full(len(self.sides), self.first)

    @property
    def in_units(self) -> Floats:
        """Return (problems,) the prices in units of the problem."""
        return self.now * self.sides

    def adapt(self, missing: Ints, share: float) -> npt.NDArray[np.bool_]:
        """Change the prices after an iteration; return (problems, solutions) which solutions go back to their best.

        missing: (problems, solutions) required customers that the current solutions lack. share: of the search, used.
        """
        lacks = missing > 0
        gets_late = share >= LATE and not self._is_late
        self._is_late |= gets_late
        self.now *= np.where(lacks.mean(1) >= 0.5, RISE, 1.0 if self._is_late else FALL)
        goes_back: npt.NDArray[np.bool_] = lacks & ((self.now > HIGHEST) | gets_late)[:, None]
        self.now = np.clip(self.now, LOWEST, HIGHEST)
        return goes_back
