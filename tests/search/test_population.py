"""Searches with a population: who stays, what children bring, and that seeds fix the result."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from ndsvrp import Metric, NdsError, Problem, Settings, Solver, check, generate, solve, solve_set
from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.search.population import Population, PopulationSearch
from ndsvrp.search.stopping import Budget

SMALL: dict[str, Any] = {"solver": "hybrid", "population": 6, "child_steps": 2, "device": "cpu"}
ISLANDS: dict[str, Any] = {
    "solver": "nds", "ruin": "related", "device": "cpu", "chains": 8, "islands": 4, "rollouts": 20, "child_steps": 2,
}  # fmt: skip
BOTH = pytest.mark.parametrize("how", [SMALL, ISLANDS], ids=["population", "islands"])


def tour(*routes: tuple[int, ...]) -> np.ndarray:
    return np.array([stop for route in routes for stop in (*route, 0)], np.int32)


def held() -> Population:
    """Three solutions of five customers; 0 and 1 differ in 3 of 10 neighbours, 2 in more from both."""
    tours = [tour((1, 2, 3), (4, 5)), tour((1, 2), (3, 4, 5)), tour((1, 3, 5), (2, 4))]
    return Population(5, np.array([10.0, 12.0, 20.0]), tours)


def test_the_most_expensive_solution_leaves() -> None:
    population = held()
    assert population.admit(15.0, tour((1, 4), (2, 5), (3,)), least=0.1) == 2
    assert population.costs[:3].tolist() == [10.0, 12.0, 15.0]
    assert population.tours[2].tolist() == [1, 4, 0, 2, 5, 0, 3, 0]
    assert population.admit(15.0, tour((1, 5), (2, 3), (4,)), least=0.1) is None, "as expensive as the last one"
    assert population.admit(30.0, tour((1, 5), (2, 3), (4,)), least=0.1) is None


def test_of_two_close_solutions_the_more_expensive_one_leaves() -> None:
    """A child next to solution 0 replaces it or is dropped, although solution 2 costs more."""
    child = tour((3, 2, 1), (5,), (4,))  # 4 and 5 have one other neighbour each: 0.2 apart from solution 0
    population = held()
    assert population.admit(11.0, child, least=0.3) is None
    assert population.admit(9.0, child, least=0.3) == 0
    assert population.costs[:3].tolist() == [9.0, 12.0, 20.0]
    assert held().admit(11.0, child, least=0.1) == 2, "far enough"


@pytest.mark.parametrize(
    ("draws", "first", "second"),
    [(1, (3, 3, 3), (1, 1)), (2, (5, 3, 1), (3, 1)), (3, (19, 7, 1), (7, 1))],  # of 3, 9, 27 and of 2, 4, 8 outcomes
)
def test_parents_are_the_cheapest_of_the_drawn_solutions(
    draws: int, first: tuple[int, ...], second: tuple[int, ...]
) -> None:
    """The first parent is one of three solutions, the second one of the two others; the cheaper, the more often."""
    words = [-(-(k << 32) // 6**draws) for k in range(6**draws)]  # every outcome is as frequent
    drawn = Counter(held().parents(one, other, draws) for one in words for other in words)
    expected = {
        (i, j): Fraction(first[i] * second[k], sum(first) * sum(second))
        for i in range(3)
        for k, j in enumerate(number for number in range(3) if number != i)
    }
    assert {pair: Fraction(count, len(words) ** 2) for pair, count in drawn.items()} == expected


def test_a_copy_never_enters() -> None:
    population = held()
    assert population.admit(10.0, tour((5, 4), (3, 2, 1)), least=0.0) is None


def test_the_cheapest_solution_stays() -> None:
    random = np.random.default_rng(1)
    population, lowest = held(), 10.0
    for _ in range(200):
        cost, order = float(random.integers(5, 40)), random.permutation(5) + 1
        population.admit(cost, tour(tuple(order[:2]), tuple(order[2:])), least=0.6)
        assert min(population.costs[:3]) <= lowest
        lowest = min(population.costs[:3])


@BOTH
@pytest.mark.parametrize("variant", ["cvrp", "pcvrp", "vrptw", "pcvrptw"])
def test_threads_and_batches_do_not_change_the_result(variant: str, how: dict[str, Any]) -> None:
    problems = generate(variant, 30, count=2, seed=5)
    alone = [solve(problem, iterations=30, seed=3, threads=1, **how) for problem in problems]
    threads = solve(problems[0], iterations=30, seed=3, threads=2, **how)
    together = solve_set(problems, iterations=30, seed=3, **how)
    assert threads.solution == alone[0].solution
    assert [result.solution for result in together] == [result.solution for result in alone]
    for problem, result in zip(problems, alone, strict=True):
        assert check(problem, result.solution).feasible
        assert result.trace[-1].cost == pytest.approx(result.cost)
        assert [a.cost for a in result.trace] == sorted((a.cost for a in result.trace), reverse=True)


def test_iterations_anneal_first_then_improve_children() -> None:
    """Of 10 iterations 4 anneal: 1000 x 4 / 8 = 500 steps per solution. Then 4 children have 3 x 20 steps each."""
    result = solve(
        generate("cvrp", 20, seed=1)[0], iterations=10, seed=1, solver="hybrid", device="cpu", population=8,
        anneal_share=0.4, child_steps=3,
    )  # fmt: skip
    assert result.reconstructions == 4 * 8 * 500 + 6 * 4 * 60
    assert (result.iterations, result.stopped) == (10, "iterations")


def test_children_improve_what_was_annealed() -> None:
    """The best solution after 10 of 100 iterations of annealing is passed by more than 1% on each of four instances."""
    for problem in generate("cvrp", 100, count=4, seed=11):
        result = solve(problem, iterations=100, seed=1, anneal_share=0.1, rollouts=40, **SMALL)
        annealed = min(point.cost for point in result.trace if point.iteration <= 10)
        assert result.cost < 0.99 * annealed


@BOTH
@pytest.mark.parametrize("customers", [1, 2, 3])
def test_tiny_problems(customers: int, how: dict[str, Any]) -> None:
    problem = Problem(demand=np.r_[0, np.ones(customers)], capacity=1, coordinates=np.eye(customers + 1)[:, :2])
    result = solve(problem, iterations=8, seed=1, **how)
    lengths = [float(np.hypot(*(problem.coordinates[i] - problem.coordinates[0]))) for i in range(1, customers + 1)]
    assert result.cost == pytest.approx(2 * sum(lengths))


@BOTH
def test_a_warm_start_is_never_lost(how: dict[str, Any]) -> None:
    problem = generate("cvrp", 40, seed=2)[0]
    good = solve(problem, iterations=60, seed=1, device="cpu")
    again = solve(problem, iterations=2, seed=2, init=good.solution, **how)
    assert again.cost <= good.cost


def test_a_route_that_is_late_without_a_customer_is_noticed() -> None:
    """The way from 1 to 3 takes 9, by way of 2 it takes 2: without 2, the vehicle is late at 3."""
    distance = np.array([[0, 1, 1, 1], [1, 0, 1, 9], [1, 1, 0, 1], [1, 9, 1, 0]], float)
    windows = np.array([[0, 20], [0, 20], [0, 20], [0, 4]], float)
    problem = Problem(demand=[0, 1, 1, 1], capacity=3, distance=distance, windows=windows, service=np.zeros(4))
    engine = CpuEngine()
    state = engine.start([problem], [0])
    assert engine.place(state, 0, tour((1, 2, 3)))
    assert engine.tour(state, 0).tolist() == [1, 2, 3, 0]
    assert state.stats().costs.tolist() == [4.0]
    assert not engine.place(state, 0, tour((1, 3), (2,)))


@pytest.mark.parametrize("vehicles", [4, 5])
def test_fleets_are_kept(vehicles: int) -> None:
    """A total demand of 160: four vehicles of 40 must be exactly full, five need not."""
    problem = generate("cvrp", 30, seed=3, capacity=40)[0]
    assert problem.demand.sum() == 160
    fleet = problem.replace(vehicles=vehicles)
    result = solve(fleet, iterations=30, seed=1, **SMALL)
    assert check(fleet, result.solution).feasible
    assert result.cost == pytest.approx(solve(fleet, iterations=60, seed=2, **SMALL).cost, rel=0.02)


def test_a_set_is_grouped_by_the_plans_that_its_problems_have_alone() -> None:
    """Problems of one size, with short and with longer routes, have different plans only if there is time."""
    problem = generate("cvrp", 300, seed=1)[0]
    problems = [problem.replace(demand=np.r_[0, np.ones(300)], capacity=capacity) for capacity in (5, 6, 5)]
    solver = Solver(device="cpu", threads=1)
    assert solver._by_plan(problems, [[0, 1, 2]], 30.0) == [[0, 2], [1]]
    assert [solver._by_plan(problems, [[0, 1, 2]], time) for time in (29.0, None)] == [[[0, 1, 2]]] * 2


def test_an_interruption_keeps_what_children_have_found() -> None:
    """A child that is better than the population is found before it is selected."""
    problem = generate("cvrp", 40, seed=2)[0]
    engine = CpuEngine()
    settings = Solver(device="cpu", population=4, rollouts=4, anneal_share=0.1).plan(problem).settings
    search = PopulationSearch([problem], engine, settings, Budget(iterations=4), 1)
    search.run()
    good = solve(problem, iterations=40, seed=1, device="cpu")
    assert good.cost < search.state.stats().best_costs.min()  # type: ignore[union-attr]
    engine.place(search._children, 2, np.array([c for r in good.solution.routes for c in (*r, 0)], np.int32))
    search.note_best()
    assert check(problem, search.best()[0]).cost == pytest.approx(good.cost)
    assert search.traces[0][-1].cost == pytest.approx(good.cost)


def test_the_same_best_solution_enters_a_population_once() -> None:
    """After a warm start from the best solution known, annealed solutions beside it make a population."""
    problem = generate("cvrp", 40, seed=2)[0]
    good = solve(problem, iterations=60, seed=1, device="cpu")
    settings = Solver(device="cpu", population=4).plan(problem).settings
    search = PopulationSearch([problem], CpuEngine(), settings, Budget(iterations=3), 1, init=good.solution)
    search.run()
    costs = search.state.stats().costs  # type: ignore[union-attr]
    assert np.min(costs) == pytest.approx(good.cost)
    assert len({round(float(cost), 6) for cost in costs}) > 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"population": 1}, "a population has at least 2 solutions, got 1"),
        ({"population": 4, "chains": 4, "regions": 2}, "a population has whole solutions: regions must be 1, got 2"),
        ({"population": 4, "ruin": "policy"}, "a population is for rules, not for the ruin 'policy'"),
        ({"population": -1}, "population must be between 0 and"),
        ({"warm": -1.0}, "warm must be between 0 and"),
        ({"anneal_share": 1.0}, "anneal_share must be between 0 and 0.99"),
    ],
)
def test_wrong_settings(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(NdsError, match=message):
        Settings(**wrong)


@BOTH
def test_rounded_lengths_and_windows_are_checked(how: dict[str, Any]) -> None:
    """With rounded lengths the way by a customer may be shorter, so that children may be late: they are not used."""
    (problem,) = generate("vrptw", 40, seed=9)
    assert problem.coordinates is not None
    scaled = problem.replace(
        coordinates=np.rint(problem.coordinates * 1000), windows=np.rint(problem.windows * 1000),
        service=np.rint(problem.service * 1000), metric=Metric.ROUND,
    )  # fmt: skip
    result = solve(scaled, iterations=40, seed=1, **how)
    assert check(scaled, result.solution).feasible
