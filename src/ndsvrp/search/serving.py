"""First solutions that serve all required customers, where vehicles are few: by packing, then by absences."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ndsvrp.engine.base import Engine, Ints, Recipe, State
from ndsvrp.problem import Problem
from ndsvrp.search.absences import Absences
from ndsvrp.search.packing import can_pack, packed
from ndsvrp.search.stopping import Budget

PACK_SHARE = 0.1  # largest share of the time limit for packing
SERVE_SHARE = 0.5  # until when absences are counted: without these customers there is no solution


@dataclass(frozen=True)
class Serving:
    """Replaces first solutions that leave required customers unserved."""

    problems: Sequence[Problem]
    engine: Engine
    state: State
    seed: int
    budget: Budget

    def by_packing(self) -> None:
        """Go on from packings, where nothing but the capacity limits routes."""
        found = dict[int, Ints]()
        for number, deadline in self._with_deadlines(PACK_SHARE, can_pack):
            if (tour := packed(self.problems[number], self.seed, deadline)) is not None:
                found[number] = tour
        self._restart(found)

    def by_absences(self, recipe: Recipe, is_over: Callable[[], bool]) -> None:
        """Go on from what a search finds that counts absences. `is_over`: whether something ends it early."""
        found, tours = dict[int, Ints](), list[Ints]()
        for number, deadline in self._with_deadlines(SERVE_SHARE, lambda problem: True):
            if is_over():
                break
            tours = tours or self.engine.tours(self.state)
            tour = tours[int(np.argmax(self.state.problem_of == number))]
            absences = Absences(self.problems[number], recipe, self.seed, deadline, is_over)
            if (served := absences.serve_required(tour)) is not None:
                found[number] = served
        self._restart(found)

    def _lacks(self) -> npt.NDArray[np.bool_]:
        """Return (chains,) whether required customers are unserved."""
        return self.state.stats().missing > 0

    def _with_deadlines(self, share: float, takes: Callable[[Problem], bool]) -> Iterator[tuple[int, float | None]]:
        """Yield problems with unserved customers: each has an equal part of what is left of this share of the time."""
        lacking: list[int] = np.unique(self.state.problem_of[self._lacks()]).tolist()
        end, waiting = self.budget.time_at(share), [number for number in lacking if takes(self.problems[number])]
        for done, number in enumerate(waiting):
            now = time.perf_counter()
            yield number, None if end is None else now + (end - now) / (len(waiting) - done)

    def _restart(self, found: dict[int, Ints]) -> None:
        """Go on from tours, by problem, in the chains that leave required customers unserved."""
        if found:
            tours = zip(self.engine.tours(self.state), self._lacks(), self.state.problem_of.tolist(), strict=True)
            self.engine.restart(self.state, [found.get(of, tour) if lack else tour for tour, lack, of in tours])
