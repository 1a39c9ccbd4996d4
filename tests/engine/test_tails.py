"""Exchanging tails of routes, on examples worked by hand. Parity with the reference is in tests/parity."""

from dataclasses import replace

import numpy as np
import pytest

from ndsvrp import Problem, Solution, check, generate
from ndsvrp.engine.base import Recipe
from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.search.start import improve_start

# One customer is removed and inserted where it was: only exchanges of tails can change these solutions.
TAILS = Recipe(rule="random", removals=1, tails=20)


def after(problem: Problem, routes: list[list[int]], recipe: Recipe = TAILS, steps: int = 60) -> list[list[int]]:
    """Return the routes after steps at temperature 0, in a fixed order."""
    engine = CpuEngine()
    state = engine.start([problem], [0], Solution(routes))
    engine.improve(state, recipe, None, np.zeros((1, steps)), 1, 1)
    solution = engine.export(state, 0)
    assert check(problem, solution).feasible
    return sorted(list(route) for route in solution.routes)


def crossing(**more: object) -> Problem:
    """Return two rows of three customers east of the depot, one above and one below it; a route takes three."""
    x, y = [2.0, 4.0, 6.0], 1.0
    points = [(0.0, 0.0), *((a, y) for a in x), *((a, -y) for a in x)]
    return Problem(demand=np.r_[0.0, np.ones(6)], capacity=3.0, coordinates=np.array(points), **more)  # type: ignore[arg-type]


def test_crossing_routes_are_untangled() -> None:
    assert after(crossing(), [[1, 2, 6], [4, 5, 3]]) == [[1, 2, 3], [4, 5, 6]]


def test_tails_stay_without_the_move() -> None:
    assert after(crossing(), [[1, 2, 6], [4, 5, 3]], Recipe(rule="random", removals=1)) == [[1, 2, 6], [4, 5, 3]]


def test_capacity_limits_an_exchange() -> None:
    """Joining the routes of one row pays, if a vehicle can take three customers."""
    problem, routes = crossing(), [[1, 2], [3], [4, 5], [6]]
    assert after(problem, routes) == [[1, 2, 3], [4, 5, 6]]
    assert max(map(len, after(problem.replace(capacity=2.0), routes))) == 2


def test_loads_do_not_overflow() -> None:
    """The capacity takes so many ticks that two loads do not fit into 32 bits."""
    length = 1.0 - np.eye(4)
    length[0, 1:] = length[1:, 0] = 2.0
    problem = Problem(demand=np.array([0.0, 0.3, 0.2, 0.5]), capacity=0.5, distance=length)
    assert after(problem, [[1], [2], [3]]) in ([[1, 2], [3]], [[2, 1], [3]])


def test_routes_are_joined_backwards() -> None:
    """The first customers of both routes are neighbours, and the last ones."""
    routes = after(crossing().replace(capacity=6.0), [[1, 2, 3], [4, 5, 6]], steps=1)
    assert routes in ([[1, 2, 3, 6, 5, 4]], [[4, 5, 6, 3, 2, 1]], [[3, 2, 1, 4, 5, 6]], [[6, 5, 4, 1, 2, 3]])


def test_windows_forbid_reversing() -> None:
    """The same rows, with windows that are met from west to east only."""
    ready = np.array([0.0, 2.0, 4.0, 6.0, 2.0, 4.0, 6.0])
    windows = np.stack([ready, ready + 1.0], axis=1)
    windows[0] = (0.0, 20.0)
    problem = crossing(windows=windows).replace(capacity=6.0)
    assert after(problem, [[1, 2, 3], [4, 5, 6]]) == [[1, 2, 3], [4, 5, 6]]
    assert after(problem, [[1, 2, 6], [4, 5, 3]]) == [[1, 2, 3], [4, 5, 6]]


def test_a_route_is_split_where_that_pays() -> None:
    """From west to east by way of the depot: a matrix whose direct way is longer."""
    length = np.array([[0.0, 1, 1], [1, 0, 5], [1, 5, 0]])
    problem = Problem(demand=np.array([0.0, 1, 1]), capacity=2.0, distance=length)
    assert after(problem, [[1, 2]]) == [[1], [2]]
    assert after(problem.replace(vehicles=1), [[1, 2]]) == [[1, 2]]


def test_a_route_is_opened_where_that_is_cheaper() -> None:
    """Customer 2 is in time only between 1 and 3, a detour of 21; a route of its own costs 2."""
    points = np.array([(0.0, 0.0), (10.0, 0.0), (-1.0, 0.0), (10.0, 1.0)])
    windows = np.array([(0.0, 100.0), (0.0, 10.0), (0.0, 21.5), (0.0, 40.0)])
    problem = Problem(demand=np.array([0.0, 1, 1, 1]), capacity=3.0, coordinates=points, windows=windows)
    kept = Recipe(rule="random", removals=1, all_routes=True)
    assert after(problem, [[1, 2, 3]], kept) == [[1, 2, 3]]
    assert after(problem, [[1, 2, 3]], replace(kept, open_cheaper=1.0)) == [[1, 3], [2]]
    assert after(problem.replace(vehicles=1), [[1, 2, 3]], replace(kept, open_cheaper=1.0)) == [[1, 2, 3]]


@pytest.mark.parametrize("serve_all", [False, True])
def test_a_start_that_serves_all(serve_all: bool) -> None:
    """The prizes pay for no route, and the fleet for 30 customers."""
    problem = generate("cvrp", 40, seed=5)[0]
    problem = problem.replace(
        demand=np.r_[0.0, np.ones(40)], capacity=10.0, vehicles=3, prize=np.r_[0.0, np.full(40, 1e-3)]
    )
    engine = CpuEngine()
    state = engine.start([problem], [0])
    improve_start(engine, state, 1, 5, serve_all=serve_all)
    solution = engine.export(state, 0, best=False)
    assert [len(route) for route in solution.routes] == ([10, 10, 10] if serve_all else [])
