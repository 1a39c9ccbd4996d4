"""The five verbs on the CPU: what goes in is checked, what comes out agrees with `check` and with itself."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from clocks import FakeClock
from ndsvrp import EngineError, Problem, Solution, check
from ndsvrp.engine import cpu
from ndsvrp.engine.base import Recipe
from ndsvrp.engine.cpu import CpuEngine, CpuState
from ndsvrp.engine.shared import native_recipe, tour_of
from ndsvrp.search.start import improve_start, start
from parity.problems import SOURCES, VARIANTS, random_problem

STRINGS = Recipe(rule="string", sorted_orders=True, all_routes=True, blink=0.01)
RELATED = Recipe(rule="related", removals=8, orders=2)


def uniform(customers: int, seed: int = 0, **fields: Any) -> Problem:
    rng = np.random.default_rng(seed)
    return Problem(
        **{
            "coordinates": rng.random((customers + 1, 2)),
            "demand": np.r_[0, rng.integers(1, 10, customers)],
            "capacity": 40,
        }
        | fields
    )


def temperatures(problem: Problem, chains: int, steps: int, temperature: float = 0.02) -> np.ndarray:
    return np.full((chains, steps), temperature * problem.side())


def everything(engine: CpuEngine, state: CpuState) -> list[Any]:
    solutions = [engine.export(state, i, best=best) for i in range(len(state.problem_of)) for best in (True, False)]
    return [solutions, state.stats().costs.tolist(), state.stats().best_costs.tolist()]


def assert_costs_are_true(engine: CpuEngine, state: CpuState) -> None:
    """What the engine says a solution costs is what the judge says, and nothing but a fleet's limit is broken."""
    for best, costs in ((False, state.stats().costs), (True, state.stats().best_costs)):
        for chain, index in enumerate(state.problem_of):
            problem = state.problems[index]
            report = check(problem, engine.export(state, chain, best=best))
            missing = [c for c in report.unserved if problem.required[c]]
            assert {violation.kind for violation in report.violations} <= {"unserved"}
            if best:
                assert state.stats().missing[chain] == len(missing)
            if missing:
                assert problem.vehicles is not None
                assert costs[chain] > report.cost
            elif problem.metric.is_integer:
                assert costs[chain] == report.cost
            else:
                assert costs[chain] == pytest.approx(report.cost, rel=1e-6, abs=1e-7 * problem.side())


# --- start -------------------------------------------------------------------------------------


def test_start_without_rounds_is_one_route_each() -> None:
    problem, engine = uniform(9), CpuEngine()
    state = start(engine, [problem], [0, 0], 1, rounds=0)
    assert engine.export(state, 1).routes == tuple((c,) for c in range(1, 10))
    assert engine.export(state, 0, best=False) == engine.export(state, 0)
    assert state.stats().missing.tolist() == [0, 0]
    assert_costs_are_true(engine, state)


def test_rounds_improve_the_start() -> None:
    problem, engine = uniform(60), CpuEngine()
    costs = [start(engine, [problem], [0, 0], 1, rounds=rounds).stats().costs for rounds in (0, 10, 100)]
    assert np.all(costs[0] > costs[1])
    assert np.all(costs[1] > costs[2])
    assert costs[2][0] != costs[2][1], "chains start apart"


def test_start_leaves_out_whom_nobody_can_serve() -> None:
    problem = Problem(
        coordinates=[[0, 0], [1, 0], [5, 0]], demand=[0, 0.5, 0.5], capacity=1.5,
        windows=[[0, 4], [0, 4], [0, 1]], prize=[0, 3, 100],
    )  # fmt: skip
    engine = CpuEngine()
    state = start(engine, [problem], [0], 1, rounds=3)
    assert engine.export(state, 0).routes == ((1,),)
    daring = Recipe(rule="random", removals=2, all_routes=True, open_route=1.0)
    engine.improve(state, daring, None, np.full((1, 50), 9.0), 1, 1)
    assert 2 not in {c for route in engine.export(state, 0, best=False).routes for c in route}
    assert_costs_are_true(engine, state)


def test_start_keeps_to_the_fleet() -> None:
    for seed in range(5):
        problem = uniform(50, seed, capacity=50)
        fewest = int(np.ceil(problem.demand.sum() / 50))
        problem = problem.replace(vehicles=fewest + 2)
        engine = CpuEngine()
        state = start(engine, [problem], [0, 0], seed, rounds=20)
        for chain in (0, 1):
            assert len(engine.export(state, chain).routes) <= fewest + 2
        assert_costs_are_true(engine, state)


