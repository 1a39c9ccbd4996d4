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
    serve_all: bool = False,
) -> None:
    """Improve first solutions by ruin and recreate at temperature 0.

    If the fleet is limited, first insert all customers greedily, which uses few vehicles. Then, in each of `rounds`,
    remove a quarter at random and insert it into any route. The rounds may have an earlier deadline. With `serve_all`,
    optional customers are inserted as if they were required.
    """
    largest, chains = max(problem.customers for problem in state.problems), len(state.problem_of)
    if serve_all or any(problem.vehicles is not None for problem in state.problems):
        everything = Recipe(rule="random", removals=largest, all_routes=True, serve_all=serve_all)
        accepted = np.full((chains, 1), 1e18 if serve_all else 0.0)  # serving all may cost more
        engine.improve(state, everything, None, accepted, seed, ITERATION, deadline=deadline)
    if rounds:
        quarter = Recipe(rule="random", removals=max(1, largest // 4), all_routes=True, serve_all=serve_all)
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
