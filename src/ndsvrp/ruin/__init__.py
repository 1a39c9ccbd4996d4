"""Deconstruction: what takes solutions apart.

Either the name of a rule that the engine evaluates inside each step, on the solution as it is then (`string`,
`related`, `random`: native/include/ndsvrp/ruin.hpp), or a function from a `Situation` to the customers to remove.
The learned policy is such a function, and so is a rule of one's own (see examples/).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ndsvrp.engine.base import Ints, View
from ndsvrp.problem import Problem

RULES = ("string", "related", "random")


@dataclass(frozen=True, eq=False)
class Situation:
    """What a deconstruction sees at the start of an improvement step."""

    problem: Problem  #: the first, where there are several
    coordinates: npt.NDArray[np.float64]
    """(chains, N+1, 2) in the unit square, as augmented for each chain; made up from the matrix where one rules."""
    view: View  #: the current solution of each chain
    rollouts: int  #: K: removals wanted per chain
    removals: int  #: M: customers per removal, at most N
    random: np.random.Generator  #: seeded by (seed, iteration)
    threads: int = 1  #: cores it may use; the outcome must not depend on it
    deadline: float | None = None  #: when time is up, by the clock of `time.perf_counter`
    problems: tuple[Problem, ...] = ()
    """All of them, of one size, for a deconstruction that is `batched`: each has as many chains as any other, first
    those of the first, then those of the second, … Usually just `problem`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "problems", self.problems or (self.problem,))


Deconstruction = Callable[[Situation], Ints]
"""Returns (chains, K, M) int32: distinct customers in the order in which they are to be reinserted. There may be fewer
than K where time is up. One that has an attribute `on_device` which is true gets the view as the engine has it,
tensors on a GPU, and may answer with such a tensor; its method `unbroken`, if it has one, tells the seconds that the
last of its calls to have ended took without looking at the clock, so that none is begun that would end too late; it is
asked while others may be under way, and does not wait for them. One that has an attribute
`batched` which is true may be shown several problems at once (`ndsvrp.solve_set`); others are shown one at a time."""
