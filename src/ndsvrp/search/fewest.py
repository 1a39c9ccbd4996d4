"""Fewest vehicles: before the annealing, a search for solutions with fewer and fewer vehicles."""

import time
from collections.abc import Callable, Sequence

import numpy as np

from ndsvrp.engine.base import Engine, Ints, Recipe, State
from ndsvrp.problem import Problem
from ndsvrp.search.absences import Absences
from ndsvrp.search.stopping import Budget

FEWER_SHARE = 0.5  # until when fewer vehicles are tried


def with_any_fleet(problem: Problem) -> Problem:
    """Return the problem with a limit on vehicles, if only their largest number: one for each customer."""
    return problem if problem.vehicles is not None else problem.replace(vehicles=problem.customers)


def reduce_fleets(
    problems: Sequence[Problem], engine: Engine, state: State, recipe: Recipe, seed: int, budget: Budget,
    is_over: Callable[[], bool],
) -> list[Problem]:  # fmt: skip
    """Return the problems with their vehicles limited to the fewest that were found to serve all required customers.

    All chains of a problem go on from the solution with these vehicles, but for problems without a solution.
    """
    end, limited = budget.time_at(FEWER_SHARE), list[Problem]()
    for number, problem in enumerate(problems):
        now = time.perf_counter()
        deadline = None if end is None else now + (end - now) / (len(problems) - number)
        serving = np.flatnonzero((state.problem_of == number) & (state.stats().missing == 0))
        if len(serving) == 0:
            limited.append(problem)
            continue
        tours = engine.tours(state)
        fewest = min((tours[chain] for chain in serving), key=_routes)
        _restart(engine, state, number, fewest)
        for fewer in Absences(problem, recipe, seed, deadline, is_over).with_fewer_vehicles(fewest):
            _restart(engine, state, number, fewer)  # at once: whatever ends the search now, this is the best
            fewest = fewer
        limited.append(problem.replace(vehicles=_routes(fewest)))
    return limited


def _routes(tour: Ints) -> int:
    return int(np.count_nonzero(tour == 0))


def _restart(engine: Engine, state: State, number: int, tour: Ints) -> None:
    """Let all chains of a problem go on from a tour."""
    tours = zip(engine.tours(state), state.problem_of.tolist(), strict=True)
    engine.restart(state, [tour if of == number else other for other, of in tours])