def test_start_counts_whom_the_fleet_leaves_out() -> None:
    problem = Problem(coordinates=np.eye(5, 2), demand=[0, 2, 2, 2, 2], capacity=3, vehicles=2)
    engine = CpuEngine()
    state = start(engine, [problem], [0], 0, rounds=3)
    assert state.stats().missing.tolist() == [2]
    assert len(engine.export(state, 0).routes) == 2


def test_start_from_a_solution() -> None:
    problem, engine = uniform(6, capacity=100), CpuEngine()
    init = Solution([(3, 1), (6, 5, 4, 2)])
    state = start(engine, [problem], [0, 0], 1, init=init)
    assert [engine.export(state, i, best=best) for i in (0, 1) for best in (True, False)] == [init] * 4
    assert_costs_are_true(engine, state)


def test_start_ends_at_the_deadline() -> None:
    problem, engine = uniform(40), CpuEngine()
    state = engine.start([problem], [0, 0])
    singletons = state.stats().costs
    began, worked = time.perf_counter(), time.process_time()
    improve_start(engine, state, 1, 10**5, deadline=began + 0.05)
    assert time.perf_counter() - began >= 0.05
    assert time.process_time() - worked < 2  # 100,000 rounds take longer
    assert np.all(state.stats().costs < singletons)
    assert_costs_are_true(engine, state)


def test_problems_of_different_kinds_and_sizes_in_one_batch() -> None:
    """Working memory is shared between them: nothing of one may show up in another."""
    problems = [
        random_problem(seed, variant, source, vehicles=seed % 3 == 0)
        for seed, (variant, source) in enumerate((v, s) for v in VARIANTS for s in SOURCES)
    ]
    which = np.random.default_rng(0).permutation(np.arange(len(problems)))
    engine = CpuEngine(threads=2)
    state = start(engine, problems, which, 3, rounds=4)
    temperature = np.array([[0.05 * problems[i].side()] * 40 for i in which])
    for iteration, recipe in enumerate((STRINGS, RELATED)):
        engine.improve(state, recipe, None, temperature, 3, iteration)
    assert_costs_are_true(engine, state)
    view = engine.view(state)
    largest = max(problem.customers for problem in problems)
    assert view.route.shape == (len(which), largest + 1)
    for chain, index in enumerate(which):
        assert np.all(view.route[chain, problems[index].customers + 1 :] == -1)


# --- view and export ---------------------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
def test_view_shows_what_export_gives(variant: str) -> None:
    problem = random_problem(5, variant, "none", customers=30, layout="uniform", scale=1000.0)
    engine = CpuEngine()
    state = start(engine, [problem], [0, 0, 0], 2, rounds=3)
    engine.improve(state, STRINGS, None, temperatures(problem, 3, 50), 2, 1)
    view = engine.view(state)
    for chain in range(3):
        previous, following, number = np.zeros(31, int), np.zeros(31, int), np.full(31, -1)
        for r, route in enumerate(engine.export(state, chain, best=False).routes):
            for before, c, after in zip((0, *route), route, (*route[1:], 0), strict=False):
                previous[c], following[c], number[c] = before, after, r
        assert view.previous[chain].tolist() == previous.tolist()
        assert view.next[chain].tolist() == following.tolist()
        assert view.route[chain].tolist() == number.tolist()
    assert view.route.dtype == np.int32


def test_tour_of() -> None:
    assert tour_of(Solution([(3, 1), (2,)])).tolist() == [3, 1, 0, 2, 0]
    assert tour_of(Solution([])).tolist() == []


# --- rebuild -----------------------------------------------------------------------------------


