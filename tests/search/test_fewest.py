"""Searches that minimize the number of vehicles first."""

from __future__ import annotations

from typing import Any

import pytest

from ndsvrp import NdsError, NoSolutionError, Problem, Settings, Solution, check, solve, solve_set
from ndsvrp.engine.base import Recipe
from ndsvrp.engine.shared import solution_of, tour_of
from ndsvrp.generate import generate
from ndsvrp.search.absences import Absences
from ndsvrp.search.planning import Request, plan
from search.both_engines import assert_same_feasible_solutions

FEWEST: dict[str, Any] = {"fewest_vehicles": True, "seed": 1, "device": "cpu", "solver": "hybrid"}
BY_STRINGS = Recipe(rule="string", sorted_orders=True, all_routes=True, blink=0.01)


def windows(seed: int = 17) -> Problem:
    """Return 40 customers with windows. Their demand takes five vehicles; a search for the least cost uses six."""
    return generate("vrptw", 40, seed=seed)[0]


def apart() -> Problem:
    """Two customers of demand 6 lie east and west of the depot, two of demand 4 close together in the north.

    A vehicle carries 10. Least distance: 20 + 20 + (10 + 1 + sqrt(101)) = 61.05 with three vehicles. Two of them must
    carry 6 + 4 each: east and (1, 10) take 10 + sqrt(181) + sqrt(101), west and (0, 10) take 20 + sqrt(200): 67.65.
    """
    return Problem(demand=[0, 6, 6, 4, 4], capacity=10, coordinates=[(0, 0), (10, 0), (-10, 0), (0, 10), (1, 10)])


def test_vehicles_come_before_the_cost() -> None:
    cheapest, fewest = (solve(apart(), iterations=20, device="cpu", fewest_vehicles=given) for given in (False, True))
    assert (len(cheapest.solution.routes), cheapest.cost) == (3, pytest.approx(61.0499, abs=1e-4))
    assert (len(fewest.solution.routes), fewest.cost) == (2, pytest.approx(67.6457, abs=1e-4))
    assert fewest.problem == apart()  # without the limit that the search had
    assert fewest.settings["fewest_vehicles"] is True


def test_routes_are_taken_apart_while_that_works() -> None:
    """Each solution serves everybody with fewer routes than the one before."""
    problem = windows().replace(vehicles=40)
    alone = Solution([[customer] for customer in range(1, 41)])
    counts = [40]
    for tour in Absences(problem, BY_STRINGS, seed=1).with_fewer_vehicles(tour_of(alone)):
        found = solution_of(tour)
        assert check(problem, found).feasible
        assert len(found.routes) < counts[-1]
        counts.append(len(found.routes))
    assert counts[-1] == 5


