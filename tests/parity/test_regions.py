"""Searches in regions against the slow reference, with any number of threads and lanes."""

from __future__ import annotations

import itertools
import time
from typing import Any

import numpy as np
import pytest

import ndsvrp
from ndsvrp import EngineError, NdsError, Problem, Settings, Solution, check
from ndsvrp.engine.base import Recipe, Regions
from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.search.start import start
from parity.problems import SOURCES, VARIANTS, random_problem
from parity.reference import Chain, Numbers, chain_key
from parity.reference_regions import improve, split
from parity.test_parity import assert_same, set_price

RULES = ("string", "related", "random")
COMBINATIONS = list(itertools.product(VARIANTS, SOURCES))
CAPACITY = 4.0  # routes, about: a problem needs several for regions to matter


def several_routes(seed: int, variant: str, source: str, customers: int | None = None, **options: Any) -> Problem:
    problem = random_problem(seed, variant, source, customers=customers, **options)
    total = float(problem.demand.sum())
    return problem.replace(capacity=max(float(problem.demand.max()), total / CAPACITY, 1e-3))


def recipe_of(seed: int, regions: int) -> Recipe:
    return Recipe(
        rule=RULES[seed % 3], removals=[4, 9, 2][seed // 2 % 3], orders=1 + seed % 2, sorted_orders=seed % 4 > 1,
        all_routes=seed % 2 == 0, insert_near=[0, 2, 6][seed // 2 % 3], blink=[0.0, 0.1][seed // 3 % 2],
        open_cheaper=[0.0, 1.0][seed // 2 % 2], tails=[20, 0, 7][seed % 3], string_average=[10.0, 3.7][seed % 2],
        regions=regions,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("variant", "source"), COMBINATIONS)
@pytest.mark.parametrize(("limited", "limits"), [(False, False), (True, False), (False, True)])
def test_trajectories(variant: str, source: str, limited: bool, limits: bool) -> None:
    """Two chains in turns with and without regions, which leave each other whole solutions."""
    engine, used = CpuEngine(), 0
    for seed in range(6):
        problem = random_problem(seed, variant, source, vehicles=limited, limits=limits)
        if seed % 2 == 1:
            problem = several_routes(seed, variant, source, vehicles=limited, limits=limits)
        references = [Chain(Numbers(problem)) for _ in range(2)]
        state: Any = start(engine, [problem], [0, 0], seed, rounds=1)
        for number, reference in enumerate(references):
            reference.start(seed, number, 1, limited)
        recipe, temperatures = recipe_of(seed, 2 + seed % 3), np.full((2, 8), problem.side() * 0.03)
        ticks = [float(t) for t in temperatures[0] * Numbers(problem).per_unit]
        for iteration in (1, 2):
            if limited:
                price = problem.side() * [0.3, 0.002, np.inf][(seed + iteration) % 3]
                for reference in references:
                    set_price(engine, state, reference, price)
            engine.improve(state, recipe, None, temperatures, seed, iteration)
            for number, reference in enumerate(references):
                used += improve(reference, recipe, ticks, seed, iteration, number)
                assert_same(state, number, reference)
    assert used > 0


@pytest.mark.parametrize(("variant", "source", "limited"), [
    ("cvrp", "none", False), ("vrptw", "durations", False), ("pcvrp", "round", True), ("pcvrptw", "asymmetric", True),
])  # fmt: skip
def test_a_long_trajectory(variant: str, source: str, limited: bool) -> None:
    engine, seed = CpuEngine(), 7
    problem = several_routes(3, variant, source, customers=40, vehicles=limited, layout="uniform", scale=1000.0)
    state: Any = start(engine, [problem], [0], seed, rounds=1)
    reference = Chain(Numbers(problem))
    reference.start(seed, 0, 1, limited)
    recipe = Recipe(rule="string", sorted_orders=True, all_routes=True, blink=0.01, tails=20, regions=3)
    for iteration in range(4):
        temperatures = np.full((1, 20), problem.side() * 0.03 * 0.2**iteration)
        engine.improve(state, recipe, None, temperatures, seed, iteration)
        improve(reference, recipe, [float(t) for t in temperatures[0] * Numbers(problem).per_unit], seed, iteration, 0)
        assert_same(state, 0, reference)
    assert check(problem, engine.export(state, 0)).feasible or limited


@pytest.mark.parametrize(("variant", "source", "limited"), [
    ("cvrp", "none", False), ("vrptw", "durations", False), ("pcvrp", "round", True), ("pcvrptw", "none", False),
])  # fmt: skip
def test_given_removals(variant: str, source: str, limited: bool) -> None:
    """A function chooses for the parts. Customers of other parts in its lists are not removed."""
    engine, seed, random = CpuEngine(), 3, np.random.default_rng(1)
    problem = several_routes(2, variant, source, customers=30, vehicles=limited, layout="uniform", scale=1000.0)
    state: Any = start(engine, [problem], [0, 0], seed, rounds=1)
    references = [Chain(Numbers(problem)) for _ in range(2)]
    for number, reference in enumerate(references):
        reference.start(seed, number, 1, limited)
    recipe, used = Recipe(removals=12, orders=2, tails=20, regions=3), 0
    temperatures = np.full((2, 9), problem.side() * 0.03)
    for iteration in (1, 2):
        parts = [p for i, each in enumerate(references) for p in split(each, 3, chain_key(seed, iteration, i))]
        lists = np.argsort(random.random((6, 7, 30)), axis=-1)[..., :12].astype(np.int32) + 1
        lists[:, 2, 5:] = 0

        def choose(regions: Regions, parts: Any = parts, lists: Any = lists) -> Any:
            assert [row[:count].tolist() for count, row in zip(*regions, strict=True)] == [p.own for p in parts]
            return lists  # fewer than the nine asked for

        engine.improve(state, recipe, choose, temperatures, seed, iteration)
        assert state.made == 7 * sum(bool(part.own) for part in parts)
        ticks = [float(t) for t in temperatures[0, :7] * Numbers(problem).per_unit]
        for number, reference in enumerate(references):
            given = lists[3 * number : 3 * number + 3].tolist()
            used += improve(reference, recipe, ticks, seed, iteration, number, given)
            assert_same(state, number, reference)
    assert used > 0


def test_parts_of_a_solution() -> None:
    """Parts have each route and each unserved customer once, and share the vehicles that are free."""
    problem = several_routes(5, "pcvrp", "round", customers=40, vehicles=7, layout="uniform", scale=1000.0)
    chain = Chain(Numbers(problem))
    chain.start(1, 0, 1, True)
    assert chain.absent and len(chain.routes) < 7
    parts = split(chain, 3, 1)
    assert sorted(c for part in parts for c in part.own) == list(range(1, 41))
    assert sorted(route for part in parts for route in part.routes) == sorted(chain.routes)
    assert sum(part.vehicles for part in parts) == 7
    assert sum(part.cost() for part in parts) == chain.cost()


@pytest.mark.slow
@pytest.mark.parametrize("isa", ["team5", "team32", "avx2"])
@pytest.mark.parametrize(("variant", "source"), COMBINATIONS[::3])
def test_lanes_agree(isa: str, variant: str, source: str) -> None:
    ends = []
    for kind in (isa, "base"):
        engine, seen = CpuEngine(isa=kind), list[Any]()
        for seed in range(3):
            problem = several_routes(600 + seed, variant, source, customers=30, vehicles=seed == 1)
            try:
                state: Any = start(engine, [problem], [0, 0], seed, rounds=0)
            except ValueError:
                pytest.skip(f"no build for {isa}")
            for iteration in range(2):
                temperatures = np.full((2, 3), problem.side() * 0.05)
                engine.improve(state, recipe_of(seed, 3), None, temperatures, seed, iteration)
                seen += [engine.export(state, chain, best=best).routes for chain in (0, 1) for best in (True, False)]
            seen += [state.chains.costs().tolist(), state.chains.missing(best=True).tolist(), state.made]
        ends.append(seen)
    assert ends[0] == ends[1]


@pytest.mark.parametrize("variant", ["cvrp", "pcvrptw"])
def test_any_number_of_threads(variant: str) -> None:
    problem = several_routes(1, variant, "none", customers=120, layout="uniform").replace(capacity=60.0)
    options: dict[str, Any] = {"iterations": 4, "chains": 8, "regions": 4, "rollouts": 40, "device": "cpu"}
    found = [ndsvrp.solve(problem, threads=threads, seed=3, **options) for threads in (1, 2, 3)]
    assert found[0].solution == found[1].solution == found[2].solution
    assert found[0].cost == pytest.approx(min(point.cost for point in found[0].trace))
    assert found[0].solution != ndsvrp.solve(problem, seed=4, **options).solution
    assert found[0].reconstructions <= 4 * 8 * 40


def test_a_batch_finds_what_each_problem_finds_alone() -> None:
    problems = [random_problem(i, "cvrp", "none", customers=50, layout="uniform") for i in range(3)]
    options: dict[str, Any] = {"iterations": 3, "chains": 6, "regions": 3, "rollouts": 20, "device": "cpu", "seed": 2}
    together = ndsvrp.solve_set(problems, **options)
    alone = [ndsvrp.solve(problem, **options) for problem in problems]
    assert [result.solution for result in together] == [result.solution for result in alone]  # type: ignore[union-attr]


def test_a_deadline_leaves_whole_solutions() -> None:
    problem = random_problem(2, "cvrp", "none", customers=400, layout="uniform").replace(capacity=100.0)
    engine = CpuEngine(threads=2)
    state: Any = start(engine, [problem], [0, 0], 1, rounds=0)
    recipe = Recipe(rule="string", all_routes=True, regions=4)
    for seconds in (0.0, 0.3):
        steps = np.broadcast_to(0.01 * problem.side(), (2, 10**5))
        engine.improve(state, recipe, None, steps, 1, 1, deadline=time.perf_counter() + seconds)
        for chain, best in itertools.product((0, 1), (False, True)):
            report = check(problem, engine.export(state, chain, best=best))
            cost = (state.stats().best_costs if best else state.stats().costs)[chain]
            assert report.feasible and report.cost == pytest.approx(cost, rel=1e-5)
        assert (state.made > 0) == (seconds > 0)


def test_an_interruption_leaves_whole_solutions(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = random_problem(2, "cvrp", "none", customers=60, layout="uniform").replace(capacity=40.0)
    engine = CpuEngine()
    state: Any = start(engine, [problem], [0], 1, rounds=0)
    before = state.stats().costs[0]
    recipe, calls = Recipe(rule="string", all_routes=True, regions=3), iter(range(100))

    def interrupt() -> float:
        if next(calls) > 10:
            raise KeyboardInterrupt
        return float(time.process_time())

    monkeypatch.setattr("ndsvrp.engine.cpu.time", type("Clock", (), {"perf_counter": staticmethod(interrupt)}))
    with pytest.raises(KeyboardInterrupt):
        engine.improve(state, recipe, None, np.broadcast_to(0.0, (1, 10**6)), 1, 1)
    assert state.stats().costs[0] < before
    assert check(problem, engine.export(state, 0)).feasible


def test_empty_regions() -> None:
    """More regions than routes, and than customers."""
    problem = Problem(coordinates=[[0, 0], [1, 0], [0, 1], [5, 5]], demand=[0, 1, 1, 1], capacity=2)
    for regions in (2, 3, 7):
        engine = CpuEngine()
        state: Any = start(engine, [problem], [0], 1, init=Solution([[1, 2], [3]]))
        recipe = Recipe(rule="related", removals=2, all_routes=True, regions=regions)
        engine.improve(state, recipe, None, np.zeros((1, 5)), 1, 1)
        assert 5 <= state.made <= 10
        assert sorted(c for route in engine.export(state, 0, best=False).routes for c in route) == [1, 2, 3]


def test_what_is_refused() -> None:
    problem = random_problem(1, "cvrp", "none", customers=9)
    for chains, regions in ((3, 2), (1, 2), (2, 8)):
        with pytest.raises(NdsError, match=f"chains must be a multiple of regions, got {chains} and {regions}"):
            ndsvrp.solve(problem, iterations=1, chains=chains, regions=regions, device="cpu")
    with pytest.raises(NdsError, match="regions must be between 1"):
        Settings(regions=0)
    with pytest.raises(NdsError, match="regions must be a whole number"):
        Settings(regions=2.0)  # type: ignore[arg-type]
    with pytest.raises(NdsError, match=r"rule_steps are for the learned policy or a function, not .* 'string'"):
        Settings(rule_steps=1)
    with pytest.raises(NdsError, match="this ruin chooses customers of whole solutions: regions must be 1"):
        ndsvrp.solve(problem, iterations=1, ruin=lambda request: None, chains=2, regions=2, device="cpu")
    engine = CpuEngine()
    state = start(engine, [problem], [0], 1, rounds=0)
    removed = np.array([[[1, 2]]], np.int32)
    with pytest.raises(EngineError, match="a function of the parts in regions, else an array"):
        engine.improve(state, Recipe(removals=2, regions=2), removed, np.zeros((1, 1)), 1, 1)
