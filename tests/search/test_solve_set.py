"""Several problems at once: each takes the course it would take alone, with its share of the time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from clocks import FakeClock
from ndsvrp import (
    NdsError,
    NoSolutionError,
    Problem,
    Progress,
    Result,
    Ruin,
    RuinRequest,
    check,
    generate,
    solve,
    solve_set,
)
from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.policy import Network, NetworkConfig, Policy
from ndsvrp.search import planning, solver

TINY = NetworkConfig(width=8, heads=2, feed_forward=8, layers_before=1, layers_after=1, seed_bits=6, seed_width=4)
SHORT: dict[str, Any] = {"iterations": 4, "seed": 3, "chains": 3, "rollouts": 30, "device": "cpu"}


def course(result: Result | NoSolutionError) -> tuple[Any, ...]:
    assert isinstance(result, Result), result
    steps = [(point.iteration, point.cost) for point in result.trace]
    return result.solution, result.cost, steps, result.iterations, result.reconstructions


def scaled(problems: list[Problem]) -> list[Problem]:
    """Boxes of several sides."""
    return [p.replace(coordinates=p.coordinates * 10**i) for i, p in enumerate(problems) if p.coordinates is not None]


@pytest.mark.parametrize("how", [{"solver": "sisr"}, {"solver": "nds", "ruin": "related", "threshold": 1.0}])
@pytest.mark.parametrize("variant", ["cvrp", "vrptw", "pcvrp", "pcvrptw"])
def test_as_alone(variant: str, how: dict[str, Any]) -> None:
    """Whatever the threads and however many at a time."""
    problems = generate(variant, 30, count=3, seed=1)
    if variant == "cvrp":
        problems = scaled(problems)
    alone = [course(solve(problem, **SHORT, **how)) for problem in problems]
    for more in ({}, {"threads": 2}, {"together": 2}, {"together": 1}, {"together": 9}):
        assert [course(result) for result in solve_set(problems, **SHORT, **how, **more)] == alone


def test_a_mixed_set() -> None:
    """Sizes, variants, matrices and fleets are put together as far as they are alike; results come in order."""
    small, large = generate("cvrp", 12, count=2, seed=1), generate("cvrp", 20, count=2, seed=2)
    nodes = np.arange(13)
    matrix = Problem(
        distance=small[0].length(nodes[:, None], nodes[None]), demand=small[0].demand, capacity=small[0].capacity
    )
    problems = [small[0], large[0], small[1].replace(vehicles=12), matrix, small[1], *generate("vrptw", 12), large[1]]
    results = solve_set(problems, **SHORT, solver="nds")
    assert [course(result) for result in results] == [course(solve(p, **SHORT, solver="nds")) for p in problems]
    assert [r.settings.get("together") for r in results if isinstance(r, Result)] == [2, 2, None, None, 2, None, 2]
    assert solve_set([], iterations=1) == []


def test_every_problem_has_the_settings_that_it_has_alone() -> None:
    """A vehicle of the second problem carries all customers, which makes `hybrid` open routes that are cheaper."""
    first, second, third = generate("vrptw", 60, count=3, seed=1)
    problems = [first, second.replace(capacity=1000), third]
    how: dict[str, Any] = {"iterations": 2, "seed": 3, "device": "cpu"}
    alone = [solve(problem, **how) for problem in problems]
    assert [result.settings["open_cheaper"] for result in alone] == [0.0, 0.5, 0.0]
    together = solve_set(problems, **how)
    assert [course(result) for result in together] == [course(result) for result in alone]
    for result, expected in zip(together, alone, strict=True):
        assert isinstance(result, Result)
        settings = {name: value for name, value in result.settings.items() if name != "together"}
        assert settings == expected.settings
    assert [r.settings.get("together") for r in together if isinstance(r, Result)] == [2, None, 2]


def test_a_fleet_too_small_leaves_the_others_their_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver, "shortage", lambda problem: None)  # search anyhow
    problems = [p.replace(vehicles=v) for p, v in zip(generate("cvrp", 20, count=3), (20, 1, 20), strict=True)]
    first, second, third = solve_set(problems, **SHORT)
    assert isinstance(second, NoSolutionError)
    assert "1 vehicle leaves" in str(second) and len(second.unserved) > 0
    assert course(first) == course(solve(problems[0], **SHORT))
    assert course(third) == course(solve(problems[2], **SHORT))


def test_time_is_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    problems, clock = generate("cvrp", 20, count=3, seed=1), FakeClock(monkeypatch, tick=5e-3)
    began = clock.now
    results = solve_set(problems, time=0.2, seed=1, device="cpu")
    taken = clock.now - began
    assert 0.6 <= taken < 0.6 + 0.1
    for result in results:
        assert isinstance(result, Result)
        assert (result.stopped, result.settings["limits"]["time"]) == ("time", 0.2)
        assert 0.19 < result.seconds <= taken / 3 + 1e-3
        assert all(point.seconds <= result.seconds for point in result.trace)


def test_progress_is_of_all() -> None:
    told: list[Progress] = []
    results = solve_set(generate("cvrp", 20, count=3, seed=1), **SHORT, callback=told.append)
    assert [progress.iteration for progress in told] == [0, 1, 2, 3, 4]
    assert told[-1].best == pytest.approx(np.mean([r.cost for r in results if isinstance(r, Result)]))
    assert told[-1].reconstructions == sum(r.reconstructions for r in results if isinstance(r, Result))


def test_patience_and_target_go_by_the_mean() -> None:
    problems = generate("cvrp", 12, count=2, seed=1)
    results = [r for r in solve_set(problems, iterations=5, seed=1, chains=2) if isinstance(r, Result)]
    mean = float(np.mean([r.cost for r in results]))
    for result in solve_set(problems, iterations=1000, seed=1, chains=2, target=mean * 1.001):
        assert isinstance(result, Result) and result.stopped == "target"
    for result in solve_set(problems, iterations=10_000, seed=1, chains=2, patience=3):
        assert isinstance(result, Result) and result.stopped == "patience"


def test_an_interruption_ends_the_rest() -> None:
    def stop(progress: Progress) -> None:
        if progress.iteration == 2:
            raise KeyboardInterrupt

    results = solve_set(generate("cvrp", 20, count=5, seed=1), **SHORT, together=2, callback=stop)
    stopped = [r.stopped if isinstance(r, Result) else str(r) for r in results]
    assert stopped == ["interrupted"] * 2 + ["interrupted before its search"] * 3
    assert all(r.iterations == 2 for r in results if isinstance(r, Result))


def test_functions_get_one_problem_at_a_time() -> None:
    seen: list[RuinRequest] = []

    def ruin(request: RuinRequest) -> np.ndarray:
        seen.append(request)
        chains, n = len(request.view.route), request.problem.customers
        draws = [request.random.permutation(n)[: request.removals] + 1 for _ in range(chains * request.rollouts)]
        return np.array(draws, np.int32).reshape(chains, request.rollouts, request.removals)

    problems = generate("cvrp", 12, count=2, seed=1)
    results = solve_set(problems, **SHORT, solver="nds", ruin=ruin)
    assert [request.problem for request in seen] == [problems[0]] * 4 + [problems[1]] * 4
    assert all(request.problems == (request.problem,) for request in seen)
    assert [course(r) for r in results] == [course(solve(p, **SHORT, solver="nds", ruin=ruin)) for p in problems]


def test_batched_ruins_get_all_problems() -> None:
    problems, seen = generate("cvrp", 12, count=2, seed=1), []

    class First(Ruin):
        batched = True

        def __call__(self, request: RuinRequest) -> np.ndarray:
            seen.append(request)
            chosen = np.arange(1, request.removals + 1, dtype=np.int32)
            return np.broadcast_to(chosen, (len(request.coordinates), request.rollouts, request.removals))

    solve_set(problems, **SHORT, solver="nds", ruin=First())
    assert len(seen) == 4
    assert seen[0].problems == tuple(problems) and seen[0].problem is problems[0]
    assert seen[0].coordinates.shape == (6, 13, 2) and seen[0].view.route.shape == (6, 13)
    solve(problems[1], **SHORT, solver="nds", ruin=First())
    assert np.array_equal(seen[0].coordinates[3:], seen[4].coordinates)


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["cvrp", "pcvrptw"])
def test_the_policy_takes_a_batch(variant: str) -> None:
    """It reads each problem's own numbers, and improves all of them as well as one at a time."""
    torch.manual_seed(0)
    policy = Policy(Network(TINY))
    problems = generate(variant, 30, count=3, seed=4)
    more = {"solver": "nds", "ruin": policy, "removals": 6, "iterations": 8}
    results = solve_set(problems, **SHORT | more)
    nodes = policy._inputs.nodes if policy._inputs is not None else None
    assert nodes is not None and nodes.shape[:2] == (9, 31)
    for i, (problem, result) in enumerate(zip(problems, results, strict=True)):
        alone = solve(problem, **SHORT | more)
        assert isinstance(result, Result) and check(problem, result.solution).feasible
        assert result.cost < 1.1 * alone.cost
        assert policy._inputs is not None
        assert torch.equal(nodes[3 * i : 3 * i + 3], policy._inputs.nodes)
    assert course(solve_set(problems[:1], **SHORT | more)[0]) == course(solve(problems[0], **SHORT | more))
    assert [course(r) for r in solve_set(problems, **SHORT | more)] == [course(r) for r in results]


