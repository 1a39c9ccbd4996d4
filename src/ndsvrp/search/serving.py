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
        packable = [number for number in self._lacking() if can_pack(self.problems[number])]
        for number, deadline in self._with_deadlines(packable, PACK_SHARE):
            if (tour := packed(self.problems[number], self.seed, deadline)) is not None:
                found[number] = tour
        self._restart(found)

    def by_absences(self, recipe: Recipe, is_over: Callable[[], bool]) -> None:
        """Go on from what a search finds that counts absences. `is_over`: whether something ends it early."""
        found, tours = dict[int, Ints](), list[Ints]()
        for number, deadline in self._with_deadlines(self._lacking(), SERVE_SHARE):
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

    def _lacking(self) -> list[int]:
        """Return the numbers of the problems that have such chains."""
        numbers: list[int] = np.unique(self.state.problem_of[self._lacks()]).tolist()
        return numbers

    def _with_deadlines(self, numbers: list[int], share: float) -> Iterator[tuple[int, float | None]]:
        """Yield problems with deadlines: each has an equal part of what is left of this share of the time."""
        end = self.budget.time_at(share)
        for done, number in enumerate(numbers):
            now = time.perf_counter()
            yield number, None if end is None else now + (end - now) / (len(numbers) - done)

    def _restart(self, found: dict[int, Ints]) -> None:
        """Go on from tours, by problem, in the chains that leave required customers unserved."""
        if found:
            tours = zip(self.engine.tours(self.state), self._lacks(), self.state.problem_of.tolist(), strict=True)
            self.engine.restart(self.state, [found.get(of, tour) if lack else tour for tour, lack, of in tours])