def test_given_removals_are_checked() -> None:
    problem, engine = uniform(5), CpuEngine()
    state, cold = start(engine, [problem], [0], 1, rounds=0), np.zeros((1, 2))
    two = Recipe(removals=2)
    good = np.array([[[1, 2], [5, 4]]])
    engine.improve(state, two, good, cold, 0, 0)
    assert state.stats().made == 2
    for removed, message in [
        (np.array([[[0, 2], [5, 4]]]), "between 1 and N"),
        (np.array([[[1, 2], [6, 4]]]), "between 1 and N"),
        (np.array([[[1, 2], [-1, 4]]]), "between 1 and N"),
        (np.array([[[1, 2], [0, 0]]]), "between 1 and N"),
        (np.array([[[1, 2], [4, 4]]]), "removed twice"),
        (np.array([[[1, 2]]]), r"shape \(1, 1, 2\), expected \(1, 2, 2\)"),
        (np.array([[1, 2], [5, 4]]), "shape"),
        (None, "either a rule or the customers"),
    ]:
        for call in (
            lambda removed=removed: engine.improve(state, two, removed, cold, 0, 0),
            lambda removed=removed: engine.evaluate(state, two, removed, 2, 0, 0, False),
        ):
            with pytest.raises(EngineError, match=message):
                call()
    with pytest.raises(EngineError, match="either a rule or the customers"):
        engine.improve(state, Recipe(rule="random", removals=2), good, cold, 0, 0)
    assert_costs_are_true(engine, state)


def test_lists_of_fewer_customers() -> None:
    """Zeros at the end of a list stand for none."""
    problem, engine = uniform(30), CpuEngine()
    state = start(engine, [problem], [0], 1, rounds=3)
    padded = np.array([[[7, 0, 0, 0], [4, 9, 2, 0], [3, 5, 8, 13]]])
    changes = engine.evaluate(state, Recipe(removals=4), padded, 3, 0, 0, False)
    for number, length in enumerate((1, 3, 4)):
        alone = engine.evaluate(
            state, Recipe(removals=length), padded[:, number : number + 1, :length], 1, 0, 0, False
        )  # fmt: skip
        assert alone[0, 0] == changes[0, number]


def test_cold_steps_never_worsen() -> None:
    problem, engine = uniform(50), CpuEngine()
    state = start(engine, [problem], [0], 1, rounds=0)
    costs = [state.stats().costs[0]]
    for iteration in range(20):
        engine.improve(state, RELATED, None, np.zeros((1, 10)), 1, iteration)
        costs.append(state.stats().costs[0])
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] < 0.7 * costs[0]
    assert state.stats().best_costs[0] == costs[-1]


