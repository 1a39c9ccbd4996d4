"""First solutions that serve all required customers, where windows and vehicles leave little room."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from ndsvrp import NoSolutionError, Problem, Settings, Solution, check, solve, solve_set
from ndsvrp.engine.base import Ints, Recipe
from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.engine.shared import solution_of, tour_of
from ndsvrp.generate import generate
from ndsvrp.search.absences import MOST, SLICE, Absences
from ndsvrp.search.asa import Search
from ndsvrp.search.presets import hybrid, sisr
from ndsvrp.search.stopping import Budget
from search.both_engines import assert_same_feasible_solutions

BY_STRINGS = Recipe(rule="string", sorted_orders=True, all_routes=True, blink=0.01)
NO_ROUTES = tour_of(Solution([]))


def few_vehicles() -> Problem:
    """Twelve vehicles for 100 customers with windows. Their demand takes eleven; greedy insertion leaves two over."""
    return generate("vrptw", 100, seed=4)[0].replace(vehicles=12)


def too_few() -> Problem:
    """Two vehicles for four customers at one time; one vehicle is in time for 1 and 3, or for 2 and 3, no other two."""
    places = [(0, 0), (1, 0), (0, 1), (1, 1), (2, 2)]
    return Problem(coordinates=places, demand=[0, 1, 1, 1, 1], capacity=4, vehicles=2, windows=[(0, 99), *[(5, 6)] * 4])


def test_customers_that_were_absent_have_priority() -> None:
    """The vehicle carries one of two customers. Serving the far one takes 4 there and back, the near one 2.

    At temperature 0 the near one stays for good. Counted absences make them take turns.
    """
    problem = Problem(demand=[0, 1, 1], capacity=1, vehicles=1, coordinates=[(0, 0), (1, 0), (2, 0)])
    recipe, engine, served = Recipe(rule="random", removals=2, all_routes=True), CpuEngine(), []
    state = engine.start([problem], [0], Solution([[1]]))
    for step in range(20):
        assert engine.serve_required(state, recipe, np.zeros(1), 1 << 36, range(step, step + 1), 1) == 1
        served.append(engine.export(state, 0, best=False).routes[0][0])
    assert set(served) == {1, 2}
    assert 8 <= served.count(1) <= 12  # whoever was absent more often replaces the other, sooner or later


def served_by(problem: Problem, tour: Ints = NO_ROUTES, **how: Any) -> Solution | None:
    found = Absences(problem, BY_STRINGS, how.pop("seed", 1), **how).serve_required(tour)
    return None if found is None else solution_of(found)


def test_all_are_served() -> None:
    """From no routes, and from routes that are kept as far as it takes; the same seed gives the same routes."""
    problem = few_vehicles()
    first, again, other = (served_by(problem, seed=seed) for seed in (1, 1, 2))
    assert first is not None and other is not None
    assert check(problem, first).feasible and check(problem, other).feasible
    assert first == again != other
    assert served_by(problem, tour_of(first)) == first


def test_optional_customers_make_room() -> None:
    """One vehicle of 10: the required customers of 6 and 4 fill it, however large the prizes of others."""
    problem = Problem(
        coordinates=[(0, 0), (3, 0), (0, 3), (1, 0), (0, 1)], demand=[0, 6, 4, 5, 5], capacity=10, vehicles=1,
        prize=[0, 0, 0, 9e9, 9e9], windows=[(0, 99)] * 5,
    )  # fmt: skip
    found = served_by(problem, tour_of(Solution([[3, 4]])))
    assert found is not None
    assert sorted(found.routes[0]) == [1, 2]


def test_an_end_without_a_solution() -> None:
    """By the number of steps, by a deadline, and because the caller asks for it."""
    assert served_by(too_few()) is None
    began, asked = time.perf_counter(), []
    assert served_by(few_vehicles().replace(vehicles=11), deadline=began) is None
    assert (
        served_by(few_vehicles().replace(vehicles=11), is_over=lambda: bool(asked.append(1)) or len(asked) == 3) is None
    )
    assert len(asked) == 3


def test_a_search_starts_where_all_are_served() -> None:
    """Without absences the same iterations find no solution."""
    problem = few_vehicles()
    how: dict[str, Any] = {"iterations": 5, "seed": 1, "device": "cpu", "solver": "hybrid"}
    with pytest.raises(NoSolutionError, match="12 vehicles leave"):
        solve(problem, count_absences=False, **how)
    result = solve(problem, **how)
    assert result.trace[0].iteration == 0
    assert check(problem, result.solution).feasible
    assert sum(map(len, result.solution.routes)) == 100


def test_a_warm_start_that_lacks_customers() -> None:
    """Its routes are not enough, so that it is changed until all are served."""
    problem = few_vehicles()
    full = solve(problem, iterations=5, seed=1, device="cpu").solution
    part = Solution(full.routes[2:])
    result = solve(problem, iterations=5, seed=2, device="cpu", init=part)
    assert check(problem, result.solution).feasible


def test_the_user_may_end_it() -> None:
    """The callback sees the customers that are unserved, before the first iteration, and ends the search."""
    seen: list[tuple[int, int]] = []

    def callback(progress: Any) -> bool:
        seen.append((progress.iteration, progress.unserved))
        return len(seen) < 2

    with pytest.raises(NoSolutionError):
        solve(too_few(), iterations=5, seed=1, device="cpu", callback=callback)
    assert seen == [(0, 1), (0, 1)]


def test_half_of_the_time_at_most() -> None:
    """For several problems together, each of which has a part of it."""
    problem = few_vehicles().replace(vehicles=11)
    settings = Settings(chains=1, orders=1, scope="all", start_rounds=0, count_absences=True)
    search = Search([problem, problem], CpuEngine(), settings, Budget(seconds=1.0), 1)
    search.run()
    assert search.iteration > 0
    assert all(len(trace) == 0 for trace in search.traces)


def test_a_hopeless_fleet_ends_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """The more customers are left, the fewer steps without progress: a tenth of the most for ten."""
    made: list[int] = []
    steps = CpuEngine.serve_required

    def counted(self: CpuEngine, state: Any, recipe: Recipe, *given: Any) -> int:
        made.append(len(given[2]))
        return steps(self, state, recipe, *given)

    monkeypatch.setattr(CpuEngine, "serve_required", counted)
    assert served_by(too_few()) is None
    assert sum(made) == MOST * 4
    made.clear()
    eleven = Problem(coordinates=[(0, 0)] + [(1, 0)] * 11, demand=[0] + [6] * 11, capacity=10, vehicles=1)
    assert served_by(eleven) is None
    assert MOST * 11 / 10 < sum(made) <= MOST * 11 / 10 + 3 * SLICE


def test_a_batch_ended_by_the_user_keeps_what_was_found() -> None:
    """The callback ends the search while the second problem is searched: the first has a solution, and its trace."""
    problems = [few_vehicles(), few_vehicles().replace(vehicles=11)]
    calls: list[int] = []
    outcomes = solve_set(
        problems, iterations=3, seed=1, device="cpu", callback=lambda _: calls.append(1) or len(calls) < 40,
        solver="hybrid",
    )  # fmt: skip
    first, second = outcomes
    assert not isinstance(first, NoSolutionError)
    assert first.report.feasible and [point.cost for point in first.trace] == pytest.approx([first.cost], rel=1e-6)
    assert isinstance(second, NoSolutionError)


@pytest.mark.emulator
def test_a_gpu_starts_from_the_same_routes() -> None:
    """Beside a problem whose start serves everybody."""
    problems = [few_vehicles(), few_vehicles().replace(vehicles=30)]
    settings = Settings(chains=2, rollouts=2, orders=1, scope="all", start_rounds=0, count_absences=True)
    assert_same_feasible_solutions(problems, settings)


def test_hybrid_does_so_within_a_limited_fleet() -> None:
    assert hybrid(few_vehicles()).count_absences
    assert not hybrid(few_vehicles().replace(vehicles=None)).count_absences
    assert not sisr().count_absences
