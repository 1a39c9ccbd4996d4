"""Searches in islands: groups that exchange apart, and generations of children."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu.emulated import EmulatedDevice
from ndsvrp import CallbackError, NdsError, Problem, Progress, Settings, check, generate, solve
from ndsvrp.engine import shared
from ndsvrp.engine.base import Engine, Recipe
from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.engine.cuda import CudaEngine
from ndsvrp.errors import EngineError
from ndsvrp.search.islands import IslandSearch
from ndsvrp.search.population import Population
from ndsvrp.search.start import start
from ndsvrp.search.stopping import Budget

SMALL: dict[str, Any] = {
    "solver": "nds", "ruin": "related", "device": "cpu", "chains": 8, "islands": 4, "rollouts": 20, "child_steps": 2,
}  # fmt: skip
OF_ISLANDS = Settings(ruin="related", chains=4, islands=2, rollouts=10, orders=1, start_rounds=1, anneal_share=0.5)


def engines() -> list[Any]:
    gpu: Any = EmulatedDevice()
    return [CpuEngine(), pytest.param(CudaEngine(placement="global", device=gpu), marks=pytest.mark.emulator)]


def test_groups_are_consecutive_chains_of_a_problem() -> None:
    """Problem 0 has chains 0, 2, 3 and 5, problem 1 has 1 and 4."""
    problem_of = np.array([0, 1, 0, 0, 1, 0], np.int32)
    assert shared.groups_of(problem_of, 1).tolist() == problem_of.tolist()
    assert shared.groups_of(problem_of, 2).tolist() == [0, 2, 0, 1, 3, 1]
    with pytest.raises(EngineError, match=r"4 groups do not divide \[2, 4\] chains"):
        shared.groups_of(problem_of, 4)


@pytest.mark.parametrize("engine", engines(), ids=lambda engine: engine.name)
def test_groups_exchange_apart(engine: Engine) -> None:
    """Chains 0 and 1 are improved, 2 and 3 are not: at reach 0 each group goes on from its own best chain."""
    problem = generate("cvrp", 12, seed=3)[0]
    state: Any = start(engine, [problem], [0] * 4, 1, rounds=0)
    temperatures = np.repeat([[-1e9], [0.0], [-1e9], [1e9]], 4, axis=1)
    engine.improve(state, Recipe(rule="random", removals=4, all_routes=True), None, temperatures, 1, 1)
    before = state.stats().costs
    assert before[1] < before[2] and len(set(before.tolist())) == 3
    engine.exchange(state, np.zeros(1), 1, 1, groups=2)
    lowest = [before[:2].min()] * 2 + [before[2:].min()] * 2
    assert state.stats().costs.tolist() == lowest
    engine.exchange(state, np.zeros(1), 1, 2)
    assert state.stats().costs.tolist() == [before.min()] * 4


@pytest.mark.parametrize("engine", engines(), ids=lambda engine: engine.name)
def test_tours_and_restart(engine: Engine) -> None:
    """Corners of a square of side 1, the depot in one of them: the best way round takes 4."""
    problem = Problem(coordinates=[[0, 0], [1, 0], [1, 1], [0, 1]], demand=[0, 1, 1, 1], capacity=3)
    other = Problem(coordinates=[[0, 0], [0, 2], [2, 0]], demand=[0, 1, 1], capacity=1, prize=[0, 9, 9])
    state: Any = engine.start([problem, other], [0, 1, 0])
    assert [each.tolist() for each in engine.tours(state)] == [[1, 0, 2, 0, 3, 0], [1, 0, 2, 0], [1, 0, 2, 0, 3, 0]]
    tours = [np.array(tour, np.int32) for tour in ([1, 2, 3, 0], [2, 0], [3, 0, 1, 2, 0])]
    engine.restart(state, tours)
    assert [each.tolist() for each in engine.tours(state)] == [each.tolist() for each in tours]
    assert [engine.export(state, 2, best=best).routes for best in (True, False)] == [((3,), (1, 2))] * 2
    costs = [4.0, 13.0, 4.0 + 2**0.5]  # 1 and 2 before the depot: 1 + 1 + sqrt 2, and 3 alone: 2
    assert state.stats().costs == pytest.approx(costs, abs=1e-6)
    assert state.stats().best_costs == pytest.approx(costs, abs=1e-6)


def found(engine: Any, problems: list[Problem], settings: Settings = OF_ISLANDS, iterations: int = 12) -> list[Any]:
    search = IslandSearch(problems, engine, settings, Budget(iterations=iterations), 1)
    assert search.run() == "iterations"
    assert search.iteration == iterations
    return [(best, [(p.iteration, p.cost) for p in trace])
            for best, trace in zip(search.best(), search.traces, strict=True)]  # fmt: skip


@pytest.mark.emulator
@pytest.mark.parametrize("variant", ["cvrp", "pcvrptw"])
def test_a_gpu_finds_the_routes_of_a_cpu(variant: str) -> None:
    """In a batch of two, too."""
    problems = list(generate(variant, 14, count=2, seed=5))
    gpu: Any = EmulatedDevice()
    cuda = CudaEngine(placement="global", device=gpu)
    assert found(cuda, problems) == [each for problem in problems for each in found(CpuEngine(), [problem])]
    names = {name for name, *_ in gpu.launched}
    assert {"export_chains", "start_chains", "replace_chains"} <= names


def test_generations_have_the_steps_that_were_asked_for() -> None:
    """60 of 100 iterations are for children. A child has 4 x 50 steps, in iterations of 20: 6 generations of 10."""
    problem = generate("cvrp", 50, seed=1)[0]
    settings = Settings(ruin="related", chains=4, islands=2, rollouts=20, child_steps=4, anneal_share=0.4)
    search = IslandSearch([problem], CpuEngine(), settings, Budget(iterations=100), 1)
    search.iteration = 40
    assert search._generations() == pytest.approx([0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
    search.iteration = 96  # less than half a generation is left: one all the same
    assert search._generations() == pytest.approx([0.96, 1.0])


def test_temperatures_of_islands_and_children() -> None:
    """Annealing takes the whole schedule in its half; each of two generations goes from warm to cold."""
    problem = generate("cvrp", 20, seed=1)[0]
    settings = Settings(
        ruin="related",
        chains=2,
        islands=2,
        rollouts=10,
        child_steps=5,
        anneal_share=0.5,
        hot=0.1,
        cold=0.001,
        warm=0.01,
    )
    search = IslandSearch([problem], CpuEngine(), settings, Budget(iterations=40), 1)
    seen: list[float] = []
    reconstruct = search._reconstruct

    def note(state: Any, temperatures: Any) -> None:
        seen.append(float(temperatures[0]) / problem.side())
        reconstruct(state, temperatures)

    search._reconstruct = note  # type: ignore[method-assign]
    search.run()
    assert seen[:20] == pytest.approx([0.1 * 0.01 ** (i / 20) for i in range(20)])
    assert seen[20:] == pytest.approx(2 * [0.01 * 0.1 ** (i / 10) for i in range(10)])


def test_the_first_chain_has_the_best_solution() -> None:
    problem = generate("cvrp", 40, seed=2)[0]
    search = IslandSearch([problem], CpuEngine(), OF_ISLANDS, Budget(iterations=4), 1)
    search.run()
    tours = [np.array([*range(1, 41), 0], np.int32), *search.engine.tours(search.state)[:2]]
    population = Population(40, np.array([1.0, 5.0, 7.0]), tours)
    children = search._children([population])
    assert len(children) == 4
    assert children[0].tolist() == tours[0].tolist()
    assert all(sorted(child[child > 0].tolist()) == list(range(1, 41)) for child in children)


def test_children_improve_what_islands_have_found() -> None:
    """More than one percent on each of four instances."""
    for problem in generate("cvrp", 100, count=4, seed=11):
        result = solve(problem, iterations=100, seed=1, anneal_share=0.1, **SMALL | {"child_steps": 10})
        annealed = min(point.cost for point in result.trace if point.iteration <= 10)
        assert result.cost < 0.99 * annealed


def test_the_fleet_is_limited_after_a_long_iteration() -> None:
    """One iteration leads from the start beyond the annealing, and with it beyond the share that ignores the fleet."""
    problem = generate("pcvrp", 60, seed=3)[0].replace(vehicles=3)
    settings = Settings(
        chains=4, islands=2, rollouts=20, orders=1, scope="all", start_rounds=0, anneal_share=0.5, free_fleet=0.3
    )
    search = IslandSearch([problem], CpuEngine(), settings, Budget(iterations=2), 1)
    search.run()
    assert not search._ignores_fleet
    assert check(problem, search.best()[0]).feasible


def test_time_limits_and_regions() -> None:
    """Of 8 chains in 2 regions there are 4 solutions: 2 islands."""
    problem = generate("cvrp", 60, seed=2)[0]
    result = solve(problem, time=0.4, seed=1, **SMALL | {"regions": 2, "islands": 2})
    assert result.stopped == "time" and result.seconds > 0.3
    assert check(problem, result.solution).feasible


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"islands": 1}, "islands are at least 2 and divide the 8 solutions, got 1"),
        ({"islands": 3}, "islands are at least 2 and divide the 8 solutions, got 3"),
        ({"islands": 8, "regions": 2}, "islands are at least 2 and divide the 4 solutions, got 8"),
        ({"islands": 4, "population": 4}, "islands and population are two ways to the same"),
        ({"islands": -1}, "islands must be between 0 and"),
    ],
)
def test_wrong_settings(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(NdsError, match=message):
        Settings(**wrong)


def test_users_end_a_search_in_either_part() -> None:
    """By a callback that returns False, by a target, and by an exception, which keeps the best solution."""
    problem = generate("cvrp", 30, seed=2)[0]
    for last in (3, 17):
        seen: list[int] = []

        def tell(progress: Progress, seen: list[int] = seen, last: int = last) -> bool:
            seen.append(progress.iteration)
            return progress.iteration < last

        result = solve(problem, iterations=20, seed=1, callback=tell, anneal_share=0.5, **SMALL)
        assert (result.stopped, seen) == ("callback", list(range(last + 1)))
        assert result.cost == pytest.approx(result.trace[-1].cost)
    good = next(point for point in result.trace if point.iteration > 10)  # of a child
    reached = solve(problem, iterations=20, seed=1, target=good.cost, anneal_share=0.5, **SMALL)
    assert (reached.stopped, reached.iterations) == ("target", good.iteration)

    def fail(progress: Progress) -> None:
        if progress.iteration == 15:
            raise ValueError("no more")

    with pytest.raises(CallbackError) as caught:
        solve(problem, iterations=20, seed=1, callback=fail, **SMALL)
    kept = caught.value.result
    assert kept is not None
    assert check(problem, kept.solution).cost == pytest.approx(kept.cost)


def test_iterations_ahead_are_reported() -> None:
    """An engine that runs ahead, as a GPU does, tells of the same iterations, costs and reconstructions."""
    problem, courses = generate("cvrp", 60, seed=1)[0], []
    for runs_ahead in (False, True):
        seen: list[int] = []
        engine = CpuEngine(runs_ahead=runs_ahead)
        told = lambda progress, seen=seen: seen.append(progress.iteration)  # noqa: E731
        search = IslandSearch([problem], engine, OF_ISLANDS, Budget(iterations=12), 1, callback=told)
        search.run()
        courses.append((seen, search.reconstructions, [(point.iteration, point.cost) for point in search.traces[0]]))
    assert courses[0] == courses[1]
    assert courses[0][:2] == (list(range(13)), 12 * 4 * 10)


def test_time_may_be_over_when_annealing_ends() -> None:
    problem = generate("cvrp", 60, seed=1)[0]
    search = IslandSearch([problem], CpuEngine(), OF_ISLANDS, Budget(seconds=60.0), 1)
    iterate = search._iterate

    def last(*arguments: Any) -> str | None:
        stopped = iterate(*arguments)
        search.budget.began -= 60.0  # the limit passes before the next look at the clock
        return stopped

    search._iterate = last  # type: ignore[method-assign]
    assert search.run() == "time"
    assert check(problem, search.best()[0]).feasible


def test_islands_differ_after_a_warm_start() -> None:
    problem = generate("cvrp", 40, seed=2)[0]
    good = solve(problem, iterations=60, seed=1, device="cpu").solution
    search = IslandSearch([problem], CpuEngine(), OF_ISLANDS, Budget(iterations=20), 1, init=good)
    state, _ = search._begin()
    search._iterate(state, np.array([10.0]), 2)
    (population,) = search._populations(state)
    assert check(problem, good).cost == pytest.approx(population.costs.min())
    assert not np.array_equal(population.tours[0], population.tours[1])