def test_deadline_ends_a_step_unfinished(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, engine = uniform(3000), CpuEngine()
    state = engine.start([problem], [0])
    before = engine.export(state, 0, best=False)
    everybody = Recipe(rule="random", removals=3000, all_routes=True, orders=64)  # takes seconds
    with monkeypatch.context() as patch:
        clock = FakeClock(patch, tick=0.0)  # the step begins, however long that takes
        began = time.process_time()  # not by the clock: others use the processor, too
        engine.improve(state, everybody, None, np.zeros((1, 1)), 1, 1, deadline=clock.now + 0.2)
        assert time.process_time() - began < 1.0
    assert state.made == 1
    assert engine.export(state, 0, best=False) == before
    # Nothing is left behind: the next steps are those of a chain that was never interrupted.
    fresh = engine.start([problem], [0])
    for chains in (state, fresh):
        engine.improve(chains, RELATED, None, np.zeros((1, 50)), 1, 2)
        assert chains.made == 50
    assert engine.export(state, 0) == engine.export(fresh, 0)


def test_a_deadline_in_the_past_makes_no_step() -> None:
    problem, engine = uniform(40), CpuEngine()
    state = engine.start([problem], [0])
    engine.improve(state, RELATED, None, np.zeros((1, 9)), 1, 1, deadline=time.perf_counter() - 1)
    assert state.stats().made == 0


@pytest.mark.parametrize(("variant", "source"), [("cvrp", "none"), ("vrptw", "dimacs"), ("pcvrptw", "asymmetric")])
def test_threads_and_slices_do_not_matter(variant: str, source: str) -> None:
    problem = random_problem(21, variant, source, customers=60, layout="uniform", scale=1000.0)

    def run(threads: int, pace: float) -> list[Any]:
        engine = CpuEngine(threads=threads)
        state = start(engine, [problem], np.zeros(5), 4, rounds=5)
        for iteration, recipe in enumerate((STRINGS, RELATED)):
            engine._pace = pace  # how many steps go into the first slice
            engine.improve(state, recipe, None, temperatures(problem, 5, 300), 4, iteration)
        engine.evaluate(state, RELATED, None, 20, 4, 9, keep_best=True)
        return everything(engine, state)

    alone = run(1, 0.0)
    assert run(2, 0.0) == alone
    assert run(3, 1e-9) == alone  # all steps at once
    assert run(2, 1.0) == alone  # one by one to begin with
    one_by_one = CpuEngine()
    state = start(one_by_one, [problem], np.zeros(5), 4, rounds=5)
    chains, native = state.chains, native_recipe
    for iteration, recipe in enumerate((STRINGS, RELATED)):
        ticks = np.ascontiguousarray(temperatures(problem, 5, 300) * state.per_unit[:, None])
        for step in range(300):
            chains.improve(native(recipe), None, ticks, step, step + 1, 4, iteration, 1, None)
    one_by_one.evaluate(state, RELATED, None, 20, 4, 9, keep_best=True)
    assert everything(one_by_one, state) == alone


def test_seed_chain_and_iteration_matter() -> None:
    problem, engine = uniform(40), CpuEngine()

    def run(seed: int, iteration: int) -> list[Any]:
        state = start(engine, [problem], [0, 0], 0, rounds=0)
        engine.improve(state, STRINGS, None, temperatures(problem, 2, 50), seed, iteration)
        return [engine.export(state, chain).routes for chain in (0, 1)]

    assert run(1, 1) == run(1, 1)
    seen = [routes for seed, iteration in ((1, 1), (1, 2), (2, 1)) for routes in run(seed, iteration)]
    assert len(set(seen)) == 6


# --- exchange ----------------------------------------------------------------------------------


def test_exchange_goes_on_from_another_chain() -> None:
    problem, engine = uniform(30), CpuEngine()
    state = start(engine, [problem], [0, 0, 0], 1, rounds=10)
    engine.improve(state, RELATED, None, temperatures(problem, 3, 50, 0.2), 1, 1)
    before, costs = [engine.export(state, i, best=False) for i in range(3)], state.stats().costs
    lowest, middle, worst = np.argsort(costs)
    engine.exchange(state, np.array([(costs[lowest] + costs[middle]) / 2 - costs[lowest]]), 1, 1)
    assert [engine.export(state, i, best=False) for i in range(3)] == [before[lowest]] * 3
    engine.improve(state, RELATED, None, temperatures(problem, 3, 50), 1, 2)
    assert_costs_are_true(engine, state)
    assert engine.export(state, 0, best=False) != engine.export(state, 2, best=False)
    assert costs[worst] > costs[middle] > costs[lowest]


def test_exchange_forgets_no_best() -> None:
    """The best of the chain that is replaced stays, unless it takes on a better one."""
    problem, engine = uniform(30), CpuEngine()
    state = start(engine, [problem], [0, 0], 1, rounds=10)
    engine.improve(state, RELATED, None, np.concatenate([np.zeros((1, 40)), temperatures(problem, 1, 40, 5.0)]), 1, 1)
    cold, hot = (engine.export(state, i) for i in range(2))
    engine.improve(
        state, RELATED, None, np.concatenate([temperatures(problem, 1, 9, 0.3), temperatures(problem, 1, 9, 9.0)]), 1, 2
    )
    now, best = state.stats().costs.tolist(), state.stats().best_costs.tolist()
    assert best[1] < now[0] < now[1], "the test needs a chain that has seen better than what it is given"
    engine.exchange(state, np.zeros(1), 1, 1)
    assert state.stats().costs.tolist() == [now[0], now[0]]
    assert state.stats().best_costs.tolist() == best
    assert [engine.export(state, 0), engine.export(state, 1)] == [cold, hot]
    assert_costs_are_true(engine, state)

    fresh = start(engine, [problem], [0, 0], 1, rounds=0)
    engine.improve(fresh, RELATED, None, np.concatenate([np.zeros((1, 40)), np.full((1, 40), -1.0)]), 1, 1)
    engine.exchange(fresh, np.zeros(1), 1, 1)
    assert fresh.stats().best_costs[1] == fresh.stats().best_costs[0]
    assert engine.export(fresh, 1) == engine.export(fresh, 0)
    assert_costs_are_true(engine, fresh)


# --- costs -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variant", "source", "limited"),
    [
        ("cvrp", "none", False),
        ("cvrp", "round", True),
        ("vrptw", "none", False),
        ("vrptw", "dimacs", False),
        ("pcvrp", "exact", False),
        ("pcvrptw", "none", True),
        ("vrptw", "durations", False),
    ],
)
def test_costs_never_drift(variant: str, source: str, limited: bool) -> None:
    """200,000 steps, then the judge."""
    problem = random_problem(31, variant, source, customers=60, layout="uniform", scale=1000.0, vehicles=limited)
    engine = CpuEngine(threads=2)
    state = start(engine, [problem], [0, 0], 5, rounds=2)
    for iteration in range(10):
        temperature = temperatures(problem, 2, 10_000, [0.02, 0.5][iteration // 9])
        engine.improve(state, (STRINGS, RELATED)[iteration % 2], None, temperature, 5, iteration)
    assert np.any(state.stats().costs > state.stats().best_costs)
    assert_costs_are_true(engine, state)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("source", SOURCES)
def test_costs_are_true_for_every_kind(variant: str, source: str) -> None:
    for seed in range(12):
        problem = random_problem(400 + seed, variant, source, vehicles=seed % 3 == 0)
        engine = CpuEngine()
        state = start(engine, [problem], [0], seed, rounds=3)
        for iteration, recipe in enumerate((STRINGS, RELATED)):
            engine.improve(state, recipe, None, temperatures(problem, 1, 100, 0.1), seed, iteration)
        assert_costs_are_true(engine, state)


# --- savings -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("variant", "source"), [(v, s) for v in VARIANTS for s in SOURCES])
def test_savings_are_feasible(variant: str, source: str) -> None:
    """For every combination of constraints and distances, and however little time there is."""
    problem, engine = random_problem(3, variant, source, customers=40, limits=True), CpuEngine()
    state = engine.start([problem], [0, 0])
    alone = state.stats().costs[0]
    for deadline in (None, time.perf_counter() - 1.0):
        assert engine.construct(state, deadline)
        assert_costs_are_true(engine, state)
        first, second = (engine.export(state, chain) for chain in (0, 1))
        assert first == second
    engine.construct(state, None)
    assert problem.vehicles is not None or state.stats().costs[0] <= alone


def test_savings_join_routes() -> None:
    problem = uniform(2000)
    engine = CpuEngine()
    state = engine.start([problem], [0])
    alone = state.stats().costs[0]
    engine.construct(state, None)
    assert state.stats().costs[0] < 0.35 * alone
    routes = engine.export(state, 0).routes
    loads = [problem.demand[list(route)].sum() for route in routes]
    assert np.mean(loads) > 0.9 * problem.capacity
    assert len(routes) < 1.1 * problem.demand.sum() / problem.capacity
    few = problem.replace(vehicles=100)
    state = engine.start([few], [0])
    engine.construct(state, None)
    assert len(engine.export(state, 0).routes) == 100


# --- times that exceed 32 bits -----------------------------------------------------------------


@pytest.mark.parametrize("limits", [{}, {"max_duration": 60.0}])
def test_stripped_routes_far_from_the_triangle_inequality(limits: dict[str, float]) -> None:
    """Without the others, ten legs of a route take 50 each: their sum would not fit into 32 bits."""
    n = 21
    duration = np.full((n, n), 50.0)
    duration[np.arange(n - 1), np.arange(1, n)] = 1.0  # from each to the next
    duration[n - 1, 0] = duration[0, 1] = 1.0
    duration[0, :] = duration[:, 0] = 1.0
    problem = Problem(
        distance=np.ones((n, n)) - np.eye(n), duration=duration, demand=np.r_[0, np.ones(n - 1)], capacity=n,
        windows=np.tile([0.0, 60.0], (n, 1)), **limits,
    )  # fmt: skip
    engine = CpuEngine()
    state = engine.start([problem], [0], Solution([range(1, n)]))
    odd = np.arange(1, n, 2, dtype=np.int32)[None, None].repeat(1, axis=1)
    engine.improve(state, Recipe(removals=odd.shape[2]), odd, np.full((1, 1), 1e9), 1, 1)
    report = check(problem, engine.export(state, 0, best=False))
    assert report.feasible and engine.export(state, 0, best=False).routes == (tuple(range(1, n)),)


@pytest.mark.parametrize("variant", ["cvrp", "pcvrptw"])
@pytest.mark.parametrize("source", ["none", "dimacs", "asymmetric"])
def test_a_table_of_lengths_changes_nothing(variant: str, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = random_problem(3, variant, source)
    costs = []
    for most in (0, problem.customers):
        monkeypatch.setattr(cpu, "TABULATED", most)
        engine = CpuEngine()
        state = engine.start([problem], [0])
        engine.improve(state, STRINGS, None, np.full((1, 200), problem.side() * 0.03), 1, 1)
        costs.append((state.stats().costs.tolist(), engine.export(state, 0)))
    assert costs[0] == costs[1]