def test_the_policy_gets_problems_with_a_matrix_one_by_one() -> None:
    torch.manual_seed(0)
    nodes = np.arange(13)
    problems = [
        Problem(distance=p.length(nodes[:, None], nodes[None]), demand=p.demand, capacity=p.capacity)
        for p in generate("cvrp", 12, count=2, seed=1)
    ]
    more = {"solver": "nds", "ruin": Policy(Network(TINY)), "removals": 6}
    results = solve_set(problems, **SHORT | more)
    assert [course(r) for r in results] == [course(solve(p, **SHORT | more)) for p in problems]


def test_a_gpu_is_prepared_before_the_clock_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rehearsal does all that a search does, and does not affect it."""
    calls: list[tuple[int, int]] = []
    clock = FakeClock(monkeypatch, tick=0.01)

    class Slow(CpuEngine):
        """Takes a minute to compile."""

        def improve(self, state: Any, recipe: Any, removed: Any, temperature: Any, *args: Any, **limits: Any) -> None:
            if not calls:
                clock.now += 60.0
            assert limits["deadline"] is not None
            calls.append((args[-1], temperature.shape[1]))
            super().improve(state, recipe, removed, temperature, *args, **limits)

    problem = generate("cvrp", 20, seed=1)[0]
    monkeypatch.setattr(planning, "_has_gpu", lambda: True)
    monkeypatch.setattr(solver, "make_engine", lambda plan: Slow())
    result = solve(problem, time=0.5, seed=1, solver="nds", rollouts=40)
    assert result.settings["device"] == "cuda"
    assert 0.49 < result.seconds < 0.6
    assert result.trace[0].iteration == 0
    assert [iteration for iteration, _ in calls[:3]] == [calls[0][0], 1, calls[0][0]], "start, iteration, start"
    assert calls[0][1] == 1 and calls[2][1] == 100


def test_refusals_come_before_the_first_search() -> None:
    """No result is lost to a problem that comes later."""
    seen: list[Any] = []
    problems = [generate("cvrp", 20, seed=1)[0], generate("pcvrptw", 20, seed=1)[0]]
    with pytest.raises(NdsError, match="no model for PCVRPTW"):
        solve_set(problems, iterations=1, ruin="policy", chains=1, rollouts=2, callback=seen.append)
    assert seen == []


def test_an_interrupt_keeps_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that comes while a batch is checked."""
    checked: list[Any] = []

    def check(problem: Any, solution: Any) -> Any:
        checked.append(problem)
        if len(checked) == 2:
            raise KeyboardInterrupt
        return plain_check(problem, solution)

    plain_check = solver.check
    monkeypatch.setattr(solver, "check", check)
    first, second = solve_set(generate("cvrp", 12, count=2, seed=1), iterations=2, seed=1, together=1)
    assert isinstance(first, Result) and isinstance(second, NoSolutionError)


def test_bad_requests() -> None:
    with pytest.raises(NdsError, match="together must be at least 1, got 0"):
        solve_set(generate("cvrp", 5), iterations=1, together=0)
    with pytest.raises(NdsError, match="over which it cools; patience, target and stop only end it earlier"):
        solve_set(generate("cvrp", 5))
    with pytest.raises(NdsError, match="'init'"):
        solve_set(generate("cvrp", 5), iterations=1, init=None)


def test_a_generator_of_problems() -> None:
    problems = generate("cvrp", 12, count=2, seed=1)
    costs = [result.cost for result in solve_set(problems, **SHORT) if isinstance(result, Result)]
    given = solve_set((problem for problem in problems), **SHORT)
    assert [result.cost for result in given if isinstance(result, Result)] == costs and len(costs) == 2
