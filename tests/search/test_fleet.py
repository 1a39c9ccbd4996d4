"""Searches that ignore a limit on vehicles at first."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ndsvrp import Problem, Progress, Solution, check, solve
from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.search.asa import Search
from ndsvrp.search.fleet import may_ignore_fleet, within_fleet
from ndsvrp.search.islands import IslandSearch
from ndsvrp.search.presets import hybrid
from ndsvrp.search.stopping import Budget

BOTH: Any = pytest.mark.parametrize(
    "how", [{}, {"chains": 4, "islands": 2, "child_steps": 3}], ids=["chains", "islands"]
)


def prizes(vehicles: int | None = 2, n: int = 40) -> Problem:
    """Return customers that all pay, so that a search without the limit uses many vehicles."""
    random = np.random.default_rng(4)
    return Problem(
        demand=np.r_[0.0, np.ones(n)], capacity=5.0, coordinates=random.random((n + 1, 2)),
        prize=np.r_[0.0, np.full(n, 2.0)], vehicles=vehicles,
    )  # fmt: skip


def test_routes_that_save_most_are_kept() -> None:
    problem = Problem(
        demand=np.ones(5) - np.eye(5)[0], capacity=2.0, vehicles=2, prize=np.array([0.0, 3.0, 3.0, 9.0, 2.5]),
        coordinates=np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, -1.0]]),
    )  # fmt: skip
    whole = Solution([[4], [1, 2], [3]])  # they save 0.5, 2 and 7
    assert within_fleet(problem, whole) == Solution([[1, 2], [3]])
    assert within_fleet(problem.replace(vehicles=3), whole) == whole
    assert within_fleet(problem.replace(vehicles=None), whole) == whole


def test_only_where_no_customer_is_required() -> None:
    problem = prizes()
    assert problem.prize is not None
    assert may_ignore_fleet(problem)
    assert not may_ignore_fleet(problem.replace(vehicles=None))
    assert not may_ignore_fleet(problem.replace(prize=np.where(np.arange(41) == 7, 0.0, problem.prize)))
    assert hybrid(problem).free_fleet == 0.3
    assert hybrid(problem.replace(vehicles=None)).free_fleet == 0.0


@BOTH
@pytest.mark.parametrize("share", [0.3, 1.0])
def test_every_solution_keeps_the_limit(share: float, how: dict[str, Any]) -> None:
    problem, seen = prizes(), []

    def note(progress: Progress) -> None:
        assert progress.incumbent is not None
        report = check(problem, progress.incumbent)
        seen.append((report.feasible, len(progress.incumbent.routes), report.cost == pytest.approx(progress.best)))

    result = solve(
        problem,
        iterations=10,
        seed=1,
        solver="hybrid",
        rollouts=20,
        free_fleet=share,
        callback=note,
        device="cpu",
        **how,
    )
    assert check(problem, result.solution).feasible
    assert result.cost == pytest.approx(result.trace[-1].cost)
    assert [point.cost for point in result.trace] == sorted((point.cost for point in result.trace), reverse=True)
    assert all(feasible and routes <= 2 for feasible, routes, _ in seen)
    assert all(same for *_, same in seen)


@BOTH
def test_it_continues_after_the_limit_is_back(how: dict[str, Any]) -> None:
    """The best solution with two vehicles of five customers each serves ten customers."""
    result = solve(prizes(), iterations=30, seed=1, solver="hybrid", rollouts=50, device="cpu", **how)
    assert [len(route) for route in result.solution.routes] == [5, 5]
    assert result.iterations == 30
    assert result.settings["free_fleet"] == 0.3


@BOTH
@pytest.mark.parametrize("end", ["patience", "callback", "iterations"])
def test_the_result_is_the_best_of_the_trace(end: str, how: dict[str, Any]) -> None:
    """Also if the search ends while the limit is ignored, where the best solution within it is another one."""
    for seed in range(12):
        more: dict[str, Any] = {
            "patience": {"patience": 3},
            "callback": {"callback": lambda progress: progress.iteration < 2},
            "iterations": {"free_fleet": 1.0},
        }[end]
        result = solve(prizes(3), iterations=12, seed=seed, solver="hybrid", rollouts=10, device="cpu", **more, **how)
        assert result.cost == pytest.approx(result.trace[-1].cost, rel=1e-6)


def test_patience_waits_for_the_limit() -> None:
    result = solve(prizes(3), iterations=40, patience=2, seed=1, solver="hybrid", rollouts=10, device="cpu")
    assert result.iterations > 0.3 * 40


def test_a_callback_ends_an_engine_that_runs_ahead() -> None:
    """Its answer may come from an iteration that is observed when the limit comes back."""
    engine = CpuEngine(runs_ahead=True)
    settings = replace(hybrid(prizes()), rollouts=10)
    search = Search([prizes()], engine, settings, Budget(iterations=10), 1, callback=lambda p: p.iteration < 3)
    assert search.run() == "callback"
    assert search.iteration <= 4


def test_an_interruption_at_the_switch_leaves_the_trace_feasible(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, problem = CpuEngine(), prizes()
    search = Search([problem], engine, replace(hybrid(problem), rollouts=10), Budget(iterations=10), 1)
    search.prepare()

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(CpuEngine, "start", interrupt)
    with pytest.raises(KeyboardInterrupt):
        search.run()
    search.note_best()
    (solution,) = search.best()
    assert check(problem, solution).feasible
    assert search.traces[0][-1].cost == pytest.approx(check(problem, solution).cost)


def test_islands_stay_apart_when_the_limit_is_back() -> None:
    """Each chain goes on from its own solution, cut to the fleet, but the first from the best one."""
    problem = prizes(3)
    settings = replace(hybrid(problem), chains=4, islands=2, rollouts=10, anneal_share=0.5)
    search = IslandSearch([problem], CpuEngine(), settings, Budget(iterations=10), 1)
    search.settings = replace(settings, free_fleet=1.0)
    search._anneal()
    assert search.state is not None
    before = [search.engine.export(search.state, chain, best=False) for chain in range(4)]
    assert all(len(solution.routes) > 3 for solution in before)
    assert len({str(solution.routes) for solution in before}) > 1
    (best,), state = search.best(), search._limit_fleet()
    after = [search.engine.export(state, chain, best=False) for chain in range(4)]
    assert after == [best, *(within_fleet(problem, solution) for solution in before[1:])]
