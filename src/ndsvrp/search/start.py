"""Start solutions: fast to build, and good enough to search from."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ndsvrp.engine.base import Engine, Recipe, State
from ndsvrp.problem import Problem
from ndsvrp.solution import Solution

ITERATION = 1 << 62  # of the random numbers drawn here: beyond all iterations of a search


def improve_start(
    engine: Engine,
    state: State,
    seed: int,
    rounds: int,
    *,
    deadline: float | None = None,
    rounds_deadline: float | None = None,
) -> None:
    """Improve first solutions by ruin and recreate at temperature 0.

    If the fleet is limited, first insert all customers greedily, which uses few vehicles. Then, for so many rounds,
    remove a quarter at random and insert it into any route. The rounds may have an earlier deadline.
    """
    largest, chains = max(problem.customers for problem in state.problems), len(state.problem_of)
    if any(problem.vehicles is not None for problem in state.problems):
        everything = Recipe(rule="random", removals=largest, all_routes=True)
        engine.improve(state, everything, None, np.zeros((chains, 1)), seed, ITERATION, deadline=deadline)
    if rounds:
        quarter = Recipe(rule="random", removals=max(1, largest // 4), all_routes=True)
        zero = np.broadcast_to(0.0, (chains, rounds))
        engine.improve(state, quarter, None, zero, seed, ITERATION + 1, deadline=rounds_deadline or deadline)


def start(
    engine: Engine,
    problems: Sequence[Problem],
    problem_of: npt.ArrayLike,
    seed: int,
    *,
    rounds: int = 100,
    init: Solution | None = None,
) -> State:
    """Return first solutions, improved unless given."""
    state: State = engine.start(problems, problem_of, init)
    if init is None:
        improve_start(engine, state, seed, rounds)
    return state
