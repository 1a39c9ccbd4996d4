"""Start solutions: quickly made, but worth a search."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ndsvrp.engine.base import Engine, Recipe, State
from ndsvrp.problem import Problem
from ndsvrp.solution import Solution

ITERATION = 1 << 62  # of the random numbers drawn here: no iteration of a search comes near


def improve_start(
    engine: Engine,
    state: State,
    seed: int,
    rounds: int,
    *,
    deadline: float | None = None,
    rounds_deadline: float | None = None,
) -> None:
    """Where the fleet is limited, insert everybody greedily, which takes few vehicles. Then remove a quarter at random
    and reinsert it into all routes, accepting improvements, for so many rounds; these may have an earlier deadline."""
    largest = max(problem.customers for problem in state.problems)
    chains = len(state.problem_of)
    if any(problem.vehicles is not None for problem in state.problems):
        everybody = Recipe(rule="random", removals=largest, all_routes=True)
        engine.improve(state, everybody, None, _cold(chains, 1), seed, ITERATION, deadline=deadline)
    if rounds:
        quarter = Recipe(rule="random", removals=max(1, largest // 4), all_routes=True)
        engine.improve(
            state, quarter, None, _cold(chains, rounds), seed, ITERATION + 1, deadline=rounds_deadline or deadline
        )


def _cold(chains: int, steps: int) -> npt.NDArray[np.float64]:
    return np.broadcast_to(0.0, (chains, steps))


def start(
    engine: Engine,
    problems: Sequence[Problem],
    problem_of: npt.ArrayLike,
    seed: int,
    *,
    rounds: int = 100,
    init: Solution | None = None,
    first: int = 0,
) -> State:
    """First solutions, improved unless they were given."""
    state: State = engine.start(problems, problem_of, init, first=first)
    if init is None:
        improve_start(engine, state, seed, rounds)
    return state
