"""The paper's search with a policy: an untrained network, or your own function."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from clocks import FakeClock
from ndsvrp import Problem, Progress, Result, RuinRequest, Solution, check, solve
from ndsvrp.generate import generate
from ndsvrp.policy import Network, NetworkConfig, Policy
from parity.problems import VARIANTS, random_problem

TINY = NetworkConfig(width=8, heads=2, feed_forward=8, layers_before=1, layers_after=1, seed_bits=6, seed_width=4)


def policy(seed: int = 0, config: NetworkConfig = TINY) -> Policy:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Policy(Network(config))


def search(problem: Problem, ruin: Any = None, **changes: Any) -> Result:
    usual: dict[str, Any] = {"iterations": 4, "seed": 1, "solver": "nds", "chains": 3, "rollouts": 20, "removals": 6}
    return solve(problem, ruin=ruin or policy(), **usual | {"orders": 2} | changes)


def course(result: Result) -> tuple[Any, ...]:
    """All that must not depend on threads or the clock."""
    return result.solution, result.cost, [(point.iteration, point.cost) for point in result.trace]


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant(variant: str) -> None:
    problem = generate(variant, 40, seed=1)[0]
    apart = Solution([c] for c in range(1, 41))
    result = search(problem, iterations=15, init=apart)
    report = check(problem, result.solution)
    assert report.feasible and report.cost == pytest.approx(result.cost)
    assert (result.stopped, result.iterations, result.reconstructions) == ("iterations", 15, 3 * 15 * 20 * 2)
    assert result.settings["ruin"] == "function"
    costs = [point.cost for point in result.trace]
    assert costs == sorted(costs, reverse=True) and costs[0] == pytest.approx(check(problem, apart).cost)
    assert costs[-1] < 0.8 * costs[0], "the search has improved the start"


@pytest.mark.slow
@pytest.mark.parametrize("source", ["matrix", "asymmetric", "durations", "round", "dimacs"])
@pytest.mark.parametrize("variant", ["cvrp", "pcvrptw"])
def test_every_source_of_distances(variant: str, source: str) -> None:
    for seed in range(3):
        problem = random_problem(seed, variant, source)
        assert check(problem, search(problem).solution).feasible


@pytest.mark.parametrize("variant", VARIANTS)
def test_one_customer(variant: str) -> None:
    problem = generate(variant, 1, seed=2)[0]
    result = search(problem)
    assert check(problem, result.solution).feasible
    alone = 2 * float(problem.length(0, 1))
    assert result.cost == pytest.approx(min(alone, problem.prize[1]) if problem.prize is not None else alone)


def test_one_customer_by_a_matrix() -> None:
    problem = Problem(distance=[[0, 3], [4, 0]], demand=[0, 1], capacity=1)
    assert search(problem).cost == 7


def test_all_in_one_place() -> None:
    problem = Problem(coordinates=np.full((6, 2), 0.3), demand=[0, 1, 1, 1, 1, 1], capacity=2)
    assert search(problem).cost == 0


def test_limited_fleet() -> None:
    problem = generate("cvrp", 20, seed=1)[0]
    fewest = math.ceil(problem.demand.sum() / problem.capacity)
    result = search(problem.replace(vehicles=fewest + 1), iterations=8)
    assert len(result.solution.routes) <= fewest + 1


def test_four_customers_are_solved() -> None:
    # (1 4), (2 3): 16 + 12, as worked out in tests/train/test_loss.py.
    problem = Problem(coordinates=[[0, 0], [3, -4], [3, 0], [3, 4], [6, 0]], demand=[0, 1, 1, 1, 1], capacity=2)
    assert search(problem, removals=3).cost == pytest.approx(28)


@pytest.mark.parametrize("variant", ["cvrp", "pcvrptw"])
def test_same_seed_same_result_for_any_threads(variant: str) -> None:
    problem, apart = generate(variant, 25, seed=1)[0], Solution([c] for c in range(1, 26))
    iterate = partial(search, problem, init=apart)  # a way to go: the best is not found at once
    first = course(iterate(threads=1))
    for threads in (1, 2, 3):
        assert course(iterate(threads=threads)) == first
    torch.set_num_threads(2)
    try:
        assert course(iterate(threads=2)) == first, "also not on the threads of torch"
    finally:
        torch.set_num_threads(1)
    assert course(iterate(seed=2)) != first
    assert course(iterate(policy(seed=1))) != first, "the weights matter"


def test_a_policy_may_be_used_again() -> None:
    """For another problem, and for the same with other settings: nothing of one search is left in the next."""
    one = policy()
    first, second = generate("cvrp", 12, count=2, seed=1)
    expected = course(search(first))
    assert course(search(first, one)) == expected
    search(second, one)
    search(first, one, chains=5)
    search(first, one, chains=2)
    assert course(search(first, one)) == expected


def test_more_rollouts_than_seeds() -> None:
    problem = generate("cvrp", 12, seed=1)[0]
    assert check(problem, search(problem, rollouts=100, iterations=2).solution).feasible  # 64 seeds


@pytest.mark.parametrize("variant", ["cvrp", "vrptw"])
def test_time_limit(monkeypatch: pytest.MonkeyPatch, variant: str) -> None:
    problem = generate(variant, 30, seed=1)[0]
    FakeClock(monkeypatch, tick=0.005)
    result = search(problem, policy(), iterations=None, time=0.4)
    assert result.stopped == "time"
    assert 0.39 < result.seconds < 0.4 + 0.1
    assert result.iterations > 1
    assert check(problem, result.solution).feasible


def test_time_is_up_before_the_first_rollout() -> None:
    """The deadline falls into the start: the search ends with what there is."""
    problem = generate("cvrp", 60, seed=1)[0]
    result = search(problem, iterations=None, time=1e-4)
    assert result.stopped == "time"
    assert check(problem, result.solution).feasible


def test_reported_as_it_goes() -> None:
    told: list[Progress] = []
    result = search(generate("cvrp", 12, seed=1)[0], callback=told.append)
    assert [progress.iteration for progress in told] == [0, 1, 2, 3, 4]
    assert told[-1].best == pytest.approx(result.cost)


def test_what_a_ruin_reads() -> None:
    """A function gets augmented coordinates in the unit square, and the current solutions."""
    problem = generate("cvrp", 12, seed=1)[0]
    seen: list[RuinRequest] = []

    def first_ones(request: RuinRequest) -> np.ndarray:
        seen.append(request)
        chosen = np.arange(1, request.removals + 1, dtype=np.int32)
        return np.broadcast_to(chosen, (len(request.coordinates), request.rollouts, request.removals))

    search(problem, first_ones, threads=2)
    assert len(seen) == 4
    assert seen[0].coordinates.shape == (3, 13, 2)
    assert np.ptp(seen[0].coordinates[0], axis=0).max() == pytest.approx(1)
    assert seen[0].coordinates[1, :, 0] == pytest.approx(1 - seen[0].coordinates[0, :, 0])
    assert (seen[0].rollouts, seen[0].removals, seen[0].problem) == (20, 6, problem)
    assert seen[0].deadline is None
    draws = [request.random.random() for request in seen]
    assert len(set(draws)) == 4, "new random numbers in every iteration"


def test_learned_policy_beside_rules() -> None:
    """With the distance term an untrained policy is a related removal: it searches about as well."""
    costs: dict[str, list[float]] = {"policy": [], "random": [], "related": []}
    for problem in generate("cvrp", 60, count=4, seed=5):
        for name in costs:
            result = search(problem, policy() if name == "policy" else name, iterations=8, rollouts=40)
            costs[name].append(result.cost)
    means = {name: float(np.mean(values)) for name, values in costs.items()}
    assert means["policy"] < 1.03 * means["related"]