def test_arithmetic_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The demand of twenty takes two vehicles of ten: one is not tried."""
    problem = Problem(demand=[0, 5, 5, 5, 5], capacity=10, vehicles=4, coordinates=[(0, 0), *[(1, 0)] * 4])
    tried: list[int] = []
    serve = Absences.serve_required

    def noted(self: Absences, tour: Any) -> Any:
        tried.append(len(solution_of(tour).routes))
        return serve(self, tour)

    monkeypatch.setattr(Absences, "serve_required", noted)
    alone = Solution([[1], [2], [3], [4]])
    found = [solution_of(t) for t in Absences(problem, BY_STRINGS, seed=1).with_fewer_vehicles(tour_of(alone))]
    assert len(found[-1].routes) == 2
    assert 1 not in tried


def test_a_search_keeps_the_fewest() -> None:
    """Five instead of six; the same seed gives the same routes, for any number of threads."""
    free = solve(windows(), iterations=5, **{**FEWEST, "fewest_vehicles": False})
    first, again = (solve(windows(), iterations=5, threads=threads, **FEWEST) for threads in (1, 2))
    assert (len(free.solution.routes), len(first.solution.routes)) == (6, 5)
    assert first.report.feasible
    assert first.solution == again.solution
    assert first.trace[0].iteration == 0
    assert first.cost < first.trace[0].cost


@pytest.mark.parametrize("how", [{"solver": "sisr"}, {"solver": "nds"}, {"islands": 2, "chains": 4}, {"population": 4}])
def test_every_search_does_so(how: dict[str, Any]) -> None:
    result = solve(windows(), iterations=2, **{**FEWEST, **how})
    assert result.report.feasible
    assert len(result.solution.routes) == 5


def test_a_start_that_is_given() -> None:
    """With six routes; and with the five of which one was taken away, so that customers are missing."""
    few = solve(windows(), iterations=5, **FEWEST).solution
    many = solve(windows(), iterations=1, seed=1, device="cpu").solution
    assert len(many.routes) > len(few.routes)
    for init in (many, Solution(few.routes[1:])):
        assert len(solve(windows(), iterations=1, init=init, **FEWEST).solution.routes) == len(few.routes)


def test_a_limit_that_the_problem_has() -> None:
    """Fewer than allowed are found; where the fleet is too small, the error is that of any search.

    One vehicle is in time for 1 and 3, or for 2 and 3, no other two of four customers.
    """
    assert len(solve(windows().replace(vehicles=9), iterations=1, **FEWEST).solution.routes) == 5
    places = [(0, 0), (1, 0), (0, 1), (1, 1), (2, 2)]
    too_few = Problem(
        coordinates=places, demand=[0, 1, 1, 1, 1], capacity=4, vehicles=2, windows=[(0, 99), *[(5, 6)] * 4]
    )
    with pytest.raises(NoSolutionError, match="2 vehicles leave 1 required customer unserved"):
        solve(too_few, iterations=1, **FEWEST)


def test_optional_customers_do_not_count() -> None:
    """The required ones take one vehicle of ten: the optional one is served only if there is room for it."""
    problem = Problem(
        demand=[0, 5, 5, 5], capacity=10, coordinates=[(0, 0), (1, 0), (0, 1), (-1, 0)], prize=[0, 0, 0, 99]
    )
    result = solve(problem, iterations=5, device="cpu", fewest_vehicles=True)
    assert sorted(result.solution.routes[0]) == [1, 2] and len(result.solution.routes) == 1
    assert result.report.unserved == (3,)


def test_only_optional_customers_are_refused() -> None:
    problem = generate("pcvrp", 20, seed=1)[0]
    with pytest.raises(NdsError, match="fewest_vehicles: no customer is required"):
        solve(problem, iterations=1, fewest_vehicles=True)


def test_together_as_alone() -> None:
    problems = [windows(seed) for seed in (17, 36, 42)]
    outcomes = solve_set(problems, iterations=3, **FEWEST)
    for problem, outcome in zip(problems, outcomes, strict=True):
        assert not isinstance(outcome, NoSolutionError)
        assert outcome.problem == problem
        assert outcome.solution == solve(problem, iterations=3, **FEWEST).solution


def test_whoever_ends_it_gets_the_fewest_so_far() -> None:
    """A callback sees fewer and fewer routes before the first iteration."""
    seen: list[int] = []

    def callback(progress: Any) -> bool:
        assert progress.iteration == 0
        seen.append(len(progress.incumbent.routes))
        return len(seen) < 3

    result = solve(windows(), iterations=5, callback=callback, **FEWEST)
    assert result.stopped == "callback"
    assert len(result.solution.routes) == seen[-1]
    assert result.trace[-1].cost == pytest.approx(result.cost, rel=1e-6)


def test_costs_with_more_vehicles_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A target is reached, and patience counts, with the fewest vehicles only."""
    few = solve(windows(), iterations=20, **FEWEST)
    result = solve(windows(), iterations=20, target=few.cost * 1.001, **FEWEST)
    assert result.stopped == "target"
    assert len(result.solution.routes) == 5


def test_half_of_the_time_at_most() -> None:
    result = solve_set([windows(), windows(36)], time=0.5, **FEWEST)[0]
    assert not isinstance(result, NoSolutionError)
    assert result.iterations > 0


@pytest.mark.emulator
def test_a_gpu_starts_from_the_same_routes() -> None:
    settings = Settings(
        chains=2, rollouts=2, orders=1, scope="all", start_rounds=0, count_absences=True, fewest_vehicles=True
    )
    assert_same_feasible_solutions([windows(), windows(36)], settings)


def test_the_plan_is_that_of_a_limited_fleet() -> None:
    """Rules on a GPU, and chains: there are no spare vehicles for children."""
    problem = generate("cvrp", 200, seed=1)[0]
    asked = Request(settings={"fewest_vehicles": True})
    assert plan(problem, Request(), has_gpu=lambda: True).settings.ruin == "policy"
    assert plan(problem, asked, has_gpu=lambda: True).settings.ruin == "string"
    chosen = plan(problem, asked, has_gpu=lambda: False).settings
    assert (chosen.population, chosen.islands, chosen.count_absences) == (0, 0, True)
